"""Folders of the cache that several processes may want at once, names of files that several layers know, and what is no
file.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

# What a run keeps of topologies of the user's own; their files are beside it.
TOPOLOGIES = "topologies.json"


def whole_folder(target: Path, fill: Callable[[Path], None]) -> Path:
    """The folder `target`. If it is missing, `fill` fills a new folder next to it, which is then renamed.

    Processes that do so at the same time use separate folders: the first to finish wins, and the others use its folder.

    Raises:
        OSError: the content could not be written, and no other process has written it.
    """
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f"{target.name}.", suffix=".part", dir=target.parent))
    work.chmod(0o755)
    try:
        fill(work)
        work.rename(target)
    except OSError:
        if not target.exists():
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def instead_of_a_file(path: Path) -> str:
    """What is there instead of an ordinary file; "" where there is one, or nothing.

    Raises:
        OSError: it cannot be looked at.
    """
    try:
        if path.is_dir():
            return "a folder"
        path.stat()
    except FileNotFoundError:
        return "a link to a file that is not there" if path.is_symlink() else ""
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "a link that leads in a circle"
        raise
    return "" if path.is_file() else "no ordinary file"
