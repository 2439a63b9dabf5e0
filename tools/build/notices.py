"""The notices of copyright of what a part consists of, as one text beside its product: who passes the part on passes
them on.
"""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

# Beside a product.
FILE = "copyright.txt"
# Where a Debian package has its notice (Debian Policy, 12.5).
DEBIAN = Path("usr/share/doc")
NAMES = ("LICENSE*", "LICENCE*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*")


def take_from_debian(root: Path) -> str:
    """The notices of all packages of an unpacked Debian, in the order of their names; its folder of documentation is
    then empty.
    """
    folder = root / DEBIAN
    packages = sorted(path for path in folder.iterdir() if not path.is_symlink())
    text = _joined(
        (path.name, [file]) for path in packages if (file := path / "copyright").is_file() and not file.is_symlink()
    )
    for path in folder.iterdir():
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)
    return text


def of_crates(packages: Iterable[tuple[str, Path]]) -> str:
    """The notices of Rust libraries, each with its name and the folder of its source."""
    return _joined((name, list(_files(folder))) for name, folder in sorted(packages))


def _files(folder: Path) -> Iterator[Path]:
    for pattern in NAMES:
        yield from sorted(file for file in folder.glob(pattern) if file.is_file())


def _joined(notices: Iterable[tuple[str, list[Path]]]) -> str:
    texts = (
        (name, file.read_text(encoding="utf-8", errors="replace").strip()) for name, files in notices for file in files
    )
    return "\n".join(f"==== {name}\n\n{text}\n" for name, text in texts)
