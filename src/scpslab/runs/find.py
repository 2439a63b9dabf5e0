"""Finds the folders of the runs that a person names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scpslab.core.errors import ResultError
from scpslab.runs.run import CAMPAIGN, MANIFEST, CampaignFolder, RunFolder

RUNS = Path("runs")


def find_run(named: str, runs: Path = RUNS) -> Path:
    """The run or campaign folder that `named` means: a folder, the name of one under `runs`, or "last" for the newest
    under `runs` with a finished cell.

    Raises:
        ResultError: there is none.
    """
    if named == "last":
        marks = [mark for name in (MANIFEST, CAMPAIGN) for mark in runs.glob(f"*/{name}")] if runs.is_dir() else []
        newest = sorted(marks, key=lambda mark: (mark.stat().st_mtime_ns, mark.parent.name), reverse=True)
        for folder in (mark.parent for mark in newest):
            if any(
                run.has_results()
                for run in (CampaignFolder(folder).runs() if is_campaign(folder) else [RunFolder(folder)])
            ):
                return folder
        raise ResultError(
            f'{runs}: found no run with a finished cell; expected one. Run a scenario first: "scpslab run SCENARIO".'
        )
    for folder in (Path(named), runs / named):
        if folder.is_dir():
            return folder
    raise ResultError(
        f'{named}: found no such folder; expected a run folder, its name under {runs}/, or the word "last". '
        "Correct the name."
    )


def runs_of(named: Sequence[str], runs: Path = RUNS) -> list[Path]:
    """The run folders that the words name, newest first, each once.

    No words name all runs under `runs`; a campaign names the runs that it lists.

    Raises:
        ResultError: a word does not name a run. A run without cells is left out, because it or its campaign may have
            been interrupted.
    """
    folders = [find_run(word, runs) for word in named] if named else [run.path for run in RunFolder.all_in(runs)]
    found: dict[Path, RunFolder] = {}
    for folder in folders:
        members = CampaignFolder(folder).runs() if is_campaign(folder) else [RunFolder(folder)]
        found |= {member.path.resolve(): member for member in members if member.is_run()}
    return [
        run.path
        for run in sorted(found.values(), key=lambda run: (-run.manifest_file.stat().st_mtime_ns, run.path.name))
    ]


def is_campaign(folder: Path) -> bool:
    """Whether a folder is a campaign's: it holds links to runs and no cells of its own."""
    return (folder / CAMPAIGN).is_file()
