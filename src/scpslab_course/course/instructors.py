"""The instructors' parts of the project's assignments, where they are not beside them.

A clone has each part in its assignment's folder. Nothing that is built from a clone has one: wheel, image and site are
for students, too. An archive of its own has them all (`make instructors`), and is read as a stranger's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scpslab.core.archive import ArchiveLimits, unpack_members
from scpslab.core.contents import content_of
from scpslab.core.errors import MemberError, ScpslabError, UsageError
from scpslab.core.installation import version
from scpslab.core.names import shown
from scpslab.core.scratch import scratch

NAME, VERSION_FILE = "scpslab-instructors", "VERSION"
LIMITS = ArchiveLimits(members=2_000, bytes=64 << 20)
LONGEST_VERSION = 100


@contextmanager
def opened(path: Path | None) -> Iterator[Path | None]:
    """The folder that has a folder for each assignment: what an archive holds, unpacked until the block ends, or `path`
    itself, if somebody has unpacked it.

    Raises:
        UsageError: there are no parts at `path`, or those of another version.
    """
    if path is None:
        yield None
        return
    with scratch() as aside:
        folder = path if path.is_dir() else _unpacked(path, aside / NAME)
        _check_version(path, folder / VERSION_FILE)
        yield folder


def _unpacked(path: Path, target: Path) -> Path:
    try:
        with path.open("rb") as packed:
            unpack_members(packed, target, LIMITS)
    except (MemberError, OSError) as error:
        raise _refused(path, getattr(error, "strerror", None) or str(error)) from error
    return next(target.iterdir(), target)


def _check_version(path: Path, file: Path) -> None:
    try:
        found = content_of(file, LONGEST_VERSION).decode("utf-8").strip()
    except (OSError, ValueError, ScpslabError) as error:
        raise _refused(path, f"found no {VERSION_FILE}") from error
    if found != version():
        expected = f"expected {version()}. Take the archive of the same release."
        raise UsageError(f"{path}: found the instructors' parts of version {shown(found)}; {expected}")


def _refused(path: Path, found: str) -> UsageError:
    said = found if found.startswith("found") else f"found {found}"
    return UsageError(f"{path}: {said}; expected {NAME}-{version()}.tar.gz, or the folder in it. Correct the path.")
