"""Whose a file is: code and commands of files that somebody else owns or may write run only with the user's consent
(docs/security.md).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

ROOT = 0


def somebody_elses(path: Path) -> str:
    """Why a file counts as somebody else's; "" when root or the calling user (under sudo: the user who called it) owns
    it.
    """
    found = path.stat()
    users = {ROOT, os.geteuid(), int(os.environ.get("SUDO_UID") or ROOT)}
    if found.st_uid not in users:
        return f"a file of user {found.st_uid}"
    # On systems where every user has a group of their own, files are writable by that group.
    groups = {ROOT, os.getegid(), int(os.environ.get("SUDO_GID") or ROOT)}
    by_others = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid not in groups)
    return "a file that others may write" if by_others else ""
