"""Who may change the user's cache: programs and results are taken from it as they are (docs/security.md)."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from scpslab.core.folders import somebody_elses
from scpslab.engine.base import Finding
from scpslab.setup import cache_dir

STATUS = Path("/proc/self/status")


def rights() -> Finding:
    """May others change what this user runs?"""
    name, cache = "cache's rights", cache_dir()
    for path in (cache, *(sorted(cache.iterdir()) if cache.is_dir() else ())):
        if why := _changeable(path):
            fix = f"chmod -R go-w {cache}, or remove it if you do not know what is in it: it is built again"
            return Finding(name, "warning", f"{path} is {why}: others may change programs that you run", fix)
    mask = _umask()
    if mask is not None and not mask & stat.S_IWOTH:
        found = f"umask {mask:03o}: others may write to every file that you make, the cache's too"
        return Finding(name, "warning", found, "umask 022, also in your shell's start file")
    return Finding(name, "ok", f"only you may change {cache}")


def _changeable(path: Path) -> str:
    try:
        why = somebody_elses(path)
        return why.replace("a file", "a folder") if path.is_dir() else why
    except OSError:
        return ""


def _umask() -> int | None:
    """The mask of new files. Asking the system for it would change it."""
    try:
        found = re.search(r"^Umask:\s*([0-7]+)", STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1], 8) if found else None
