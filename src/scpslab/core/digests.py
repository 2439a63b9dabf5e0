"""Digests of files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(files: Iterable[tuple[Path, str]], begin: bytes = b"") -> str:
    """One SHA-256 of several files, each with its name, behind what it begins with."""
    digest = hashlib.sha256(begin)
    for file, name in files:
        digest.update(name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
