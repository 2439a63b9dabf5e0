"""The input of a drawing function: the run, its table, and the chosen cells; read at most once for all figures of a
call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from scpslab.analysis.metrics.data_flows import DATA_FLOWS
from scpslab.analysis.run import Run, RunCell, open_run
from scpslab.analysis.table import Results, read_results
from scpslab.core.errors import ResultError, UsageError
from scpslab.core.units import KINDS, UnitError, parse
from scpslab.documents.quantities import as_several, as_share
from scpslab.documents.yaml_lines import value_text
from scpslab.measure.connections import Connection
from scpslab.measure.traces import Flow, flow_of

if TYPE_CHECKING:
    from scpslab.analysis.run import Transfer


class NothingToDrawError(ResultError):
    """The run lacks the data of a figure.

    This is an error for a figure requested by name; otherwise the figure is left out.
    """


@dataclass(frozen=True)
class Source:
    """A run folder, opened at first use. `wanted_cells` are the ids given with --cell (empty: the recipe chooses)."""

    run_dir: Path
    wanted_cells: tuple[str, ...] = ()

    @cached_property
    def run(self) -> Run:
        """The run's cells."""
        return open_run(self.run_dir)

    @cached_property
    def results(self) -> Results:
        """The run's results.csv."""
        return read_results(self.run_dir)

    def cells(self, choices: tuple[Mapping[str, object], ...]) -> list[RunCell]:
        """The cells to draw: the wanted ones, else the first completed cell of each choice (axis values; numbers are
        compared as numbers).

        Raises:
            UsageError: there is no such cell.
            NothingToDrawError: no completed cell fits a choice. Another cell would not show what the title says.
        """
        if self.wanted_cells:
            return [self._wanted(name) for name in self.wanted_cells]
        done = [cell for cell in self.run.cells if cell.status == "completed"]
        chosen = [next((cell for cell in done if fits(axes_of(cell), choice)), None) for choice in choices or ({},)]
        distinct = list({cell.id: cell for cell in chosen if cell is not None}.values())
        if not distinct:
            asked = (", ".join(f"{name} {value}" for name, value in choice.items()) for choice in choices)
            wanted = " or ".join(asked) or "any axis values"
            advice = "Choose another cell with --cell."
            raise NothingToDrawError(f"{self.run_dir}: found no completed cell of {wanted}; expected one. {advice}")
        return distinct

    def _wanted(self, name: str) -> RunCell:
        for cell in self.run.cells:
            if name in (cell.id, cell.folder.name):
                return cell
        ids = ", ".join(cell.id for cell in self.run.cells[:5])
        advice = "Choose one of these."
        raise UsageError(f'{self.run_dir}: --cell "{name}": found no such cell; expected one such as {ids}. {advice}')


def transfer_of(cell: RunCell) -> Transfer:
    """The workload whose packets are drawn: the first of the plan that sends a file or a stream.

    Raises:
        NothingToDrawError: the cell has none.
    """
    for workload in cell.plan.cell.workloads:
        if DATA_FLOWS[workload.kind].carries:
            return cast("Transfer", workload)
    drawn = ", ".join(kind for kind, flow in DATA_FLOWS.items() if flow.carries)
    expected = f"expected one of kind {drawn}. Draw another cell."
    raise NothingToDrawError(f"{cell.folder}: found no transfer among the workloads; {expected}")


def flow_at(cell: RunCell, where: str) -> Flow:
    """The transfer's packets at the `source` or the `sink`.

    Raises:
        NothingToDrawError: what was seen there is not known, or the transfer is not in it.
    """
    workload = transfer_of(cell)
    connection = connection_at(cell, where)
    return flow_of(connection, from_client=DATA_FLOWS[workload.kind].from_client(workload, connection))


def flow_if_seen(cell: RunCell, where: str) -> Flow | None:
    """As `flow_at`; None where it raises."""
    with suppress(NothingToDrawError):
        return flow_at(cell, where)
    return None


def connection_at(cell: RunCell, where: str) -> Connection:
    """The transfer's connection as the `source` or the `sink` saw it.

    Raises:
        NothingToDrawError: as `flow_at`.
    """
    workload = transfer_of(cell)
    node = workload.from_ if where == "source" else workload.to
    view = cell.view(node)
    if view is None:
        found = f"found neither a record of packets nor a capture without filter at the {where}"
        advice = "Run it with packets: true."
        raise NothingToDrawError(f"{cell.folder}: {found}; expected one. {advice}")
    connection = DATA_FLOWS[workload.kind].connection(cell, workload, view)
    if connection is None:
        expected = "expected its connection. Draw another cell."
        raise NothingToDrawError(f"{cell.folder}: found no packets of {workload.name}; {expected}")
    return connection


def label_of(cell: RunCell) -> str:
    """A cell's axis values in words, for legends and captions."""
    return ", ".join(f"{name} {value}" for name, value in cell.plan.cell.axes.items()) or cell.id


def shown(source: Source, cells: Sequence[RunCell]) -> str:
    """The run and its cells in words, with which captions begin."""
    one = f"{label_of(cells[0])}, repeat {cells[0].plan.cell.repeat}" if len(cells) == 1 else ""
    return f"Run {source.run_dir.name}, {one or f'{len(cells)} cells'}"


def axes_of(cell: RunCell) -> dict[str, str]:
    """A cell's axis values as results.csv has them."""
    return {name: value_text(value) for name, value in cell.plan.cell.axes.items()}


def fits(values: Mapping[str, str], wanted: Mapping[str, object], *, skips_unknown: bool = False) -> bool:
    """Whether axis values, as results.csv has them, are those wanted: for each axis one of several, numbers compared as
    numbers. `skips_unknown`: axes that there are not do not count.
    """
    for name, several in wanted.items():
        if name not in values:
            if skips_unknown:
                continue
            return False
        texts = [value_text(value) for value in as_several(several)]
        numbers = [number for text in texts if (number := axis_number(text)) is not None]
        if values[name] not in texts and axis_number(values[name]) not in numbers:
            return False
    return True


def axis_number(text: str) -> float | None:
    """The number in an axis value such as "1e-06", "2 Mbit/s" or "1 %", which is 0.01 as in scenarios; None for a
    word.
    """
    with suppress(ValueError):
        return float(as_share(text))
    for kind in KINDS:
        with suppress(UnitError):
            return float(parse(kind, text))
    return None
