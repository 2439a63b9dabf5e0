"""Files beside a scenario that plans name by absolute path and digest: error vectors, tables of profiles.

Plans of somebody else's run are read and carried out within `of_a_run`, which opens no file of such a name.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from scpslab.core.errors import ScenarioError
from scpslab.core.folders import instead_of_a_file
from scpslab.core.names import shown
from scpslab.core.problems import Problem, UnfitError

# What file systems take.
LONGEST_PART_BYTES = 255
LARGEST_BYTES = 256 << 20


# What a plan says of such a file: its path, and the SHA-256 that its content must have.
Stored = tuple[str, str]
# What is wrong with a file of that name and content.
Judge = Callable[[str, bytes], Problem | None]
# The run whose files alone are known, if there is one: as its plans name them, and contents by their SHA-256. Cells
# run in threads of this process, so it holds for all of them.
_RUNS: list[tuple[Collection[Stored], Mapping[str, bytes]]] = []


def misfit(folder: Path, name: str, what: str, judge: Judge) -> Problem | None:
    """A file that is not there, is not in the scenario's folder, or is not `what` (such as "an error vector")."""
    if _RUNS and _named(name):
        return None
    if not _is_within(name):
        expected = 'the path of a file in the scenario\'s folder, without ".."'
        return Problem(("file",), shown(name), expected, f"Put the {_noun(what)} there.")
    return _not_there(name, what) if _RUNS else _wrong_beside(folder, name, what, judge)


def planned(folder: Path, name: str) -> Stored:
    """The path of a file and the digest of its content.

    Raises:
        ScenarioError: it cannot be read.
    """
    if _RUNS and (named := _named(name)):
        return named
    path = (folder / name).resolve()
    return str(path), hashlib.sha256(_content(path)).hexdigest()


def content(named: Stored | None, what: str = "an error vector") -> bytes:
    """The bytes of a plan's file.

    Raises:
        ScenarioError: it is not there, or is another one than it was when the plan was made.
    """
    assert named is not None  # who asks has a plan with a file
    path, sha256 = Path(named[0]), named[1]
    if _RUNS:
        if sha256 not in _RUNS[-1][1]:
            raise ScenarioError(
                f"{shown(str(path))}: found no such {_noun(what)} in the run; expected the {_noun(what)}s of its "
                "plans. Export the run again."
            )
        data = _RUNS[-1][1][sha256]
    else:
        data = _content(path, what)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ScenarioError(
            f"{path}: found another content than the plan was made with; expected the same bytes. "
            "Put the file of then there."
        )
    return data


@contextmanager
def of_a_run(named: Collection[Stored], contents: Mapping[str, bytes]) -> Iterator[None]:
    """Until its end, a file is one of these or none: those that plans and scenarios name are not even looked for."""
    _RUNS.append((named, contents))
    try:
        yield
    finally:
        _RUNS.pop()


def _noun(what: str) -> str:
    return what.rsplit(maxsplit=1)[-1]


def _is_within(name: str) -> bool:
    parts = name.split("/")
    return (
        name.isprintable()
        and not name.startswith("/")
        and ".." not in parts
        and all(len(part.encode()) <= LONGEST_PART_BYTES for part in parts)
    )


def _not_there(name: str, what: str) -> Problem:
    return Problem(("file",), f"no file {shown(name)} beside the scenario", what, "Correct the name.")


def _wrong_beside(folder: Path, name: str, what: str, judge: Judge) -> Problem | None:
    """What is wrong with the file of that name in a scenario's folder."""
    path = folder / name
    try:
        if found := instead_of_a_file(path):
            return Problem(("file",), f"{shown(name)}, {found}", what, "Correct the name.")
        if not path.is_file():
            return _not_there(name, what)
        if not path.resolve().is_relative_to(folder.resolve()):
            found = f"{shown(name)}, a link out of the scenario's folder"
            return Problem(("file",), found, "a file in it", f"Copy the {_noun(what)} there.")
        state = path.stat()
        return _wrong_in_file(path, name, what, judge, state.st_mtime_ns, state.st_size)
    except OSError as error:
        advice = "Name a file that can be read."
        return Problem(("file",), str(error.strerror), what, advice, shown(name))


@lru_cache(maxsize=64)
def _wrong_in_file(path: Path, name: str, what: str, judge: Judge, _mtime_ns: int, _size_bytes: int) -> Problem | None:
    """What is wrong with a file's content. The cells of a sweep share their files, which are read once."""
    try:
        return judge(name, _read(path, what))
    except UnfitError as error:
        return error.at(("file",))


def _named(name: str) -> Stored | None:
    """The file of the run that has this name at the end of its path."""
    parts = Path(name).parts
    return next(
        (one for one in _RUNS[-1][0] if _is_within(name) and parts and Path(one[0]).parts[-len(parts) :] == parts), None
    )


def _content(path: Path, what: str = "an error vector") -> bytes:
    try:
        return _read(path, what)
    except UnfitError as error:
        raise ScenarioError(str(error)) from error


def _read(path: Path, expected: str) -> bytes:
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
