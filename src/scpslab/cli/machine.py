"""`scpslab doctor`: checks whether this machine can run labs, and shows how to fix what is missing; `scpslab clean`:
frees its disk space.
"""

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from scpslab.cli.options import choice, engine_choice
from scpslab.cli.tables import plain_console
from scpslab.core.errors import CapabilityError, LabError, UsageError
from scpslab.core.scratch import remove_dead
from scpslab.engine import DEFAULT, ENGINES, host, hostlab
from scpslab.runs.store import DAY_S, RESULTS, Store
from scpslab.setup import cache_dir, own_images, packs
from scpslab.setup.images import CARRIED, DOCKER
from scpslab.setup.trust import CHECKED

ENGINE = engine_choice(ENGINES, "The engine to check for")
FORMATS = ("table", "json")
COLOURS = {"ok": "green", "warning": "yellow", "missing": "red"}


def doctor(
    engine: Annotated[str, ENGINE] = DEFAULT,
    format_: Annotated[str, choice("--format", FORMATS, "Output format: to read, or for other programs.")] = "table",
) -> None:
    """Check this machine, and show how to fix what is missing.

    The command checks everything that an engine needs, before anything starts.

    Examples: scpslab doctor · scpslab doctor --engine host --format json
    """
    findings = ENGINES[engine]().findings()
    if format_ == "json":
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        table = Table("check", "", "found", box=None, pad_edge=False)
        for finding in findings:
            table.add_row(finding.name, Text(finding.state, COLOURS[finding.state]), finding.found)
        console = plain_console()
        console.print(table)
        # In lines of their own, so that a command can be copied from a terminal of any width.
        for finding in findings:
            if finding.state != "ok" and finding.fix:
                console.print(f"\n{finding.name}: what to do:\n  {finding.fix}", highlight=False, soft_wrap=True)
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(CapabilityError.exit_code)


# The cache may be a folder that has others' files, too: what is built has names that begin with a hash.
BUILT = (*(part.name for part in (*CARRIED, DOCKER)), own_images.FOLDER, packs.FOLDER, CHECKED, "boot", "lab", "packed")
HASHED = "[0-9a-f]" * 16 + "*"


def clean(
    results: Annotated[bool, typer.Option("--results")] = False,
    images: Annotated[bool, typer.Option("--images")] = False,
    labs: Annotated[bool, typer.Option("--labs")] = False,
    older_than: Annotated[int | None, typer.Option(min=0, metavar="DAYS")] = None,
) -> None:
    """Free disk space: remove files that scpslab can make again.

    Choose cached results, built images or killed labs. Run folders are yours and stay.

    A lab of engine virtual or live is one process: when it ends, it leaves nothing in the system. A lab of engine host
    removes itself when it ends; a killed lab leaves processes, containers and a control group under its own id, and
    --labs removes exactly these.

    Examples: scpslab clean --results --older-than 90 · scpslab clean --images

    Options:
        results: Remove cached results of cells.
        images: Remove the built kernel, guest image and programs; the next run builds them again.
        labs: Remove what killed labs of engine host have left (as root).
        older_than: With --results: only those that nobody has used for so many days.
    """
    if not (results or images or labs):
        raise UsageError("clean: found no option; expected --results, --images or --labs. Say what to remove.")
    if older_than is not None and not results:
        raise UsageError("--older-than: found no --results; expected it, because it chooses among results. Add it.")
    if results:
        _trim(older_than)
    # Engine host keeps its lab programs where only root may write.
    if images and os.geteuid() == 0:
        _remove(host.PROGRAMS)
    if labs:
        _labs()
    for place in (cache_dir() / name for name in BUILT if images):
        for left in remove_dead(place):
            typer.echo(f"removed {left}")
        for path in sorted(place.glob(HASHED)):
            _remove(path)


def _trim(days: int | None) -> None:
    """Removes the results that nobody has used for so many days, by default all."""
    store = Store(cache_dir() / RESULTS)
    count, freed = store.trim(None, 0) if days is None else store.trim(days * DAY_S)
    left = sum(entry.size_bytes for entry in store.entries())
    did = f"removed {count} results, {freed / 10**6:.1f} MB, from" if freed else "found no results to remove in"
    typer.echo(f"{did} {store.root}; {left / 10**6:.1f} MB stay")


def _labs() -> None:
    if os.geteuid() != 0:
        advice = "Run it with sudo."
        raise CapabilityError(f"clean --labs: found user id {os.geteuid()}; expected root, who owns the labs. {advice}")
    dead = hostlab.dead_labs()
    for lab in dead:
        try:
            removed = hostlab.remove(lab)
        except OSError as error:
            raise LabError(f"{lab}: {error}. Then repeat the command.") from error
        typer.echo(f"removed lab {lab}: {', '.join(removed) or 'its folder'}")
    for lab in hostlab.labs():
        typer.echo(f"kept lab {lab}: it is running")


def _remove(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        typer.echo(f"removed {path}")
