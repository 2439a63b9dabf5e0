"""`scpslab studio`: a run in a browser."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from scpslab.analysis.run import Run, open_run
from scpslab.cli.docs import docs
from scpslab.cli.options import Trust, check_out, runs
from scpslab.cli.packets import cells_of
from scpslab.cli.shell import CONTAINERS, ENGINE, Keep, Session, Set, Stacks, begun
from scpslab.core.errors import LabError, UsageError
from scpslab.core.scratch import replace_text, scratch
from scpslab.engine.base import Engine, Interrupted
from scpslab.engine.console import elsewhere
from scpslab.plan import Plan
from scpslab.runs import find_run
from scpslab.studio.live import Live
from scpslab.studio.page import RunPages, path_of
from scpslab.studio.server import LOCAL, Studio

MOST_EXPORTED = 24


def studio(
    run: Annotated[str, typer.Argument(metavar="[RUN]", autocompletion=runs)] = "last",
    cell: Annotated[list[str] | None, typer.Argument(metavar="[CELL]...")] = None,
    beside: Annotated[list[str] | None, typer.Option(metavar="RUN", autocompletion=runs)] = None,
    export: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    listen: Annotated[str, typer.Option(metavar="ADDRESS")] = LOCAL,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT")] = 0,
    api: Annotated[bool, typer.Option("--api")] = False,
    live: Annotated[str | None, typer.Option(metavar="TOPOLOGY")] = None,
    set_: Set = None,
    stack: Stacks = None,
    engine: Annotated[str, ENGINE] = "live",
    containers: Annotated[str, CONTAINERS] = "process",
    keep: Keep = None,
    trust: Trust = False,
) -> None:
    """Look at a run in a browser: every packet of a cell, over time.

    The page of a cell shows its network with the packets on their way, and below each other the sequence, the window,
    the round trip, the queue, the rates and the losses by cause. A cursor moves through time, packet by packet. The
    command prints the address to open and ends with Ctrl-C. With --export it writes the page as one file instead; two
    cells can be compared. With --live it starts a network, and the page changes its links, starts traffic and
    shows what happens. The page "studio" explains it.

    Examples: scpslab studio last · scpslab studio last "stack=cubic,r1" --export cubic.html · scpslab studio last
    "*,ber=1e-06,r1" --export compared.html · scpslab studio RUN "ber=1e-06,r1" --beside RUN2 · scpslab studio --live
    fy97 --stack "*=scps:fy97-rate"

    Options:
        run: Run folder, its name under runs/, or "last". Default: last.
        cell: Cells by id (* for anything). One is opened, two are compared.
        beside: Another run, for the same page; may be repeated. Cells are then those of all these runs.
        export: Write one file of HTML that works offline, and serve nothing.
        listen: The address to listen at. Default: this machine only.
        port: The port to listen at. Default: a free one.
        api: Explain the data in a page, for other programs.
        live: Start this topology on the wall clock instead, with a page to use it.
    """
    if api:
        docs("plan-format#the-data-in-a-page-of-the-studio")
        return
    if live is not None:
        if cell or beside or export:
            raise UsageError(f"--live {live}: found CELL, --beside or --export, which belong to a run. Leave them out.")
        if engine == "host" and listen not in (LOCAL, "::1"):
            found = f"--listen: found {listen} with --engine host, where commands are run as root; expected {LOCAL}."
            raise UsageError(f"{found} Remove --listen, and forward the port with ssh.")
        _watch(*begun(live, set_ or [], stack or [], engine, containers, keep, trust=trust), listen, port)
        return
    pages = RunPages([open_run(folder) for folder in dict.fromkeys(map(find_run, [run, *(beside or [])]))])
    every = Run(pages.runs[0].folder, tuple(pages.cells.values()))
    wanted = cells_of(every, cell, by="CELL") if cell else every.cells
    chosen = [name for name, one in pages.cells.items() if one in wanted]
    if export is None:
        _serve(Studio(pages, listen, port), path_of(chosen) if cell or beside else "")
        return
    check_out(export, "--export")
    if len(chosen) > MOST_EXPORTED:
        found = f"found {len(chosen)} cells; expected at most {MOST_EXPORTED}"
        raise UsageError(f"--export {export}: {found}. Name those that you want.")
    shown = range(len(chosen)) if len(chosen) <= 1 + bool(cell or beside) else ()
    replace_text(export, pages.page(chosen, shown=shown).html)
    typer.echo(f"wrote {export}", err=True)


def _serve(server: Studio, path: str) -> None:
    """Prints the address, and how to reach it from another machine; ends with the user's Ctrl-C."""
    is_asked = Event()
    # Any thread may be the one that gets the signal.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_asked.set())
    with server.running():
        _tell(server, path)
        is_asked.wait()


def _watch(plan: Plan, session: Session, runner: Engine, listen: str, port: int) -> None:
    """Starts a lab and serves its page until the session, or the command, is ended."""
    plan = replace(plan, cell=replace(plan.cell, packets=True))
    with scratch() as folder:
        live = Live(plan, session.steps, session.keep, folder / "shown", f"on the wall clock, engine {runner.name}")
        server = Studio(live, listen, port)

        def meanwhile(out: Path) -> None:
            session.update(out)
            live.update(out)

        with server.running():
            _tell(server)
            try:
                code = runner.interact(plan, folder, meanwhile, lambda: elsewhere(live.show, live.lend))
            except Interrupted:
                code = 0
            meanwhile(folder / "cell" / "out")
    for path in session.files:
        typer.echo(path)
    if code:
        raise typer.Exit(LabError.exit_code)


def _tell(server: Studio, path: str = "") -> None:
    typer.echo(f"{server.address}{path}")
    for line in _ways(server.server_port, is_local=server.server_address[0] in (LOCAL, "::1")):
        typer.echo(line, err=True)
    typer.echo("Open the address in a browser. Ctrl-C ends.", err=True)


def _ways(port: int, *, is_local: bool) -> list[str]:
    """What to type where the browser is on another machine."""
    if not is_local:
        return ["Whoever has the address may use it, over a connection that is not encrypted."]
    forward = f"-L {port}:{LOCAL}:{port}"
    if Path("/.dockerenv").exists():
        start = f"start it with -p {LOCAL}:{port}:{port}, and this command with --listen 0.0.0.0 --port {port}"
        return [f"From outside of the container: {start}"]
    if Path("/vagrant").is_dir():
        return [f"From outside of the machine, in a second terminal: vagrant ssh -- -N {forward}"]
    if "SSH_CONNECTION" in os.environ:
        return [f"On the machine where you sit, in a second terminal: ssh -N {forward} {os.uname().nodename}"]
    return []
