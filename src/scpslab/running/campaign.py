"""Campaigns: scenarios run one after the other with the same listeners, and a folder that links to their runs.

Each run is an ordinary run under its usual name: earlier results count, and an interrupted campaign resumes where it stopped.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scpslab.core.names import file_label, file_name
from scpslab.running.command import command, program
from scpslab.running.events import CampaignDone, CampaignFailed, CampaignInterrupted, CampaignStarted, Event, Listener, Note, Tally
from scpslab.running.runner import RunOptions, RunResult, ScenarioRun
from scpslab.runs import CampaignFolder, held
from scpslab.scenario.campaign import Campaign, load_campaign


@dataclass(frozen=True)
class CampaignResult:
    """The folder of a campaign, and the outcome of its cells."""

    folder: Path
    runs: tuple[RunResult, ...]

    @property
    def failed(self) -> int:
        """The number of failed cells of all runs."""
        return sum(run.failed for run in self.runs)


def run_campaign(name: str, options: RunOptions, listeners: Sequence[Listener] = ()) -> CampaignResult:
    """Runs every scenario of a campaign (path or name, with or without a variant). All scenarios are planned before the first starts.

    Raises:
        ScenarioError: a file is not valid; nothing was run.
        KeyboardInterrupt: finished cells are kept.
    """
    campaign = load_campaign(name)
    tally = Tally()
    listeners = (tally, *listeners)
    for pattern in campaign.left_out:
        _tell(listeners, Note(f"{campaign.name}: skipped {pattern}, because no scenario has this name"))
    runs = [ScenarioRun(member.name, replace(options, overrides=[*member.overrides, *options.overrides]), listeners) for member in campaign.members]
    own_name = file_name(file_label(campaign.name), _hash(runs))
    folder = CampaignFolder(options.place(own_name))
    asked: dict[str, Any] = {"command": command(name, options.engine, options.overrides), "settings": list(options.overrides), "program": program()}
    if options.shard:
        asked["shard"] = {"campaign": own_name, "number": options.shard.number, "of": options.shard.of}
    with held(folder.path):
        return _run(campaign, runs, tally, listeners, _CampaignFile(folder, campaign, runs, asked))


@dataclass(frozen=True)
class _CampaignFile:
    """campaign.json: what does not change while the campaign runs."""

    folder: CampaignFolder
    campaign: Campaign
    runs: Sequence[ScenarioRun]
    asked: dict[str, Any]

    def write(self, facts: dict[str, Any]) -> None:
        """Writes the file with how far the campaign has come."""
        entries = [
            {"scenario": run.scenario.name, "overrides": run.options.overrides, "cells": len(run.cells), "run": self.folder.path_of(run.folder)}
            for run in self.runs
        ]
        head = {"campaign": self.campaign.name, "title": self.campaign.title, **self.asked}
        self.folder.write({**head, **facts, "left_out": self.campaign.left_out, "runs": entries}, [run.folder for run in self.runs])


def _run(campaign: Campaign, runs: Sequence[ScenarioRun], tally: Tally, listeners: Sequence[Listener], file: _CampaignFile) -> CampaignResult:
    folder = file.folder
    file.write({"status": "running"})
    started = time.monotonic()
    _tell(listeners, CampaignStarted(campaign.name, folder.path, tuple(run.scenario.name for run in runs), sum(len(run.cells) for run in runs)))
    try:
        results = _all(runs, tally, started, file)
    except KeyboardInterrupt:
        _tell(listeners, CampaignInterrupted(campaign.name, folder.path))
        raise
    except Exception as error:
        _tell(listeners, CampaignFailed(campaign.name, folder.path, error))
        raise
    _tell(listeners, CampaignDone(campaign.name, folder.path, round(time.monotonic() - started, 2)))
    return CampaignResult(folder.path, results)


def _all(runs: Sequence[ScenarioRun], tally: Tally, started: float, file: _CampaignFile) -> tuple[RunResult, ...]:
    """Runs the scenarios one after the other; campaign.json states the outcome whatever happens."""
    status = "interrupted"
    try:
        results = tuple(run.run() for run in runs)
        status = "completed"
    finally:
        facts = {"status": status, "cells": tally.done, "cells_from_cache": tally.cached, "virtual_s": round(tally.virtual_s, 3)}
        file.write({**facts, "wall_s": round(time.monotonic() - started, 2)})
    return results


def _tell(listeners: Sequence[Listener], event: Event) -> None:
    for listener in listeners:
        listener(event)


def _hash(runs: Sequence[ScenarioRun]) -> str:
    """The same for the same runs."""
    return hashlib.sha256("\n".join(run.name for run in runs).encode()).hexdigest()[:8]
