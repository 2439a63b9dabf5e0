"""A stored error vector, replayed and repeated (the SGLS way: about 1 Mbit from a library).

Two formats: text with one gap in bits per line, or `.bits`, raw bytes in which every 1 is a wrong bit, first bit first.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from scpslab.core.errors import ScenarioError
from scpslab.core.names import shown
from scpslab.core.problems import Problem, UnfitError
from scpslab.documents.parts import key
from scpslab.scenario import stored
from scpslab.scenario.errors import LONGEST_MAP_BITS, ErrorModel, bits_at

from scpslab.kinds.errors.vector_file.plan import VectorFile

if TYPE_CHECKING:
    from scpslab.scenario.draws import Draws, GapVector

WHAT = "an error vector"
# Their gaps take 128 MiB, also in the guest.
MOST_ERRORS = 1 << 24
# A map is read in blocks: each of their bits is a byte for a while.
BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 100
LARGEST_GAP = 2**63 - 1
GAP = re.compile(rb"[0-9]{1,30}")


class VectorFileModel(ErrorModel, kind="vector-file"):
    """A stored error vector.

    Attributes:
        file: vector-file: stored error vector in the scenario's folder, relative to the scenario file; text with one
            distance in bits per line, or with the suffix .bits a bit map in which 1 is an error.
    """

    file: str | None = key(None, example="vectors/awgn-1e-5.bits")

    @classmethod
    def drawn_from(cls) -> tuple[str, ...]:
        """Nothing is drawn."""
        return ()

    def check_complete(self) -> None:
        """Refuses a model without a file."""
        if self.file is None:
            raise UnfitError("the model vector-file without a file", "file, the name of an error vector")

    def misfit(self, folder: Path) -> Problem | None:
        """A file that is not there, is not in the scenario's folder, or is no error vector."""
        return stored.misfit(folder, self.file, WHAT, _wrong_in) if self.file is not None else None

    def plan(self, name: str, folder: Path) -> VectorFile:
        """The file, and the digest of its content.

        Raises:
            ScenarioError: it cannot be read.
        """
        path, sha256 = stored.planned(folder, str(self.file))
        return VectorFile(file=path, sha256=sha256)

    @staticmethod
    def gaps(settings: VectorFile, n: int, draws: Draws) -> GapVector:
        """Gaps of the file `settings.file`.

        Raises:
            ScenarioError: the file is not there, is neither of the two formats, or is another one than it was when the
                plan was made.
        """
        path, data = _checked(settings)
        return gaps_of_bits(data) if path.suffix == ".bits" else _repeating(gaps_of_text(data), 0)

    @classmethod
    def bit_map(cls, settings: VectorFile, n: int, draws: Draws, bits: int) -> bytes:
        """The file as it is, whatever the length of drawn vectors; gaps end with their last error, filled up to a whole
        byte.

        Raises:
            ScenarioError: as for `gaps`.
        """
        path, data = _checked(settings)
        if path.suffix == ".bits":
            return data
        gaps = gaps_of_text(data)
        # As floats, which do not overflow.
        total = float(gaps.astype("float64").sum())
        if total > LONGEST_MAP_BITS:
            raise ScenarioError(
                f"{path}: found gaps that add up to {total:.3g} bits; expected at most {LONGEST_MAP_BITS}. "
                "Use a shorter vector."
            )
        return bits_at(gaps, int(total))


def _wrong_in(name: str, data: bytes) -> Problem | None:
    """What is wrong with the content of a vector of that name."""
    if not data:
        return Problem(("file",), "an empty file", "an error vector", "Fill it, or use the model none.", name)
    return _wrong_in_bits(name, data) if name.endswith(".bits") else _wrong_in_text(name, data)


def _wrong_in_bits(name: str, data: bytes) -> Problem | None:
    count = sum(int.from_bytes(data[at : at + BLOCK_BYTES]).bit_count() for at in range(0, len(data), BLOCK_BYTES))
    if count > MOST_ERRORS:
        found, expected = f"{count} wrong bits of {len(data) * 8}", f"at most {MOST_ERRORS}, because each takes memory"
        return Problem(("file",), found, expected, "Use a shorter vector.", name)
    return None


def _wrong_in_text(name: str, data: bytes) -> Problem | None:
    count = 0
    file = io.BytesIO(data)
    # A file without ends of lines is not read as one line.
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE_BYTES), b""), 1):
        if (text := line.strip()) or len(line) == LONGEST_LINE_BYTES:
            if len(line) == LONGEST_LINE_BYTES or not GAP.fullmatch(text) or not 1 <= int(text) <= LARGEST_GAP:
                expected = f"one gap in bits per line, a whole number from 1 to {LARGEST_GAP}"
                advice = "Correct the line, or use the suffix .bits for raw bits."
                return Problem(("file",), shown(text.decode("latin-1")), expected, advice, f"{name}:{number}")
            count += 1
            if count > MOST_ERRORS:
                expected = "at most that many, because each takes memory"
                return Problem(("file",), f"more than {MOST_ERRORS} gaps", expected, "Use a shorter vector.", name)
    advice = "Fill the file, or use the model none."
    return None if count else Problem(("file",), "no gap", "one gap in bits per line", advice, name)


def _checked(settings: VectorFile) -> tuple[Path, bytes]:
    """The place and the bytes of a plan's vector, which is one."""
    path, data = Path(settings.file), stored.content(settings.stored_file)
    if problem := _wrong_in(str(path), data):
        raise ScenarioError(str(problem))
    return path, data


def gaps_of_text(data: bytes) -> GapVector:
    """Gaps of a file with one on each line."""
    import numpy as np

    return np.fromiter((int(line) for line in io.BytesIO(data) if line.strip()), dtype=np.uint64)


def gaps_of_bits(data: bytes) -> GapVector:
    """Gaps of a bit map in which 1 is an error; the last one leads over its end to the first error, so that the period
    is the map's length.
    """
    import numpy as np

    octets = np.frombuffer(data, dtype=np.uint8)
    blocks = (
        np.flatnonzero(np.unpackbits(octets[at : at + BLOCK_BYTES])) + at * 8
        for at in range(0, len(octets), BLOCK_BYTES)
    )
    positions = np.concatenate([np.zeros(0, dtype=np.int64), *blocks])
    gaps = np.diff(positions, prepend=-1).astype(np.uint64)
    return _repeating(gaps, len(data) * 8 - 1 - int(positions[-1]) if len(positions) else 0)


def _repeating(gaps: GapVector, tail: int) -> GapVector:
    """The gaps of a stored vector, and the one that leads from its last error over `tail` further bits to its first."""
    import numpy as np

    return np.concatenate([gaps, gaps[:1] + np.uint64(tail)])
