"""The run folder (design §7): what is where, and its manifest."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from scpslab.names import file_label, file_name

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

    def open(self, resolved_yaml: str, manifest: dict[str, Any]) -> dict[str, Any]:
        """Makes the folder, or opens it again; returns the manifest with the cells it already has."""
        (self.path / "cells").mkdir(parents=True, exist_ok=True)
        (self.path / "scenario.resolved.yaml").write_text(resolved_yaml)
        known = self.manifest()
        manifest = {"format": FORMAT, "status": "running", **manifest, "cells": known.get("cells", {})}
        self.write_manifest(manifest)
        return manifest

    def manifest(self) -> dict[str, Any]:
        """The manifest as it is on disk; empty when there is none."""
        path = self.path / "manifest.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Replaces the manifest in one step."""
        part = self.path / f"manifest.json.{os.getpid()}.part"
        part.write_text(json.dumps(manifest, indent=1) + "\n")
        part.rename(self.path / "manifest.json")
