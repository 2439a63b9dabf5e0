"""Folders of the cache that several processes may want at once, names of files that several layers know, what is no
file, and whose a file is: code and commands of files that somebody else owns or may write run only with the user's
consent (docs/security.md). Nothing follows a link out of a folder that somebody else may have made, neither to read a
file of this machine nor to write or remove one.
"""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

from scpslab.core.errors import UsageError
from scpslab.core.scratch import remove_dead, scratch

# What a run keeps of topologies of the user's own; their files are beside it.
TOPOLOGIES = "topologies.json"
ROOT = 0


def whole_folder(target: Path, fill: Callable[[Path], None]) -> Path:
    """The folder `target`. If it is missing, `fill` fills a new folder in a scratch folder next to it, which is then
    renamed. What killed processes have left there goes.

    Processes that do so at the same time use separate folders: the first to finish wins, and the others use its folder.

    Raises:
        OSError: the content could not be written, and no other process has written it.
    """
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_dead(target.parent)
    with scratch(target.parent) as folder:
        work = folder / target.name
        work.mkdir()
        work.chmod(0o755)
        try:
            fill(work)
            work.rename(target)
        except OSError:
            if not target.exists():
                raise
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
        UsageError: it is a link, or a file.
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise UsageError(
            f"{path}: found {'a link' if path.is_symlink() else 'a file'}; expected a folder, because this command "
            "writes and removes files in it. Put a folder in its place."
        )
    path.mkdir(parents=True, exist_ok=True)
    return path
