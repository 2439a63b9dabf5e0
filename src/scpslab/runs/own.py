"""Folders that somebody else may have made: nothing follows a link out of one, neither to read a file of this machine
nor to write or remove one.
"""

from __future__ import annotations

from pathlib import Path

from scpslab.core.errors import UsageError


def is_own(folder: Path, path: Path) -> bool:
    """Whether `path`, a path below `folder`, is a regular file that lies in `folder` itself, links resolved, and has a
    name that can be printed.
    """
    return (
        path.is_file()
        and str(path.relative_to(folder)).isprintable()
        and path.resolve().is_relative_to(folder.resolve())
    )


def own_folder(path: Path) -> Path:
    """A folder in which files are written or removed, made if it is missing.

    Raises:
        UsageError: it is a link.
    """
    if path.is_symlink():
        raise UsageError(
            f"{path}: found a link; expected a folder, because this command writes and removes files in it. "
            "Put a folder in its place."
        )
    path.mkdir(parents=True, exist_ok=True)
    return path
