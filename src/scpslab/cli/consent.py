"""Consent before engine host runs a scenario: says what its commands may do, and checks who owns the file."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from scpslab.core.errors import UsageError
from scpslab.core.ownership import somebody_elses
from scpslab.scenario.campaign import campaign_path, is_campaign, load_campaign
from scpslab.scenario.load import find


def ask_for_host(scenario: str, is_trusted: bool, console: Console) -> None:
    """Says what engine host lets a scenario do, and refuses a file that anybody but root and the user owns or may write.

    Raises:
        UsageError: there is such a file, and the user has not given --trust.
    """
    console.print("engine host: a scenario's commands run as root of this machine and can change all of it (docs/security.md).", highlight=False)
    for path in _files(scenario):
        if not is_trusted and (found := somebody_elses(path)):
            raise UsageError(
                f"{path}: found {found}; expected a file that you or root own and nobody else may write, because its commands run as root. "
                "Read it, then run it with --trust; or run it with --engine virtual, where it can do no harm."
            )


def _files(scenario: str) -> list[Path]:
    """The files from which a run takes commands: the scenario, or the campaign and its scenarios."""
    campaign = campaign_path(scenario) if is_campaign(scenario) else None
    if campaign is None:
        return [_scenario_file(scenario)]
    return [campaign, *(_scenario_file(member.name) for member in load_campaign(scenario).members)]


def _scenario_file(name: str) -> Path:
    return find(name if Path(name).is_file() else name.partition(":")[0])
