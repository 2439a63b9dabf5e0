"""Files that are read whole, and may be a stranger's: what is no ordinary file, or is larger than any of its kind, is
refused before it is opened. A sparse file of 20 GiB costs its maker nothing. And digests of files.
"""

import errno
import hashlib
import inspect
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from scpslab.core import strict_json
from scpslab.core.errors import ResultError
from scpslab.core.folders import instead_of_a_file

# A document; a table of results, in memory six times as large; records of a probe that looked every millisecond; and a
# capture, or any other file of a run.
LARGEST_TEXT, LARGEST_RESULTS, LARGEST_RECORDS, LARGEST_FILE = 64 << 20, 256 << 20, 1 << 30, 4 << 30


def opened(path: Path) -> BinaryIO:
    """An ordinary file. Pipes and devices are refused before they are opened: they may never begin, or never end.

    Raises:
        OSError: there is none, or it is no ordinary file; its `strerror` is what was found.
    """
    if found := instead_of_a_file(path):
        raise OSError(errno.EINVAL, found, str(path))
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
    return path.open("rb")


def content_of(path: Path, most: int = LARGEST_TEXT) -> bytes:
    """The bytes of an ordinary file.

    Raises:
        OSError: as `opened`, or it has more than `most` bytes.
    """
    with opened(path) as file:
        # The kernel's files say that they are empty.
        size = os.fstat(file.fileno()).st_size
        content = file.read(most + 1) if size <= most else b""
    if max(size, len(content)) > most:
        raise OSError(errno.EFBIG, f"{f'{size} bytes, ' if size else ''}more than {most} bytes", str(path))
    return content


def json_fields(content: bytes) -> strict_json.JsonObject:
    """The object that a file of JSON holds.

    Raises:
        JsonError: it holds something else.
    """
    fields = strict_json.loads(content)
    if not isinstance(fields, dict):
        raise strict_json.JsonError(f"found {type(fields).__name__}")
    return fields


def check_sizes(folder: Path) -> None:
    """Looks at every file of a folder of results before somebody reads them.

    Raises:
        ResultError: one is larger than LARGEST_FILE.
    """
    for path in folder.rglob("*"):
        size = path.lstat().st_size
        if size > LARGEST_FILE and path.is_file():
            raise ResultError(
                f"{path}: found {size} bytes; expected a file of results, of at most {LARGEST_FILE >> 30} GiB. "
                "Remove it, and run the cell again if it is yours."
            )


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


ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def parted(docstring: str | None, heading: str) -> tuple[str, dict[str, str]]:
    """A docstring without the list under a heading at its end, and the list: what it says of each name."""
    rest, _, listed = inspect.cleandoc(docstring or "").partition(f"\n\n{heading}:\n")
    return rest, {name: " ".join(said.split()) for name, said in ENTRY.findall(listed)}
