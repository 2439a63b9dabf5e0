"""Campaigns: scenarios one after the other with one progress, and a folder that leads to their runs.

Each scenario's run is a run like any other, under the same name: what was run before counts, and an interrupted campaign goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from scpslab.names import file_label, file_name
from scpslab.runfolder import CampaignFolder, held
from scpslab.running.progress import RunProgress
from scpslab.running.runner import RunOptions, RunResult, ScenarioRun
from scpslab.scenario.campaign import Campaign, load_campaign


@dataclass(frozen=True)
class CampaignResult:
    """Where a campaign is, and how its cells went."""

    folder: Path
    runs: tuple[RunResult, ...]

    @property
    def failed(self) -> int:
        """Cells that failed, of all runs."""
        return sum(run.failed for run in self.runs)


def run_campaign(name: str, options: RunOptions, console: Console) -> CampaignResult:
    """Runs every scenario of a campaign (path or name, with or without a variant); all of them are planned before the first starts.

    Raises:
        ScenarioError: a file that says something that cannot be; nothing was run.
        KeyboardInterrupt: finished cells are kept.
    """
    campaign = load_campaign(name)
    for pattern in campaign.left_out:
        console.print(f"{campaign.name}: no scenario is called {pattern}; left out", highlight=False)
    runs = [ScenarioRun(member.name, replace(options, overrides=[*member.overrides, *options.overrides]), console) for member in campaign.members]
    folder = CampaignFolder(options.out / file_name(file_label(campaign.name), _hash(runs)))
    with held(folder.path):
        return _run(folder, campaign, runs, console)


def _run(folder: CampaignFolder, campaign: Campaign, runs: Sequence[ScenarioRun], console: Console) -> CampaignResult:
    progress = RunProgress(console, sum(len(run.cells) for run in runs))
    results: list[RunResult] = []
    status = "interrupted"
    _write(folder, campaign, runs, {"status": "running"})
    started = time.monotonic()
    try:
        with progress:
            for number, run in enumerate(runs, start=1):
                progress.scenario = f"{number} of {len(runs)} {run.scenario.name}"
                results.append(run.run(progress))
        status = "completed"
    finally:
        facts = {"status": status, "cells": progress.done, "cells_from_cache": progress.cached, "virtual_s": round(progress.virtual_s, 3)}
        _write(folder, campaign, runs, {**facts, "wall_s": round(time.monotonic() - started, 2)})
    progress.scenario = ""
    console.print(progress.summary(), highlight=False)
    return CampaignResult(folder.path, tuple(results))


def _hash(runs: Sequence[ScenarioRun]) -> str:
    """The same for the same runs."""
    return hashlib.sha256("\n".join(run.folder.path.name for run in runs).encode()).hexdigest()[:8]


def _write(folder: CampaignFolder, campaign: Campaign, runs: Sequence[ScenarioRun], facts: dict[str, Any]) -> None:
    entries = [{"scenario": run.scenario.name, "overrides": run.options.overrides, "cells": len(run.cells), "run": folder.path_of(run.folder)} for run in runs]
    fields = {"campaign": campaign.name, "title": campaign.title, **facts, "left_out": campaign.left_out, "runs": entries}
    folder.write(fields, [run.folder for run in runs])
