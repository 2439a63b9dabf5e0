"""Packs the instructors' parts of the assignments: build/scpslab-instructors-VERSION.tar.gz (`make instructors`).

Not into dist/, which is what everybody gets. The same files give the same bytes.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from scpslab.core.archive import pack
from scpslab.core.installation import version
from scpslab_course.course.assignment import FOLDER, INSTRUCTOR, names
from scpslab_course.course.instructors import NAME, VERSION_FILE

BUILD = Path(__file__).resolve().parents[1] / "build"


def write_archive(folder: Path) -> Path:
    """Writes the archive into a folder; returns its path."""
    top = f"{NAME}-{version()}"
    out = folder / f"{top}.tar.gz"
    with out.open("wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as zipped:
        pack(zipped, ((f"{top}/{name}", content) for name, content in _members()))
    return out


def _members() -> Iterator[tuple[str, Path | bytes]]:
    yield VERSION_FILE, f"{version()}\n".encode()
    for name in names():
        for path in sorted((FOLDER / name / INSTRUCTOR).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(FOLDER).as_posix(), path


if __name__ == "__main__":
    BUILD.mkdir(exist_ok=True)
    print(write_archive(BUILD))
