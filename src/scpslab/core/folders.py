"""Folders of the cache that several processes may want at once, and names of files that several layers know."""

from __future__ import annotations

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
