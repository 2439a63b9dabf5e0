"""Campaigns: scenarios run one after the other with the same listeners, and a folder that links to their runs.

Each run is an ordinary run under its usual name: earlier results count, and an interrupted campaign resumes where it
stopped.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from scpslab.core.names import file_label, file_name
from scpslab.running import events
from scpslab.running.events import Listener, Note, Tally
from scpslab.running.run_plan import RunOptions, asked, plan_run, program
from scpslab.running.runner import RunResult, execute
from scpslab.runs import CampaignFolder, held
from scpslab.scenario.campaign import load_campaign


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
    """Runs every scenario of a campaign (path or name, with or without a variant).

    All scenarios are planned before the first starts. campaign.json states the outcome whatever happens.

    Raises:
        ScenarioError: a file is not valid; nothing was run.
        KeyboardInterrupt: finished cells are kept.
    """
    campaign = load_campaign(name)
    tally = Tally()
    listeners = (tally, *listeners)
    tell = events.to_all(listeners)
    for pattern in campaign.left_out:
        tell(Note(f"{campaign.name}: skipped {pattern}, because no scenario has this name"))
    runs = []
    for member in campaign.members:
        overrides = [*member.overrides, *options.overrides]
        runs.append(plan_run(member.name, replace(options, overrides=overrides)))
    digest = hashlib.sha256("\n".join(run.name for run in runs).encode()).hexdigest()[:8]
    own_name = file_name(file_label(campaign.name), digest)
    folder = CampaignFolder(options.place(own_name))
    head = {"campaign": campaign.name, "title": campaign.title, **asked(name, options), "program": program()}
    if options.shard:
        head["shard"] = {"campaign": own_name, "number": options.shard.number, "of": options.shard.of}
    entries = [
        {"scenario": run.scenario, "overrides": run.options.overrides, "cells": len(run.plans), "run": path}
        for run, path in ((run, folder.path_of(run.folder)) for run in runs)
    ]

    def write(**progress: object) -> None:
        fields = {**head, **progress, "left_out": campaign.left_out, "runs": entries}
        folder.write(fields, [run.folder for run in runs])

    of_campaign = campaign.name, folder.path
    failed = partial(events.CampaignFailed, *of_campaign)
    with held(folder.path):
        write(status="running")
        began = time.monotonic()
        names = tuple(run.scenario for run in runs)
        tell(events.CampaignStarted(*of_campaign, names, sum(len(run.plans) for run in runs)))
        with events.endings(tell, events.CampaignInterrupted(*of_campaign), failed):
            status = "interrupted"
            try:
                results = tuple(execute(run, listeners) for run in runs)
                status = "completed"
            finally:
                wall_s = round(time.monotonic() - began, 2)
                done = {"cells": tally.done, "cells_from_cache": tally.cached, "virtual_s": round(tally.virtual_s, 3)}
                write(status=status, **done, wall_s=wall_s)
        tell(events.CampaignDone(*of_campaign, wall_s))
    return CampaignResult(folder.path, results)
