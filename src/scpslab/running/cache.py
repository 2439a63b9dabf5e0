"""Results by content: a cell's folder is kept under the hash of everything that determines it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from scpslab import plan as plans
from scpslab.names import UNFINISHED
from scpslab.plan import Plan
from scpslab.scratch import scratch


def cell_key(plan: Plan, engine_hash: str) -> str:
    """Hash of a plan and of the engine that carries it out."""
    return hashlib.sha256(f"{engine_hash}\n{json.dumps(plans.write(plan), sort_keys=True)}".encode()).hexdigest()[:32]


class ResultCache:
    """Folders of finished cells under `root`. Failed cells are not kept: the next run tries them again."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def fetch(self, key: str, folder: Path) -> bool:
        """Copies the result for `key` to `folder`, whole or not at all; returns false if there is none."""
        kept = self.root / key
        if not kept.is_dir():
            return False
        part = folder.with_name(folder.name + UNFINISHED)
        shutil.rmtree(part, ignore_errors=True)
        try:
            shutil.copytree(kept, part)
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
        except (FileNotFoundError, shutil.Error):
            if kept.is_dir():
                raise
            # Another process has emptied the cache meanwhile.
            return False
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return True

    def keep(self, key: str, folder: Path) -> None:
        """Keeps a copy of `folder` for `key`. If several processes do so, the first copy stays: all have the same bytes."""
        if (self.root / key).exists():
            return
        self.root.mkdir(parents=True, exist_ok=True)
        with scratch(self.root) as work:
            shutil.copytree(folder, work / key)
            try:
                (work / key).rename(self.root / key)
            except OSError:
                if not (self.root / key).exists():
                    raise

    def forget(self, key: str) -> None:
        """Removes a result that cannot be read."""
        shutil.rmtree(self.root / key, ignore_errors=True)
