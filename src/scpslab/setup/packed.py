"""Built parts in packed form: what a wheel carries in place of recipes that every user would have to carry out.

A folder of packed parts has `parts.json` and, for each part, an archive (tar, xz) of its product and of the notes
beside that. xz and not zstd: Python unpacks it without another library, and the guest image is a seventh smaller.
"""

import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scpslab.core import archive
from scpslab.core.errors import CapabilityError, MemberError
from scpslab.core.installation import pip_install
from scpslab.core.project import PARTS_INDEX

INDEX = PARTS_INDEX.name
FORMAT = 1


@dataclass(frozen=True)
class Packed:
    """A packed part: the hash of its recipe, the hash of its product's bytes, the size of its files in bytes, and the
    name of its archive.
    """

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
        fields = json.loads(file.read_text(encoding="utf-8"))
        if fields["format"] != FORMAT:
            raise _damaged(file, f"format {fields['format']}")
        return {part["name"]: Packed(**part) for part in fields["parts"]}
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(file, f"{type(error).__name__}: {error}") from error


def unpack(part: Packed, folder: Path, target: Path) -> None:
    """Unpacks a part of `folder` into the folder `target`.

    Raises:
        CapabilityError: the archive is missing or damaged.
        OSError: `target` cannot be written.
    """
    file = folder / part.archive
    if not file.is_file():
        raise _damaged(file, "no such file")
    try:
        with file.open("rb") as raw:
            archive.unpack_members(raw, target, opened=lzma.LZMAFile, with_modes=True)
    except MemberError as error:
        raise _damaged(file, str(error).removeprefix("found ")) from error


def check(part: Packed, folder: Path, sha256: str) -> None:
    """Compares the hash of an unpacked product.

    Raises:
        CapabilityError: these are other bytes than the wheel was made with.
    """
    if sha256 != part.sha256:
        raise _damaged(folder / part.archive, f"a product of SHA-256 {sha256}, and {part.sha256} in {INDEX}")


def _damaged(file: Path, found: str) -> CapabilityError:
    return CapabilityError(
        f"{file}: found {found}; expected what the wheel has there. Install scpslab again: "
        f"{pip_install(options='--force-reinstall ')}."
    )
