"""Folders of the cache that several processes may want at once, names of files that several layers know, what is no
file, and whose a file is: code and commands of files that somebody else owns or may write run only with the user's
consent (docs/security.md). Nothing follows a link out of a folder that somebody else may have made, neither to read a
file of this machine nor to write or remove one.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from scpslab.core.errors import UsageError

# What a run keeps of topologies of the user's own; their files are beside it.
TOPOLOGIES = "topologies.json"
ROOT = 0


def whole_folder(target: Path, fill: Callable[[Path], None]) -> Path:
    """The folder `target`. If it is missing, `fill` fills a new folder next to it, which is then renamed.

    Processes that do so at the same time use separate folders: the first to finish wins, and the others use its folder.

    Raises:
        OSError: the content could not be written, and no other process has written it.
    """
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f"{target.name}.", suffix=".part", dir=target.parent))
    work.chmod(0o755)
    try:
        fill(work)
        work.rename(target)
    except OSError:
        if not target.exists():
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def instead_of_a_file(path: Path) -> str:
    """What is there instead of an ordinary file; "" where there is one, or nothing.

    Raises:
        OSError: it cannot be looked at.
    """
    try:
        if path.is_dir():
            return "a folder"
        path.stat()
    except FileNotFoundError:
        return "a link to a file that is not there" if path.is_symlink() else ""
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "a link that leads in a circle"
        raise
    return "" if path.is_file() else "no ordinary file"


def somebody_elses(path: Path) -> str:
    """Why a file counts as somebody else's; "" when root or the calling user (under sudo: the user who called it) owns
    it.
    """
    entry = path.stat()
    users = {ROOT, os.geteuid(), int(os.environ.get("SUDO_UID") or ROOT)}
    if entry.st_uid not in users:
        return f"a file of user {entry.st_uid}"
    # On systems where every user has a group of their own, files are writable by that group.
    groups = {ROOT, os.getegid(), int(os.environ.get("SUDO_GID") or ROOT)}
    by_others = entry.st_mode & stat.S_IWOTH or (entry.st_mode & stat.S_IWGRP and entry.st_gid not in groups)
    return "a file that others may write" if by_others else ""


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
