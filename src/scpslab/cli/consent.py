"""Consent before engine host runs a scenario: says what its commands may do, and checks who owns the file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rich.console import Console

from scpslab.errors import UsageError
from scpslab.scenario.campaign import campaign_path, is_campaign, load_campaign
from scpslab.scenario.load import find

ROOT = 0


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


def somebody_elses(path: Path) -> str:
    """Why a file counts as somebody else's; "" when root or the calling user (under sudo: the user who called it) owns it."""
    found = path.stat()
    users = {ROOT, os.geteuid(), int(os.environ.get("SUDO_UID") or ROOT)}
    if found.st_uid not in users:
        return f"a file of user {found.st_uid}"
    # On systems where every user has a group of their own, files are writable by that group.
    groups = {ROOT, os.getegid(), int(os.environ.get("SUDO_GID") or ROOT)}
    by_others = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid not in groups)
    return "a file that others may write" if by_others else ""


def _files(scenario: str) -> list[Path]:
    """The files from which a run takes commands: the scenario, or the campaign and its scenarios."""
    campaign = campaign_path(scenario) if is_campaign(scenario) else None
    if campaign is None:
        return [_scenario_file(scenario)]
    return [campaign, *(_scenario_file(member.name) for member in load_campaign(scenario).members)]


def _scenario_file(name: str) -> Path:
    return find(name if Path(name).is_file() else name.partition(":")[0])
