"""Scratch folders and unfinished files that name their process: the next process finds and removes what a killed
process has left.

A name holds the id and the start time of its process, and a folder is also locked as long as its process lives. Folders
and files with other names, of other users, or of living processes are never touched.
"""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scpslab.core.errors import UsageError

FOLDER = re.compile(r"scpslab-(\d+)-(\d+)-[a-z0-9_]{8}", re.ASCII)
OWNER_S, OWNER_S_FOLDER = 0o600, 0o700
MEMORY, LARGE, DEVICES = Path("/dev/shm"), Path("/var/tmp"), Path("/dev")


def started_ticks(pid: int) -> int | None:
    """The start time of a process in clock ticks since the machine started (proc(5), field 22); None if there is no
    such process, or it has ended.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


@contextmanager
def scratch(parent: Path | str | None = None) -> Iterator[Path]:
    """A folder of this process in `parent` (None: the folder for temporary files), removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=f"scpslab-{_identity()}-", dir=parent))
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_dead(*parents: Path) -> list[Path]:
    """Removes the scratch folders of this user's processes that have ended; returns the folders."""
    removed = []
    for parent in parents:
        for entry in sorted(parent.glob("scpslab-*")) if parent.is_dir() else ():
            if _is_dead(entry):
                shutil.rmtree(entry, ignore_errors=True)
                removed.append(entry)
    return removed


def places() -> tuple[Path, ...]:
    """The folders in which engines and commands make scratch folders."""
    return tuple(dict.fromkeys((*memory_places(), Path(tempfile.gettempdir()))))


def memory_places() -> tuple[Path, ...]:
    """The folders for the guests' memory, in the order in which they are tried: that of the user alone, or that of the
    system and those for temporary files.
    """
    if named := os.environ.get("SCPSLAB_MEMORY"):
        return (Path(named).absolute(),)
    return tuple(dict.fromkeys((MEMORY, Path(tempfile.gettempdir()), LARGE)))


def private_folder(path: Path) -> Path:
    """A folder that only its owner can look into, and those above it that are missing; one that is there stays as it
    is.
    """
    if not path.is_dir():
        private_folder(path.parent)
        path.mkdir(mode=OWNER_S_FOLDER, exist_ok=True)
    return path


def replace_text(path: Path, text: str, *, private: bool = False) -> None:
    """`replace_bytes` for a text."""
    replace_bytes(path, text.encode(), private=private)


def replace_bytes(path: Path, content: bytes, *, private: bool = False) -> None:
    """Writes a file in one step: see `replacing`."""
    with replacing(path, private=private) as aside:
        aside.write_bytes(content)


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A new file beside `path`, of this process alone, that takes its place in one step at the end: a reader sees the
    old content or the new one, also after a crash.

    `private`: only its owner can read it.

    A link of that name is replaced, never written through; a device or pipe is never replaced.

    Raises:
        UsageError: there is one.
    """
    if (path.exists() and not (path.is_file() or path.is_dir())) or path.absolute().parent == DEVICES:
        raise UsageError(f"{path}: found a device or pipe; expected a file. Name a new file.")
    for left in path.parent.glob(f".{path.name}.*.part"):
        owner = left.name.removeprefix(f".{path.name}.").removesuffix(".part").split("-")
        is_ours = len(owner) == 2 and all(part.isdecimal() for part in owner)
        if is_ours and started_ticks(int(owner[0])) != int(owner[1]):
            left.unlink(missing_ok=True)
    aside = path.with_name(f".{path.name}.{_identity()}.part")
    try:
        aside.touch(OWNER_S if private else 0o666, exist_ok=False)
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _identity() -> str:
    return f"{os.getpid()}-{started_ticks(os.getpid())}"


def _is_dead(folder: Path) -> bool:
    """Whether a folder is one of ours and its process has ended, by its name, its owner, and its lock, which holds
    across PID namespaces.
    """
    name = FOLDER.fullmatch(folder.name)
    if name is None or started_ticks(int(name[1])) == int(name[2]):
        return False
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
