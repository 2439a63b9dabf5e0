"""The system cache: a folder with built parts that users of a machine share.

It is only read, and compared with its digests.

A part's bytes are read once by each user; after that, a note in the user's own cache says which files they were.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from scpslab.core.errors import CapabilityError
from scpslab.core.scratch import replace_text

CHECKED = "checked"


def note_of(product: Path) -> Path:
    """Where a product's digest is written."""
    return product.with_name(product.name + ".sha256")


def check(product: Path, cache: Path, expected: str | None, digest_of: Callable[[Path], str]) -> None:
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
    found: list[list[str | int]] = []
    for file in sorted(product.iterdir()) if product.is_dir() else [product]:
        facts = file.stat()
        found.append([file.name, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino])
    return found


def _damaged(product: Path, found: str) -> CapabilityError:
    return CapabilityError(
        f"{product}: found {found}; expected the part that was built there. "
        f"Have whoever keeps this system cache remove {product.parent} and build it again; "
        "until then set SCPSLAB_SYSTEM_CACHE to nothing, to use parts of your own."
    )
