"""Built parts in packed form: what a wheel carries in place of recipes that every user would have to carry out.

A folder of packed parts has `parts.json` and, for each part, an archive (tar, xz) of its product and of the notes beside that. xz and not zstd: Python
unpacks it without another library, and the guest image is a seventh smaller.
"""

from __future__ import annotations

import io
import json
import lzma
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from scpslab.core.errors import CapabilityError
from scpslab.core.installation import pip_install
from scpslab.core.project import PARTS_INDEX
from scpslab.core.scratch import replace_text

INDEX = PARTS_INDEX.name
FORMAT = 1
PRESET = 9
# The same bytes whoever packs, wherever and whenever.
OWNER, TIME_S, PLAIN, PROGRAM = 0, 0, 0o644, 0o755


@dataclass(frozen=True)
class Packed:
    """A packed part: the hash of its recipe, the hash of its product's bytes, the size of its files in bytes, and the name of its archive."""

    name: str
    recipe: str
    sha256: str
    unpacked_bytes: int
    archive: str


@cache
def index(folder: Path) -> dict[str, Packed]:
    """The packed parts of a folder by name; none where there is no such folder.

    Raises:
        CapabilityError: the list of parts is damaged.
    """
    file = folder / INDEX
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {part["name"]: Packed(**part) for part in found["parts"]} if found["format"] == FORMAT else _unknown(file, found["format"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(file, f"{type(error).__name__}: {error}") from error


def pack(part: Packed, files: Iterable[Path], base: Path, folder: Path) -> None:
    """Packs files, under their names relative to `base`, to the part's archive in `folder`."""
    target = folder / part.archive
    with lzma.open(target, "wb", preset=PRESET) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in sorted(files):
            entry = tarfile.TarInfo(str(file.relative_to(base)))
            entry.size, entry.mtime, entry.uid, entry.gid = file.stat().st_size, TIME_S, OWNER, OWNER
            entry.mode = PROGRAM if file.stat().st_mode & 0o100 else PLAIN
            with file.open("rb") as data:
                archive.addfile(entry, data)


def write_index(parts: Iterable[Packed], program: Mapping[str, Any], folder: Path) -> None:
    """Writes the list of the parts in `folder`, with the commit of the program that they are for (`scpslab.core.version` reads it)."""
    rows = [asdict(part) for part in sorted(parts, key=lambda part: part.name)]
    replace_text(folder / INDEX, json.dumps({"format": FORMAT, "program": program, "parts": rows}, indent=1) + "\n")


def unpack(part: Packed, folder: Path, target: Path) -> None:
    """Unpacks a part of `folder` into the folder `target`.

    Raises:
        CapabilityError: the archive is missing or damaged.
        OSError: `target` cannot be written.
    """
    archive = folder / part.archive
    with _readable(archive), lzma.open(archive, "rb") as packed, tarfile.open(fileobj=packed, mode="r|") as entries:
        for entry in entries:
            file, data = target / entry.name, entries.extractfile(entry)
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as copy:
                shutil.copyfileobj(data or io.BytesIO(), copy)
            file.chmod(entry.mode)


def check(part: Packed, folder: Path, sha256: str) -> None:
    """Compares the hash of an unpacked product.

    Raises:
        CapabilityError: these are other bytes than the wheel was made with.
    """
    if sha256 != part.sha256:
        raise _damaged(folder / part.archive, f"a product of SHA-256 {sha256}, and {part.sha256} in {INDEX}")


@contextmanager
def _readable(archive: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if error.filename not in (archive, str(archive)):
            raise
        raise _damaged(archive, "no such file") from error
    except (lzma.LZMAError, tarfile.TarError, EOFError) as error:
        raise _damaged(archive, str(error)) from error


def _unknown(file: Path, found: Any) -> dict[str, Packed]:
    raise _damaged(file, f"format {found}")


def _damaged(file: Path, found: str) -> CapabilityError:
    return CapabilityError(f"{file}: found {found}; expected what the wheel has there. Install scpslab again: {pip_install(options='--force-reinstall ')}.")
