"""`scpslab packets`: what became of every packet of a cell; and `scpslab losses`: where each lost one was lost."""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from scpslab.analysis.lost_packets import find_losses, report
from scpslab.analysis.output import csv_text
from scpslab.analysis.run import Run, RunCell, open_run
from scpslab.cli.options import RunArgument, runs
from scpslab.cli.tables import Format, FormatOption, print_report
from scpslab.core.errors import UsageError
from scpslab.core.names import file_name
from scpslab.measure.packets import read
from scpslab.measure.shown import COLUMNS, pcapng, qlogs, rows
from scpslab.measure.states import SHOWN as STATE_COLUMNS
from scpslab.measure.states import rows as state_rows
from scpslab.runs import find_run
from scpslab.scenario.cells import in_ids


def packets(
    run: RunArgument = "last",
    cell: Annotated[str | None, typer.Argument(metavar="[CELL]")] = None,
    link: Annotated[list[str] | None, typer.Option(metavar="LINK")] = None,
    to_pcapng: Annotated[Path | None, typer.Option("--pcapng", metavar="FILE")] = None,
    to_qlog: Annotated[Path | None, typer.Option("--qlog", metavar="FOLDER")] = None,
    states: Annotated[bool, typer.Option("--states")] = False,
) -> None:
    """List every packet of a cell, with what became of it.

    The CSV has a line for each link direction that a packet was offered to: when it was offered, the bytes that it
    waited behind, when it was due to leave the queue, when it left and arrived, what became of it, and what its headers
    show. The page "plan-format" explains them.

    Examples: scpslab packets last > packets.csv · scpslab packets last "ber=1e-06,r1" --link hop · scpslab packets last
    r1 --pcapng packets.pcapng · scpslab packets last r1 --states · scpslab packets last r1 --qlog qlogs

    Options:
        cell: A cell, by its id. Not needed if the run has one cell.
        link: Packets of this link only. The option may be repeated.
        to_pcapng: Write this file for Wireshark instead, with what became of each packet as its comment.
        to_qlog: Write a file of qlog into this folder instead for each flow of TCP that carried data, with the cause of
            each loss.
        states: List the states of TCP and SCPS-TP instead: window, threshold and smoothed round trip at each
            acknowledgement that changed them.
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
        advice = "Name one of them."
        raise UsageError(f'{opened.folder}: CELL "{cell}": found {len(others) + 1} cells; expected one. {advice}')
    if states:
        typer.echo(csv_text([STATE_COLUMNS, *state_rows(chosen.states)]), nl=False)
        return
    found = read(chosen.packets_file)
    if to_qlog is not None:
        _write_qlogs(chosen, to_qlog)
        return
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
    files = list(qlogs(cell.record, cell.senders, cell.epoch_realtime_ns or 0)) if cell.record else []
    if not files:
        raise UsageError(f"{cell.folder}: found no flow of TCP with data; expected one for --qlog. Leave it out.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files:
        (path := folder / file_name(name, suffix=".qlog")).write_text(text)
        typer.echo(f"wrote {path}", err=True)


NAMED = 5


def losses(
    run: Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", autocompletion=runs)] = None,
    cell: Annotated[list[str] | None, typer.Option(metavar="ID")] = None,
    format_: FormatOption = Format.TABLE,
) -> None:
    """List every packet loss of a cell, or of several.

    Each line has the time, the cause, the place (link, direction, queue or arrival), the segment (flow, sequence
    number, payload bytes), its frame number in a capture, and the time at which the sender sent the bytes again in a
    packet that arrived. Frame numbers need a capture that saw the packet before its loss.

    Examples: scpslab losses last --cell "stack=cubic,ber=1e-06,r1" · scpslab losses last --cell "stack=cubic,*"
    --format csv > losses.csv

    Options:
        run: Run folders, their names under runs/, or "last". Default: last.
        cell: A cell, by its id; * stands for anything, and the option may be repeated. Not needed if the run has one
            cell.
    """
    opened = [open_run(find_run(name)) for name in run or ["last"]]
    chosen = [(one.id, each) for one in opened for each in cells_of(one, cell or [])]
    found = [find_losses(each, of) for of, each in chosen]
    print_report(report(*found), format_)


def cells_of(run: Run, wanted: list[str], by: str = "--cell") -> list[RunCell]:
    """The cells wanted, in their order; the only one if none is named. `by`: what names them on the command line."""
    if not wanted and len(run.cells) == 1:
        return list(run.cells)
    found = [cell for cell in run.cells if any(_is_named(cell, name) for name in wanted)]
    missing = [name for name in wanted if not any(_is_named(cell, name) for cell in found)]
    if found and not missing:
        return found
    ids = ", ".join(cell.id for cell in run.cells[:NAMED])
    what = f'{by} "{missing[0]}": found no such cell' if missing else f"found {len(run.cells)} cells and no {by}"
    raise UsageError(f"{run.folder}: {what}; expected one such as {ids}. Choose one with {by}.")


def _is_named(cell: RunCell, name: str) -> bool:
    return name in (cell.id, cell.folder.name) or fnmatchcase(cell.id, in_ids(name, "=,*?[]!"))
