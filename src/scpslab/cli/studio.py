"""`scpslab studio`: a run in a browser."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from scpslab.analysis.run import open_run
from scpslab.cli.docs import docs
from scpslab.cli.losses import cells_of
from scpslab.cli.options import check_out, runs
from scpslab.core.errors import UsageError
from scpslab.core.scratch import replace_text
from scpslab.runs import find_run
from scpslab.studio.run import RunPages
from scpslab.studio.server import LOCAL, Studio

MOST_EXPORTED = 24


def studio(
    run: Annotated[
        str,
        typer.Argument(
            metavar="[RUN]", help='Run folder, its name under runs/, or "last". Default: last.', autocompletion=runs
        ),
    ] = "last",
    cell: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CELL]...", help="With --export: cells, by their ids; * stands for anything. Default: all."
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one file of HTML that works offline, and serve nothing."),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="The address to listen at. Default: this machine only."),
    ] = LOCAL,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="The port to listen at. Default: a free one.")
    ] = 0,
    api: Annotated[bool, typer.Option("--api", help="Explain the data in a page, for other programs.")] = False,
) -> None:
    """Look at a run in a browser: every packet of a cell, over time.

    The page of a cell shows its network with the packets on their way, and below each other the sequence, the window,
    the round trip, the queue, the rates and the losses by cause. A cursor moves through time, packet by packet. The
    command prints the address to open and ends with Ctrl-C. With --export it writes the page as one file instead; two
    cells in a file can be compared. The page "studio" explains it.

    Examples: scpslab studio last · scpslab studio last "stack=cubic,r1" --export cubic.html · scpslab studio last
    "*,ber=1e-06,r1" --export compared.html
    """
    if api:
        docs("plan-format#the-data-in-a-page-of-the-studio")
        return
    opened = open_run(find_run(run))
    pages = RunPages(opened)
    if export is None:
        if cell:
            raise UsageError(f'CELL: found "{cell[0]}" without --export; expected none. The page lists all cells.')
        _serve(Studio(pages, listen, port))
        return
    check_out(export, "--export")
    chosen = cells_of(opened, cell, by="CELL") if cell else list(opened.cells)
    if len(chosen) > MOST_EXPORTED:
        raise UsageError(
            f"--export {export}: found {len(chosen)} cells; expected at most {MOST_EXPORTED}. Name those that you want."
        )
    shown = range(len(chosen)) if len(chosen) == 1 or (cell and len(chosen) == 2) else ()
    replace_text(export, pages.cells(chosen, shown=shown).html)
    typer.echo(f"wrote {export}", err=True)


def _serve(server: Studio) -> None:
    """Prints the address, and how to reach it from another machine; ends with the user's Ctrl-C."""
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    with server.running():
        typer.echo(server.address)
        for line in _ways(server.server_port, is_local=server.server_address[0] in (LOCAL, "::1")):
            typer.echo(line, err=True)
        typer.echo("Open the address in a browser. Ctrl-C ends.", err=True)
        signal.sigwait(ends)


def _ways(port: int, *, is_local: bool) -> list[str]:
    """What to type where the browser is on another machine."""
    if not is_local:
        return ["Whoever has the address may read this run, over a connection that is not encrypted."]
    forward = f"-L {port}:{LOCAL}:{port}"
    if Path("/.dockerenv").exists():
        start = f"start it with -p {LOCAL}:{port}:{port}, and this command with --listen 0.0.0.0 --port {port}"
        return [f"From outside of the container: {start}"]
    if Path("/vagrant").is_dir():
        return [f"From outside of the machine, in a second terminal: vagrant ssh -- -N {forward}"]
    if "SSH_CONNECTION" in os.environ:
        return [f"On the machine where you sit, in a second terminal: ssh -N {forward} {os.uname().nodename}"]
    return []
