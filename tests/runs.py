"""Folders of runs that no lab has made."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scpslab import plan as plans
from scpslab.plan import Plan

Lines = Iterable[Mapping[str, Any]]


def write_cell(folder: Path, plan: Plan, records: Mapping[str, Lines] | None = None, **ended: Any) -> Path:
    """A cell's folder with a plan, how it ended, and its records."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(plans.text(plan))
    (folder / "status.json").write_text(json.dumps({"status": "completed", "reason": "", **ended}))
    for name, lines in (records or {}).items():
        write_record(folder, name, lines)
    return folder


def write_record(folder: Path, name: str, lines: Lines) -> None:
    """A record of a cell."""
    (folder / "records").mkdir(exist_ok=True)
    (folder / "records" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_manifest(folder: Path, scenario: str, **more: Any) -> None:
    """The manifest of a completed run."""
    fields = {"format": 1, "scenario": scenario, "status": "completed", **more}
    (folder / "manifest.json").write_text(json.dumps(fields))
