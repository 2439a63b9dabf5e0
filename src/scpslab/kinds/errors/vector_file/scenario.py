"""A stored error vector, replayed and repeated (the SGLS way: about 1 Mbit from a library).

Two formats: text with one gap in bits per line, or `.bits`, raw bytes in which every 1 is a wrong bit, first bit first.

A plan names its vector by an absolute path. Plans of somebody else's run are read and carried out within `of_a_run`,
which opens no file of that name.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from scpslab.core.errors import ScenarioError
from scpslab.core.folders import instead_of_a_file
from scpslab.core.names import shown
from scpslab.core.problems import Problem, UnfitError
from scpslab.documents.parts import key
from scpslab.scenario.errors import LONGEST_MAP_BITS, MODELS, ErrorModel, bits_at

from scpslab.kinds.errors.vector_file.plan import VectorFile

if TYPE_CHECKING:
    from scpslab.scenario.draws import Draws, GapVector

# What file systems take.
LONGEST_PART_BYTES = 255
LARGEST_BYTES = 256 << 20
# Their gaps take 128 MiB, also in the guest.
MOST_ERRORS = 1 << 24
# A map is read in blocks: each of their bits is a byte for a while.
BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 100
LARGEST_GAP = 2**63 - 1
GAP = re.compile(rb"[0-9]{1,30}")


# The run whose vectors alone are known, if there is one: as its plans name them, and contents by their SHA-256. Cells
# run in threads of this process, so it holds for all of them.
_RUNS: list[tuple[Collection[VectorFile], Mapping[str, bytes]]] = []


class VectorFileModel(ErrorModel):
    """A stored error vector."""

    file: str | None = key(
        None,
        says="vector-file: stored error vector in the scenario's folder, relative to the scenario file; "
        "text with one distance in bits per line, "
        "or with the suffix .bits a bit map in which 1 is an error.",
        example="vectors/awgn-1e-5.bits",
    )

    @classmethod
    def drawn_from(cls) -> tuple[str, ...]:
        """Nothing is drawn."""
        return ()

    def incomplete(self) -> str | None:
        """No file."""
        if self.file is not None:
            return None
        return "found the model vector-file without a file; expected file, the name of an error vector"

    def misfit(self, folder: Path) -> Problem | None:
        """A file that is not there, is not in the scenario's folder, or is no error vector."""
        if self.file is None or (_RUNS and _named(self.file)):
            return None
        if not _is_within(self.file):
            expected = 'the path of a file in the scenario\'s folder, without ".."'
            return Problem(("file",), shown(self.file), expected, "Put the vector there.")
        return _not_there(self.file) if _RUNS else _wrong_beside(folder, self.file)

    def plan(self, name: str, folder: Path) -> VectorFile:
        """The file, and the digest of its content.

        Raises:
            ScenarioError: it cannot be read.
        """
        if _RUNS and (named := _named(str(self.file))):
            return named
        path = (folder / str(self.file)).resolve()
        return VectorFile(file=str(path), sha256=hashlib.sha256(_content(path)).hexdigest())

    @staticmethod
    def content(settings: VectorFile) -> bytes:
        """The bytes of a plan's vector.

        Raises:
            ScenarioError: the file is not there, or is another one than it was when the plan was made.
        """
        path = Path(settings.file)
        if _RUNS:
            if settings.sha256 not in _RUNS[-1][1]:
                raise ScenarioError(
                    f"{shown(str(path))}: found no such vector in the run; expected the vectors of its plans. "
                    "Export the run again."
                )
            data = _RUNS[-1][1][settings.sha256]
        else:
            data = _content(path)
        if hashlib.sha256(data).hexdigest() != settings.sha256:
            raise ScenarioError(
                f"{path}: found another content than the plan was made with; expected the same bytes. "
                "Put the file of then there."
            )
        return data

    @classmethod
    @contextmanager
    def of_a_run(cls, named: Collection[VectorFile], contents: Mapping[str, bytes]) -> Iterator[None]:
        """Until its end, a vector is one of these or none: the files that plans and scenarios name are not even looked
        for.
        """
        _RUNS.append((named, contents))
        try:
            yield
        finally:
            _RUNS.pop()

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


MODELS.register("vector-file", VectorFileModel)


def _is_within(name: str) -> bool:
    parts = name.split("/")
    return (
        name.isprintable()
        and not name.startswith("/")
        and ".." not in parts
        and all(len(part.encode()) <= LONGEST_PART_BYTES for part in parts)
    )


def _not_there(name: str) -> Problem:
    return Problem(("file",), f"no file {shown(name)} beside the scenario", "an error vector", "Correct the name.")


def _wrong_beside(folder: Path, name: str) -> Problem | None:
    """What is wrong with the file of that name in a scenario's folder."""
    path = folder / name
    try:
        if found := instead_of_a_file(path):
            return Problem(("file",), f"{shown(name)}, {found}", "an error vector", "Correct the name.")
        if not path.is_file():
            return _not_there(name)
        if not path.resolve().is_relative_to(folder.resolve()):
            found = f"{shown(name)}, a link out of the scenario's folder"
            return Problem(("file",), found, "a file in it", "Copy the vector there.")
        state = path.stat()
        return _wrong_in_file(path, name, state.st_mtime_ns, state.st_size)
    except OSError as error:
        advice = "Name a file that can be read."
        return Problem(("file",), str(error.strerror), "an error vector", advice, shown(name))


@lru_cache(maxsize=64)
def _wrong_in_file(path: Path, name: str, _mtime_ns: int, _size_bytes: int) -> Problem | None:
    """What is wrong with a file's content. The cells of a sweep share their vectors, which are read once."""
    try:
        return _wrong_in(name, _read(path))
    except UnfitError as error:
        return error.at(("file",))


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


def _named(name: str) -> VectorFile | None:
    """The vector of the run that has this name at the end of its path."""
    parts = Path(name).parts
    return next(
        (one for one in _RUNS[-1][0] if _is_within(name) and parts and Path(one.file).parts[-len(parts) :] == parts),
        None,
    )


def _content(path: Path) -> bytes:
    try:
        return _read(path)
    except UnfitError as error:
        raise ScenarioError(str(error)) from error


def _read(path: Path) -> bytes:
    expected = "an error vector"
    try:
        # A plan may come from anywhere: a device or a pipe would be read for ever.
        if not path.is_file():
            found = instead_of_a_file(path) or "no file of that name"
            raise UnfitError(found, expected, "Put it there, or name another one in the scenario.", str(path))
        if (size := path.stat().st_size) > LARGEST_BYTES:
            raise UnfitError(f"{size} bytes", f"{expected} of at most {LARGEST_BYTES}", "Use a shorter one.", str(path))
        # The kernel's files say that they are empty, and some, such as /proc/kmsg, never end.
        return path.read_bytes() if size else b""
    except OSError as error:
        raise UnfitError(str(error.strerror), expected, "Name a file that can be read.", str(path)) from error


def _checked(settings: VectorFile) -> tuple[Path, bytes]:
    """The place and the bytes of a plan's vector, which is one."""
    path, data = Path(settings.file), VectorFileModel.content(settings)
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
