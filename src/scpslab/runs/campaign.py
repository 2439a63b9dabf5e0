"""The folder of a campaign: campaign.json, which lists its runs, and a link to each of them for people."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scpslab.core.errors import ResultError
from scpslab.core.scratch import replace_text
from scpslab.runs.reading import FORMAT, check_format, json_object
from scpslab.runs.run import RunFolder

CAMPAIGN = "campaign.json"


class CampaignFolder:
    """A folder that links to runs and holds no cells of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path / CAMPAIGN

    def read(self) -> dict[str, Any]:
        """The content of campaign.json.

        Raises:
            ResultError: campaign.json cannot be read.
        """
        fields = json_object(self.file)
        check_format(self.file, fields.get("format", FORMAT))
        entries, left_out = fields.get("runs"), fields.get("left_out", [])
        are_runs = isinstance(entries, list) and all(isinstance(entry, dict) and isinstance(entry.get("run"), str) for entry in entries)
        are_names = isinstance(left_out, list) and all(isinstance(name, str) for name in left_out)
        if not (are_runs and are_names and all(isinstance(fields.get(key), str) for key in ("campaign", "title", "status"))):
            expected = "expected campaign, title, status, runs and left_out. Run the campaign again: it writes the file anew."
            raise ResultError(f"{self.file}: found no campaign; {expected}")
        return {**fields, "left_out": left_out}

    def runs(self) -> list[RunFolder]:
        """The folders of the runs, in the campaign's order, whether they exist or not.

        Raises:
            ResultError: campaign.json cannot be read.
        """
        return [RunFolder(self.path / entry["run"]) for entry in self.read()["runs"]]

    def path_of(self, run: RunFolder) -> str:
        """The path to a run from here, as campaign.json has it."""
        return os.path.relpath(run.path, self.path)

    def write(self, fields: dict[str, Any], runs: Iterable[RunFolder]) -> None:
        """Replaces campaign.json in one step, and makes the links that are missing."""
        self.path.mkdir(parents=True, exist_ok=True)
        for run in runs:
            link = self.path / run.path.name
            if not link.is_symlink():
                link.symlink_to(self.path_of(run))
        replace_text(self.file, json.dumps({"format": FORMAT, **fields}, indent=1) + "\n")
