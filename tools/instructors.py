"""Packs the instructors' parts of the assignments: build/scpslab-instructors-VERSION.tar.gz (`make instructors`).

Not into dist/, which is what everybody gets. The same files give the same bytes.
"""

import gzip
import io
from collections.abc import Iterator
from pathlib import Path

from scpslab.core.archive import pack
from scpslab.core.installation import version
from scpslab.core.scratch import replace_bytes
from scpslab_course.course.assignment import FOLDER, INSTRUCTOR, NAME, VERSION_FILE, names

BUILD = Path(__file__).resolve().parents[1] / "build"


def write_archive(folder: Path) -> Path:
    """Writes the archive into a folder; returns its path."""
    top = f"{NAME}-{version()}"
    out = folder / f"{top}.tar.gz"
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", mtime=0, fileobj=packed) as zipped:
        pack(zipped, ((f"{top}/{name}", content) for name, content in _members()))
    replace_bytes(out, packed.getvalue())
    return out


def _members() -> Iterator[tuple[str, Path | bytes]]:
    yield VERSION_FILE, f"{version()}\n".encode()
    for name in names():
        for path in sorted((FOLDER / name / INSTRUCTOR).rglob("*")):
            # Editors leave hidden files, and a link may lead out of the folder.
            is_own = path.is_file() and not path.is_symlink() and not path.name.startswith(".")
            if is_own and "__pycache__" not in path.parts:
                yield path.relative_to(FOLDER).as_posix(), path


if __name__ == "__main__":
    BUILD.mkdir(exist_ok=True)
    print(write_archive(BUILD))
