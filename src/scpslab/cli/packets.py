"""`scpslab packets`: what became of every packet of a cell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scpslab.analysis.output import csv_text
from scpslab.analysis.run import RunCell, open_run
from scpslab.cli.losses import cells_of
from scpslab.cli.options import runs
from scpslab.core.errors import UsageError
from scpslab.core.names import file_name
from scpslab.measure.packets import read
from scpslab.measure.qlog import qlogs
from scpslab.measure.record import Record
from scpslab.measure.shown import COLUMNS, pcapng, rows
from scpslab.measure.states import SHOWN as STATE_COLUMNS
from scpslab.measure.states import rows as state_rows
from scpslab.runs import find_run


def packets(
    run: Annotated[
        str,
        typer.Argument(
            metavar="[RUN]", help='Run folder, its name under runs/, or "last". Default: last.', autocompletion=runs
        ),
    ] = "last",
    cell: Annotated[
        str | None,
        typer.Argument(metavar="[CELL]", help="A cell, by its id. Not needed if the run has one cell."),
    ] = None,
    link: Annotated[
        list[str] | None,
        typer.Option(metavar="LINK", help="Packets of this link only. The option may be repeated."),
    ] = None,
    to_pcapng: Annotated[
        Path | None,
        typer.Option(
            "--pcapng",
            metavar="FILE",
            help="Write this file for Wireshark instead, with what became of each packet as its comment.",
        ),
    ] = None,
    to_qlog: Annotated[
        Path | None,
        typer.Option(
            "--qlog",
            metavar="FOLDER",
            help="Write a file of qlog into this folder instead for each flow of TCP that carried data, with the cause "
            "of each loss.",
        ),
    ] = None,
    states: Annotated[
        bool,
        typer.Option(
            "--states",
            help="List the states of the kernel's TCP instead: window, threshold and smoothed round trip at each "
            "acknowledgement that changed them.",
        ),
    ] = False,
) -> None:
    """List every packet of a cell, with what became of it.

    The CSV has a line for each link direction that a packet was offered to: when it was offered, the bytes that it
    waited behind, when it was due to leave the queue, when it left and arrived, what became of it, and what its headers
    show. The page "plan-format" explains them.

    Examples: scpslab packets last > packets.csv · scpslab packets last "ber=1e-06,r1" --link hop · scpslab packets last
    r1 --pcapng packets.pcapng · scpslab packets last r1 --states · scpslab packets last r1 --qlog qlogs
    """
    forms = {"--pcapng": to_pcapng is not None, "--qlog": to_qlog is not None, "--states": states}
    given = [name for name, is_given in forms.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"found {' and '.join(given)}; expected one of them. Leave the others out.")
    if link and given in (["--qlog"], ["--states"]):
        raise UsageError(f"--link: found it with {given[0]}; expected all links there. Leave it out.")
    opened = open_run(find_run(run))
    chosen, *others = cells_of(opened, [cell] if cell else [], by="CELL")
    if others:
        raise UsageError(
            f'{opened.folder}: CELL "{cell}": found {len(others) + 1} cells; expected one. Name one of them.'
        )
    if states:
        typer.echo(csv_text([STATE_COLUMNS, *state_rows(chosen.states)]), nl=False)
        return
    if to_qlog is not None:
        _write_qlogs(chosen, to_qlog)
        return
    found = read(chosen.packets_file)
    if link:
        known = sorted({one.link for one in found})
        if missing := [name for name in link if name not in known]:
            raise UsageError(f'--link: found "{missing[0]}"; expected one of {", ".join(known)}. Choose one of these.')
        found = tuple(one for one in found if one.link in link)
    if to_pcapng is not None:
        to_pcapng.write_bytes(pcapng(found, chosen.epoch_realtime_ns or 0))
        typer.echo(f"wrote {to_pcapng}", err=True)
        return
    typer.echo(csv_text([COLUMNS, *rows(found)]), nl=False)


def _write_qlogs(cell: RunCell, folder: Path) -> None:
    files = list(qlogs(Record(read(cell.packets_file), cell.plan.network), cell.states, cell.epoch_realtime_ns or 0))
    if not files:
        raise UsageError(f"{cell.folder}: found no flow of TCP with data; expected one for --qlog. Leave it out.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files:
        (path := folder / file_name(name, suffix=".qlog")).write_text(text)
        typer.echo(f"wrote {path}", err=True)
