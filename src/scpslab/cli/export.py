"""`scpslab export`: packs a run or campaign into one file from which anyone can reproduce it."""

from pathlib import Path
from typing import Annotated

import typer

from scpslab.cli.options import RunOrCampaign, check_out
from scpslab.cli.terminal import printable, warn
from scpslab.core.errors import ResultError, UsageError
from scpslab.runs import CampaignFolder, RunFolder, find_run, is_campaign
from scpslab.runs.archive import SUFFIX, write_archive

GZIP = b"\x1f\x8b"


def export(
    run: RunOrCampaign = "last",
    out: Annotated[Path | None, typer.Option(callback=printable)] = None,
    whole: Annotated[bool, typer.Option("--whole")] = False,
) -> None:
    """Pack a run into one file from which anyone can reproduce it.

    The file holds the resolved scenario, every plan, versions and hashes, results, and digests of all files. The
    command prints its path. "scpslab verify FILE" runs it again, on this or another machine, and compares the bytes.

    Examples: scpslab export last · scpslab export last --out run.scpslab.tar.gz --whole

    Options:
        out: The file to write; default: RUN.scpslab.tar.gz in this folder.
        whole: Include records, captures and logs. Without them the file is small; a re-run makes them again.
    """
    folder = find_run(run).resolve()
    if out is not None:
        _require_room(out)
    # A run without cells is not left out: others would take the rest for the whole campaign.
    runs = {run.path.resolve() for run in CampaignFolder(folder).runs()} if is_campaign(folder) else {folder}
    if not runs:
        raise ResultError(f"{folder}: found a campaign without runs; expected at least one. Run it first.")
    for lost in filter(None, (RunFolder(path).lost_cells() for path in sorted(runs))):
        warn(lost)
    typer.echo(write_archive(sorted(runs), out or Path(f"{folder.name}{SUFFIX}"), whole=whole))


def _require_room(out: Path) -> None:
    """Refuses a path that would replace something other than an earlier archive."""
    check_out(out)
    if out.is_file() and out.stat().st_size:
        with out.open("rb") as file:
            if file.read(len(GZIP)) != GZIP:
                expected = "expected none, or an archive to replace. Choose another name."
                raise UsageError(f"--out {out}: found a file that is no archive; {expected}")
