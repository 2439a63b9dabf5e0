"""A stored error vector, replayed and repeated (the SGLS way: about 1 Mbit from a library).

Two formats: text with one gap in bits per line, or `.bits`, raw bytes in which every 1 is a wrong bit, first bit first.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from scpslab.errormodels.draws import Draws
from scpslab.errors import ScenarioError
from scpslab.plan.error_models import VectorFile

LARGEST_BYTES, LONGEST_MAP_BITS = 256 << 20, 1 << 28


def vector_file(settings: VectorFile, _n: int, _draws: Draws) -> npt.NDArray[np.uint64]:
    """Gaps of the file `settings.file`.

    Raises:
        ScenarioError: the file is not there, is neither of the two formats, or is another one than it was when the plan was made.
    """
    path = Path(settings.file)
    data = _read(path, settings.sha256)
    return gaps_of_bits(data) if path.suffix == ".bits" else gaps_of_text(path, data)


def _read(path: Path, sha256: str) -> bytes:
    try:
        # A plan may come from anywhere: a device or a pipe would be read for ever.
        if not path.is_file():
            raise ScenarioError(f"{path}: found no file of that name; expected an error vector. Put it there, or name another one in the scenario.")
        if path.stat().st_size > LARGEST_BYTES:
            raise ScenarioError(f"{path}: found {path.stat().st_size} bytes; expected an error vector of at most {LARGEST_BYTES}. Use a shorter one.")
        data = path.read_bytes()
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}; expected an error vector. Name a file that can be read.") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ScenarioError(f"{path}: found another content than the plan was made with; expected the same bytes. Put the file of then there.")
    return data


def gaps_of_text(path: Path, data: bytes) -> npt.NDArray[np.uint64]:
    """Gaps of a file with one on each line."""
    try:
        gaps = np.array([int(line) for line in data.decode("ascii").split()], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise ScenarioError(f"{path}: found {error}; expected one gap in bits per line. Use the suffix .bits for raw bits.") from error
    if len(gaps) and gaps.min() < 1:
        raise ScenarioError(f"{path}: found a gap of {gaps.min()}; expected gaps of at least 1 bit. Correct the file.")
    return gaps.astype(np.uint64)


def gaps_of_bits(data: bytes) -> npt.NDArray[np.uint64]:
    """Gaps of a bit map in which 1 is an error; the last gap leads over its end to the first error, so the period is the map's length."""
    positions = np.flatnonzero(np.unpackbits(np.frombuffer(data, dtype=np.uint8))).astype(np.int64)
    if not len(positions):
        return np.zeros(0, dtype=np.uint64)
    gaps = np.diff(positions, prepend=-1)
    tail = len(data) * 8 - 1 - positions[-1]
    # Replaying from gap 0 after the last error must skip the rest of the map: the first gap of every later turn is longer by it.
    if tail:
        return _with_tail(gaps, int(tail))
    return gaps.astype(np.uint64)


def _with_tail(gaps: npt.NDArray[np.int64], tail: int) -> npt.NDArray[np.uint64]:
    # The first turn starts `tail` bits into the repetition: rotating the map so that it ends in an error keeps period and spacing.
    rotated = gaps.copy()
    rotated[0] += tail
    return rotated.astype(np.uint64)


def bit_map(settings: VectorFile) -> bytes:
    """The error vector of `settings.file` as a bit map in which 1 is an error, first bit first; gaps end with their last error, filled up to a whole byte.

    Raises:
        ScenarioError: as for `vector_file`.
    """
    path = Path(settings.file)
    data = _read(path, settings.sha256)
    if path.suffix == ".bits":
        return data
    gaps = gaps_of_text(path, data)
    # As floats, which do not overflow.
    total = float(gaps.astype(np.float64).sum())
    if total > LONGEST_MAP_BITS:
        raise ScenarioError(f"{path}: found gaps that add up to {total:.3g} bits; expected at most {LONGEST_MAP_BITS}. Use a shorter vector.")
    positions = np.cumsum(gaps) - np.uint64(1)
    bits = np.zeros(int(positions[-1]) + 1 if len(positions) else 0, dtype=np.uint8)
    bits[positions.astype(np.int64)] = 1
    return np.packbits(bits).tobytes()
