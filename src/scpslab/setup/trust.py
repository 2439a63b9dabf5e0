"""Root runs only programs that root has built, from folders that nobody else can change."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from scpslab.core.errors import CapabilityError

ROOT = 0


def stranger(product: Path, owner: int = ROOT) -> Path | None:
    """The first path that anybody except `owner` and root owns or may change, among a product, its folder's files and
    the folders above; else None.
    """
    place = product.parent.resolve()
    for path in (*reversed(place.parents), place, *sorted(place.rglob("*"))):
        found = path.lstat()
        # In a folder like /tmp, nobody removes or renames what is another's.
        is_shared = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
        by_others = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid != ROOT)
        if found.st_uid not in (owner, ROOT) or (by_others and not is_shared and not path.is_symlink()):
            return path
    return None


def check(product: Path) -> Path:
    """Returns an existing product; to root only if it belongs to root.

    Raises:
        CapabilityError: somebody other than root could have made or changed it.
    """
    if os.geteuid() != ROOT or (path := stranger(product)) is None:
        return product
    found = path.lstat()
    raise CapabilityError(
        f"{path}: found it {_whose(found)}; expected a path that only root owns and may change, because root runs "
        f"the programs in {product.parent}. "
        "Remove that folder, or set SCPSLAB_CACHE to a folder that only root may change; "
        "root then builds its own programs."
    )


def _whose(found: os.stat_result) -> str:
    if found.st_uid == ROOT:
        return "writable for others"
    try:
        return f"owned by {pwd.getpwuid(found.st_uid).pw_name}"
    except KeyError:
        return f"owned by user {found.st_uid}"
