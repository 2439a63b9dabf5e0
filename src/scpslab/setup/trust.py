"""Parts that others may have made. Root runs only programs that root has built, from folders that nobody else can
change. The system cache, which users of a machine share, is only read, and compared with its digests: each user reads a
part's bytes once; after that, a note in the user's own cache says which files they were.
"""

import hashlib
import json
import os
import pwd
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from scpslab.core.errors import CapabilityError
from scpslab.core.scratch import replace_text

ROOT = 0
CHECKED = "checked"


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
    stat = path.lstat()
    raise CapabilityError(
        f"{path}: found it {_whose(stat)}; expected a path that only root owns and may change, because root runs the "
        f"programs in {product.parent}. Remove that folder, or set SCPSLAB_CACHE to a folder that only root may "
        "change; root then builds its own programs."
    )


def _whose(found: os.stat_result) -> str:
    if found.st_uid == ROOT:
        return "writable for others"
    try:
        return f"owned by {pwd.getpwuid(found.st_uid).pw_name}"
    except KeyError:
        return f"owned by user {found.st_uid}"


def note_of(product: Path) -> Path:
    """Where a product's digest is written."""
    return product.with_name(product.name + ".sha256")


def check_shared(product: Path, cache: Path, expected: str | None, digest_of: Callable[[Path], str]) -> None:
    """Compares a product of the system cache with its digest.

    `expected`: the digest, where this user knows it; else it is beside the product.

    `cache` is the user's own cache; `digest_of` reads a product and gives its digest.

    Raises:
        CapabilityError: the product is damaged, or not the expected one.
    """
    try:
        digest = expected or note_of(product).read_text(encoding="ascii", errors="replace").strip()
        state = json.dumps([digest, _files(product)])
        note = cache / CHECKED / f"{hashlib.sha256(str(product).encode()).hexdigest()[:16]}.json"
        if note.is_file() and note.read_text(encoding="utf-8", errors="replace") == state:
            return
        found = digest_of(product)
    except OSError as error:
        raise _damaged(product, f"{error.filename}: {error.strerror}") from error
    if found != digest:
        raise _damaged(product, f"SHA-256 {found[:12]}, not {digest[:12]}")
    # Without a note it is read again the next time.
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        replace_text(note, state)


def _files(product: Path) -> list[list[str | int]]:
    """What changes when a product's files do."""
    files: list[list[str | int]] = []
    for file in sorted(product.iterdir()) if product.is_dir() else [product]:
        facts = file.stat()
        files.append([file.name, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino])
    return files


def _damaged(product: Path, found: str) -> CapabilityError:
    return CapabilityError(
        f"{product}: found {found}; expected the part that was built there. "
        f"Have whoever keeps this system cache remove {product.parent} and build it again; "
        "until then set SCPSLAB_SYSTEM_CACHE to nothing, to use parts of your own."
    )
