"""`scpslab losses`: where each packet of a cell was lost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scpslab.analysis.capture import annotated, read_records
from scpslab.analysis.lost_packets import Losses, captures_with_losses, comments, find_losses, report
from scpslab.analysis.run import Run, RunCell, open_run
from scpslab.cli.options import RunArgument
from scpslab.cli.tables import Format, FormatOption, print_report
from scpslab.core.choices import one_of
from scpslab.core.errors import ResultError, UsageError
from scpslab.runs import find_run

NAMED = 5


def losses(
    run: RunArgument = "last",
    cell: Annotated[str | None, typer.Option(help="The cell, by its id. Not needed if the run has one cell.")] = None,
    format_: FormatOption = Format.TABLE,
    pcapng: Annotated[
        Path | None,
        typer.Option(
            help="Also write the capture to this file as pcapng, with a comment on each lost frame and each repair."
        ),
    ] = None,
    capture: Annotated[
        str | None, typer.Option(help="The capture to write with --pcapng. Default: that with the most lost packets.")
    ] = None,
) -> None:
    """List every packet loss of a cell.

    Each line has the time, the cause, the place (link, direction, queue or arrival), the segment (flow, sequence
    number, payload bytes), its frame number in a capture, and the time at which the sender sent the bytes again in a
    packet that arrived. The cell needs a probe of kind losses for the direction and a capture without filter on the
    sending side, or captures on both sides.

    Examples: scpslab losses last --cell "stack=cubic,ber=1e-06,r1" · scpslab losses last --format csv > losses.csv ·
    scpslab losses last --pcapng lost.pcapng
    """
    opened = open_run(find_run(run))
    chosen = _cell(opened, cell)
    lost = find_losses(chosen, opened.id)
    if pcapng is not None or capture is not None:
        _write_pcapng(chosen, lost, pcapng, capture)
    print_report(report(lost), format_)


def _cell(run: Run, name: str | None) -> RunCell:
    """The cell wanted; the only one if none is named."""
    if name is None and len(run.cells) == 1:
        return run.cells[0]
    for cell in run.cells:
        if name in (cell.id, cell.folder.name):
            return cell
    ids = ", ".join(cell.id for cell in run.cells[:NAMED])
    found = f'--cell "{name}": found no such cell' if name else f"found {len(run.cells)} cells and no --cell"
    raise UsageError(f"{run.folder}: {found}; expected one such as {ids}. Choose one with --cell.")


def _write_pcapng(cell: RunCell, found: Losses, path: Path | None, wanted: str | None) -> None:
    """Writes the annotated capture."""
    if path is None:
        raise UsageError("--capture: found no --pcapng beside it; expected the file to write. Add --pcapng FILE.")
    names = captures_with_losses(found)
    if wanted is not None and not cell.capture_file(wanted).is_file():
        captures = [probe.name for probe in cell.plan.cell.probes if probe.captured_node]
        raise UsageError(f'{cell.folder}: --capture "{wanted}": found no such capture; {one_of(wanted, captures)}')
    name = wanted or next(iter(names), None)
    if name is None:
        raise ResultError(
            f"{cell.folder}: found no lost packet that is identified in a capture; expected one. "
            "Read the notes of the list without --pcapng."
        )
    source = cell.capture_file(name)
    records = read_records(source.read_bytes(), str(source))
    path.write_bytes(annotated(records, name, comments(found.lost, name)))
    typer.echo(f"wrote {path}", err=True)
