"""Results by content: a cell's folder is kept under the hash of everything that determines it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any


def cell_key(plan: dict[str, Any], engine_hash: str) -> str:
    """Hash of a plan and of the engine that carries it out."""
    return hashlib.sha256(f"{engine_hash}\n{json.dumps(plan, sort_keys=True)}".encode()).hexdigest()[:32]


class ResultCache:
    """Folders of finished cells under `root`. Failed cells are not kept: asking again tries again."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def fetch(self, key: str, folder: Path) -> bool:
        """Copies the result for `key` to `folder`; false when there is none."""
        kept = self.root / key
        if not kept.is_dir():
            return False
        _copy(kept, folder)
        return True

    def keep(self, key: str, folder: Path) -> None:
        """Keeps a copy of `folder` for `key`."""
        if not (self.root / key).exists():
            self.root.mkdir(parents=True, exist_ok=True)
            _copy(folder, self.root / key)


def _copy(source: Path, target: Path) -> None:
    """Copies a folder so that it is there whole or not at all."""
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        shutil.copytree(source, part)
        if target.exists():
            shutil.rmtree(target)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
