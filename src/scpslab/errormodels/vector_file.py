"""A stored error vector, replayed and repeated (the SGLS way: about 1 Mbit from a library).

Two formats: text with one gap in bits per line, or `.bits`, raw bytes in which every 1 is a wrong bit, first bit first.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scpslab.errormodels.draws import Draws
from scpslab.errors import ScenarioError


def vector_file(settings: Mapping[str, Any], _n: int, _draws: Draws) -> npt.NDArray[np.uint64]:
    """Gaps of the file `settings["file"]`.

    Raises:
        ScenarioError: the file is not there, or is neither of the two formats.
    """
    path = Path(settings["file"])
    return gaps_of_bits(_read(path)) if path.suffix == ".bits" else gaps_of_text(path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}; expected an error vector. Name a file that can be read.") from error


def gaps_of_text(path: Path) -> npt.NDArray[np.uint64]:
    """Gaps of a file with one on each line."""
    try:
        gaps = np.array([int(line) for line in _read(path).decode("ascii").split()], dtype=np.int64)
    except ValueError as error:
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


def bit_map(path: Path) -> bytes:
    """The error vector of a file as a bit map in which 1 is an error, first bit first; gaps end with their last error, filled up to a whole byte.

    Raises:
        ScenarioError: as for `vector_file`.
    """
    if path.suffix == ".bits":
        return _read(path)
    positions = np.cumsum(gaps_of_text(path)) - np.uint64(1)
    bits = np.zeros(int(positions[-1]) + 1 if len(positions) else 0, dtype=np.uint8)
    bits[positions.astype(np.int64)] = 1
    return np.packbits(bits).tobytes()
