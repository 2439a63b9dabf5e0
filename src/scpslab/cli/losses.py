"""`scpslab losses`: where each packet of a cell was lost."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from scpslab.analysis.capture import annotated, read_capture
from scpslab.analysis.lost_packets import Losses, captures_with_losses, comments, find_losses, report
from scpslab.analysis.run import Run, RunCell, open_run
from scpslab.cli.options import runs, split
from scpslab.cli.tables import Format, FormatOption, print_report
from scpslab.core.choices import one_of
from scpslab.core.errors import ResultError, UsageError
from scpslab.runs import find_run

NAMED = 5


def losses(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN]...",
            help='Run folders, their names under runs/, or "last". Default: last.',
            autocompletion=runs,
        ),
    ] = None,
    cell: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="A cell, by its id; * stands for anything, and the option may be repeated. "
            "Not needed if the run has one cell.",
        ),
    ] = None,
    format_: FormatOption = Format.TABLE,
    pcapng: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the capture to this file as pcapng, with a comment on each lost frame and each repair.",
        ),
    ] = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="The capture to write with --pcapng. Default: that with the most lost packets. "
            "Repeat the option, or separate with commas: a file for each, with the name before its suffix.",
        ),
    ] = None,
) -> None:
    """List every packet loss of a cell, or of several.

    Each line has the time, the cause, the place (link, direction, queue or arrival), the segment (flow, sequence
    number, payload bytes), its frame number in a capture, and the time at which the sender sent the bytes again in a
    packet that arrived. Frame numbers need a capture that saw the packet before its loss.

    Examples: scpslab losses last --cell "stack=cubic,ber=1e-06,r1" · scpslab losses last --cell "stack=cubic,*"
    --format csv > losses.csv · scpslab losses last --cell r1 --pcapng lost.pcapng --capture h1,h2
    """
    opened = [open_run(find_run(name)) for name in run or ["last"]]
    chosen = [(one.id, each) for one in opened for each in cells_of(one, cell or [])]
    found = [find_losses(each, of) for of, each in chosen]
    captures = split(capture)
    if pcapng is None and captures:
        raise UsageError("--capture: found no --pcapng beside it; expected the file to write. Add --pcapng FILE.")
    if pcapng is not None:
        if len(chosen) > 1:
            raise UsageError(f"--pcapng: found {len(chosen)} cells; expected one. Choose one with --cell.")
        _write_pcapng(chosen[0][1], found[0], pcapng, captures)
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
    return name in (cell.id, cell.folder.name) or fnmatchcase(cell.id, name)


def _write_pcapng(cell: RunCell, found: Losses, path: Path, wanted: list[str]) -> None:
    """Writes the annotated captures."""
    known = [probe.name for probe in cell.plan.cell.probes if probe.captured_node]
    for name in wanted:
        if not cell.capture_file(name).is_file():
            raise UsageError(f'{cell.folder}: --capture "{name}": found no such capture; {one_of(name, known)}')
    names = wanted or captures_with_losses(found)[:1]
    if not names:
        raise ResultError(
            f"{cell.folder}: found no lost packet that is identified in a capture; expected one. "
            "Read the notes of the list without --pcapng."
        )
    for name in names:
        source = cell.capture_file(name)
        target = path if len(names) == 1 else path.with_name(f"{path.stem}-{name}{path.suffix}")
        records = read_capture(source)
        target.write_bytes(annotated(records, name, comments(found.lost, name)))
        typer.echo(f"wrote {target}", err=True)
