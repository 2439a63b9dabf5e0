"""Takes built parts from a wheel: for a clone on a machine that cannot build them (arm64) or that saves the minutes
(`make images WHEEL=FILE.whl`).
"""

import zipfile
from pathlib import Path, PurePosixPath
from typing import NoReturn

from scpslab.core.errors import UsageError
from scpslab.core.project import PARTS_INDEX
from scpslab.core.scratch import scratch
from scpslab.setup import Say, cache_dir, packed
from scpslab.setup.images import CARRIED, place, recipe_hash, unpack

# Where a wheel has them (tools/wheel_parts.py).
INSIDE = PurePosixPath("scpslab", "project_files", "parts")
EXPECTED = "expected a wheel of scpslab that carries built parts. Make one on an x86-64 machine: make wheel."


def take(given: Path, say: Say) -> list[str]:
    """Puts the parts of a wheel, or of the only wheel in a folder, into the cache.

    Returns the names of those whose recipes are other ones in this clone.

    Raises:
        UsageError: there is no such wheel, it carries no parts, or none of them has a recipe of this clone.
        CapabilityError: a part is damaged, or the cache cannot take it.
    """
    wheel = _wheel(given)
    others: list[str] = []
    with scratch() as folder:
        _extract(wheel, folder)
        index = packed.index(folder)
        for part in CARRIED:
            own = index.get(part.name)
            if own is None:
                continue
            if own.recipe != recipe_hash(part):
                others.append(part.name)
            elif not (place(part, cache_dir()) / part.product).exists():
                unpack(part, own, folder, cache_dir(), say)
    if len(others) == len(index):
        raise UsageError(
            f"{wheel}: found parts of other recipes only; expected those of this clone. "
            "Make the wheel from the same commit."
        )
    return others


def _wheel(given: Path) -> Path:
    if not given.is_dir():
        return given
    found = sorted(given.glob("scpslab-*.whl"))
    if len(found) != 1:
        raise UsageError(f"{given}: found {len(found)} wheels; {EXPECTED}")
    return found[0]


def _extract(wheel: Path, folder: Path) -> None:
    """Extracts the packed parts, and nothing else, whatever names the archive has."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if PurePosixPath(name).parent == INSIDE]
            for name in names:
                with archive.open(name) as data, (folder / PurePosixPath(name).name).open("wb") as copy:
                    while block := data.read(1 << 20):
                        copy.write(block)
    except (OSError, zipfile.BadZipFile) as error:
        _refuse(wheel, str(error), error)
    if str(INSIDE / PARTS_INDEX.name) not in names:
        _refuse(wheel, "no built parts", None)


def _refuse(wheel: Path, found: str, cause: Exception | None) -> NoReturn:
    raise UsageError(f"{wheel}: found {found}; {EXPECTED}") from cause
