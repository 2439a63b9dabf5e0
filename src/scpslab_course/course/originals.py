"""The files of an assignment as they were handed out, and what a student's folder has in place of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from scpslab.core.errors import UsageError
from scpslab.core.scratch import replace_bytes
from scpslab_course.course.assignment import INSTRUCTOR, STARTER, Assignment

LARGEST_FILE, MOST_FILES = 4 << 20, 200
ASIDE = "set-aside"
NOTES = ".md"


def handed_out(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of an assignment that students get: all but the instructor's folder, hidden files and links.

    Raises:
        UsageError: a link, or too much of them.
    """
    found = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        parts = name.split("/")
        if parts[0] == INSTRUCTOR or any(part.startswith(".") or part == "__pycache__" for part in parts) or not path.is_file():
            continue
        if path.is_symlink() or not path.resolve().is_relative_to(folder.resolve()):
            raise UsageError(f"{path}: found a symbolic link; expected a file, because links could lead anywhere. Put the file itself there.")
        found += 1
        if found > MOST_FILES or path.stat().st_size > LARGEST_FILE:
            raise UsageError(
                f"{path}: found file {found} of {path.stat().st_size} bytes; expected at most {MOST_FILES} of {LARGEST_FILE} bytes. Make it smaller."
            )
        yield name, path.read_bytes()


def changed(folder: Path, original: Assignment) -> dict[str, bytes]:
    """The handed out files that a student's folder lacks or has otherwise, with their original content. What a student may write in does not count."""
    own = {deliverable.file for deliverable in original.file.deliverables}
    found = {}
    for name, content in handed_out(original.folder):
        path = folder / name
        is_writable = name.startswith(f"{STARTER}/") or name in own or (path.suffix == NOTES and path.is_file())
        if not is_writable and (not path.is_file() or path.read_bytes() != content):
            found[name] = content
    return found


def restore(folder: Path, name: str, content: bytes) -> Path | None:
    """Writes a file of a student's folder as it was handed out; returns where the student's own is now, if there was one."""
    path = folder / name
    aside = set_aside(folder, path) if path.exists() or path.is_symlink() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_bytes(path, content)
    return aside


def set_aside(folder: Path, path: Path) -> Path:
    """Moves a file or folder of a student's folder below its `set-aside`; returns its new path."""
    place = folder / ASIDE / path.relative_to(folder)
    free = next(one for number in count(1) if not (one := place.with_name(f"{place.name}-{number}")).exists())
    free.parent.mkdir(parents=True, exist_ok=True)
    return path.rename(free)
