"""A stored error vector, replayed and repeated (the SGLS way: about 1 Mbit from a library).

Two formats: text with one gap in bits per line, or `.bits`, raw bytes in which every 1 is a wrong bit, first bit first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from scpslab.documents.parts import Part, key
from scpslab.errormodels.kind import LONGEST_MAP_BITS, ErrorModel, Problem, bits_at
from scpslab.errors import ScenarioError
from scpslab.plan.error_models.vector_file import VectorFile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from scpslab.errormodels.draws import Draws
    from scpslab.errormodels.kind import GapVector

LARGEST_BYTES = 256 << 20


class Keys(Part):
    """What a scenario says of a stored vector."""

    file: str | None = key(
        None,
        says="vector-file: stored error vector, relative to the scenario file; text with one distance in bits per line, "
        "or with the suffix .bits a bit map in which 1 is an error.",
        example="vectors/awgn-1e-5.bits",
    )


class VectorFileModel(ErrorModel):
    """A stored error vector."""

    keys = Keys
    planned = VectorFile

    def drawn_from(self) -> tuple[str, ...]:
        """Nothing is drawn."""
        return ()

    def incomplete(self, errors: Keys) -> str | None:
        """No file."""
        return "found the model vector-file without a file; expected file, the name of an error vector" if errors.file is None else None

    def problems(self, errors: Keys, folder: Path) -> Iterator[Problem]:
        """A file that is not there."""
        if errors.file is not None and not (folder / errors.file).is_file():
            yield ("file",), f'found no file "{errors.file}" beside the scenario; expected an error vector. Correct the name.'

    def plan(self, errors: Keys, folder: Path) -> VectorFile:
        """The file, and the digest of its content."""
        path = (folder / str(errors.file)).resolve()
        return VectorFile(file=str(path), sha256=hashlib.sha256(path.read_bytes()).hexdigest())

    def gaps(self, settings: VectorFile, n: int, draws: Draws) -> GapVector:
        """Gaps of the file `settings.file`.

        Raises:
            ScenarioError: the file is not there, is neither of the two formats, or is another one than it was when the plan was made.
        """
        path = Path(settings.file)
        data = _read(path, settings.sha256)
        return gaps_of_bits(data) if path.suffix == ".bits" else gaps_of_text(path, data)

    def bit_map(self, settings: VectorFile, n: int, draws: Draws, bits: int) -> bytes:
        """The file as it is, whatever the length of drawn vectors; gaps end with their last error, filled up to a whole byte.

        Raises:
            ScenarioError: as for `gaps`.
        """
        path = Path(settings.file)
        data = _read(path, settings.sha256)
        if path.suffix == ".bits":
            return data
        gaps = gaps_of_text(path, data)
        # As floats, which do not overflow.
        total = float(gaps.astype("float64").sum())
        if total > LONGEST_MAP_BITS:
            raise ScenarioError(f"{path}: found gaps that add up to {total:.3g} bits; expected at most {LONGEST_MAP_BITS}. Use a shorter vector.")
        return bits_at(gaps, int(total))


KIND = VectorFileModel()


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
    import numpy as np

    try:
        gaps = np.array([int(line) for line in data.decode("ascii").split()], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise ScenarioError(f"{path}: found {error}; expected one gap in bits per line. Use the suffix .bits for raw bits.") from error
    if len(gaps) and gaps.min() < 1:
        raise ScenarioError(f"{path}: found a gap of {gaps.min()}; expected gaps of at least 1 bit. Correct the file.")
    return gaps.astype(np.uint64)


def gaps_of_bits(data: bytes) -> npt.NDArray[np.uint64]:
    """Gaps of a bit map in which 1 is an error; the last gap leads over its end to the first error, so the period is the map's length."""
    import numpy as np

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
    import numpy as np

    # The first turn starts `tail` bits into the repetition: rotating the map so that it ends in an error keeps period and spacing.
    rotated = gaps.copy()
    rotated[0] += tail
    return rotated.astype(np.uint64)
