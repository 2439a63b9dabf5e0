"""The pages of a run: the table of its cells, a page of each, and two above each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import yaml

from scpslab.analysis.output import NOTHING
from scpslab.analysis.run import Run, RunCell
from scpslab.analysis.statistics import ResultRow
from scpslab.analysis.table import HEADLINE, read_results
from scpslab.core.errors import ResultError
from scpslab.runs import RunFolder
from scpslab.studio.cell import cell_data
from scpslab.studio.page import Entry, Page

MOST_NUMBERS = 4
LARGE = 10_000


@dataclass(frozen=True)
class RunPages:
    """The pages of a run, made when they are asked for."""

    run: Run

    @cached_property
    def title(self) -> str:
        """The scenario's title; its name where the run's folder does not say it."""
        path = RunFolder(self.run.folder).resolved
        try:
            fields = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            problem = " ".join(str(error).split())[:200]
            raise ResultError(f"{path}: {problem}; expected the scenario that was run.") from error
        said = fields.get("title") if isinstance(fields, dict) else None
        return str(said or self.run.scenario)

    def table(self, addresses: Sequence[str]) -> Page:
        """The table of all cells, which lead to these addresses."""
        numbers = list(self._numbers())
        entries = [
            self._entry(cell, numbers, href=address) for cell, address in zip(self.run.cells, addresses, strict=True)
        ]
        return Page(self.title, self._about, entries, numbers=[(name, HEADLINE[name]) for name in numbers])

    def cells(self, cells: Sequence[RunCell], *, shown: Sequence[int] = (), back: str | None = None) -> Page:
        """A page with some cells in it; `shown`: those that are open at first, by their places among them."""
        numbers = list(self._numbers()) if len(cells) > 1 and not shown else []
        entries = [self._entry(cell, numbers, with_data=True) for cell in cells]
        named = [(name, HEADLINE[name]) for name in numbers]
        return Page(self.title, self._about, entries, shown=shown, numbers=named, back=back)

    def telling(self) -> RunCell | None:
        """Of the cells that completed the one with the largest first number; None without a record of its packets."""
        name = next(self._numbers(), "")
        done = [cell for cell in self.run.cells if cell.status == "completed" and cell.packets_file.is_file()]
        return max(done, key=lambda cell: self._rows[cell.id].numbers.get(name, 0.0), default=None)

    @property
    def _about(self) -> str:
        return f"{self.run.scenario} · {self.run.id}"

    def _entry(
        self, cell: RunCell, numbers: Sequence[str], *, href: str | None = None, with_data: bool = False
    ) -> Entry:
        row = self._rows.get(cell.id, ResultRow({}))
        texts = [_text(row.numbers[name]) if name in row.numbers else NOTHING for name in numbers]
        axes = {name: str(value) for name, value in cell.plan.cell.axes.items()}
        return Entry(cell.id, axes, cell.status, texts, cell_data(cell) if with_data else None, href)

    def _numbers(self) -> Iterator[str]:
        """The columns that a reader asks for first, of those that some cell has."""
        there = [name for name in HEADLINE if any(name in row.numbers for row in self._rows.values())]
        yield from there[:MOST_NUMBERS]

    @cached_property
    def _rows(self) -> dict[str, ResultRow]:
        return {row["cell"]: row for row in read_results(self.run.folder).rows}


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= LARGE else f"{value:.4g}"
