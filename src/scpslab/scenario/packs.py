"""Packages and programs of a scenario's: its keys `packages` and `programs`, and what of them goes into plans."""

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from scpslab.core.problems import Problem, UnfitError
from scpslab.documents.parts import Spelt
from scpslab.plan.packs import EXPECTED, SPELLINGS, Pack

PackageName = Annotated[
    str, Spelt("|".join(f"^{spelling}$" for spelling in SPELLINGS.values()), f"a package: {EXPECTED}")
]
FolderName = Annotated[str, Spelt(r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$", "the name of a folder beside the scenario")]
MOST_BYTES, MOST_FILES = 256 << 20, 20_000


def problems(programs: str | None, folder: Path) -> Iterator[Problem]:
    """What is wrong with the folder of programs; `folder` is the scenario's."""
    if programs is None:
        return
    try:
        _files(folder / programs)
    except UnfitError as error:
        yield error.at(("programs",))


def planned(packages: tuple[str, ...], programs: str | None, folder: Path) -> Pack | None:
    """The plan's part; None where a scenario has neither."""
    if not packages and programs is None:
        return None
    digest = None if programs is None else hashlib.sha256(packed(folder / programs)).hexdigest()
    return Pack(packages=tuple(sorted(set(packages))), programs=digest)


def packed(folder: Path) -> bytes:
    """The files of a folder as a tar that depends on their names, contents and the right to run them alone.

    Raises:
        UnfitError: the folder has what no guest gets.
        OSError: a file cannot be read.
    """
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in _files(folder):
            member = tarfile.TarInfo(file.relative_to(folder).as_posix())
            data = file.read_bytes()
            member.size, member.mode = len(data), 0o755 if os.access(file, os.X_OK) else 0o644
            tar.addfile(member, io.BytesIO(data))
    return content.getvalue()


def _files(folder: Path) -> list[Path]:
    """The ordinary files below a folder; what Python compiled for another interpreter is left out."""
    expected = "a folder of programs beside the scenario"
    if folder.is_symlink() or not folder.is_dir():
        raise UnfitError(f'no folder "{folder.name}"', expected, "Correct the name.")
    paths = [path for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts]
    # A link could lead to a file that is not for others, a device or a pipe would be read for ever.
    if strange := [path for path in paths if path.is_symlink() or not (path.is_dir() or path.is_file())]:
        found = f"a link, or no ordinary file: {strange[0].relative_to(folder)}"
        raise UnfitError(found, f"{expected} that has files and folders alone", "Put a copy in its place.")
    files = [path for path in paths if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    if not files or len(files) > MOST_FILES or size > MOST_BYTES:
        found = f"{len(files)} files of {size >> 20} MiB in all"
        raise UnfitError(found, f"1 to {MOST_FILES} files of at most {MOST_BYTES >> 20} MiB", "Remove some.")
    return files
