"""The run folder (docs/results.md): what is where, and its manifest."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from scpslab.errors import ResultError
from scpslab.names import file_label, file_name
from scpslab.results.run import MANIFEST_FILE, read_manifest
from scpslab.scratch import replace_text

FORMAT = 1


class RunFolder:
    """`runs/<scenario>-<hash>/`: the same scenario on the same engine has the same folder, so asking again resumes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def named(cls, parent: Path, scenario: str, resolved_yaml: str, engine: str) -> RunFolder:
        """The folder of a resolved scenario on an engine."""
        short = hashlib.sha256(f"{engine}\n{resolved_yaml}".encode()).hexdigest()[:8]
        return cls(parent / file_name(file_label(scenario), short))

    def cell(self, cell_id: str) -> Path:
        """The folder of a cell."""
        return self.path / "cells" / file_name(cell_id)

    def open(self, resolved_yaml: str, facts: dict[str, Any]) -> dict[str, Any]:
        """Opens the folder, whose lock the caller holds; returns the manifest with the cells that it already has.

        Raises:
            ResultError: its manifest is damaged, or a newer program's.
        """
        (self.path / "cells").mkdir(parents=True, exist_ok=True)
        manifest = {"format": FORMAT, "status": "running", **facts, "cells": self.known_cells()}
        replace_text(self.path / "scenario.resolved.yaml", resolved_yaml)
        self.write_manifest(manifest)
        return manifest

    def set_aside(self) -> Path:
        """Gives a manifest that cannot be read another name."""
        return self._manifest.replace(self._manifest.with_name("manifest.json.damaged"))

    def known_cells(self) -> dict[str, dict[str, str]]:
        """What the manifest on disk says of each cell; nothing where there is none."""
        if not self._manifest.exists():
            return {}
        cells = read_manifest(self.path).get("cells", {})
        if not isinstance(cells, dict):
            raise ResultError(f"{self._manifest}: cells: found {type(cells).__name__}; expected an object.")
        return {name: entry for name, entry in cells.items() if isinstance(entry, dict)}

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Replaces the manifest in one step."""
        replace_text(self._manifest, json.dumps(manifest, indent=1) + "\n")

    @property
    def _manifest(self) -> Path:
        return self.path / MANIFEST_FILE
