"""What a metric family is: columns with a unit in their name, and a function that fills them for one cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, cast

from scpslab.plan.workloads import Traffic

if TYPE_CHECKING:
    from scpslab.analysis.capture import Connection
    from scpslab.analysis.metrics.data_flows import Transfer
    from scpslab.analysis.run import RunCell

Value: TypeAlias = int | float | str | bool | None
Planned_co = TypeVar("Planned_co", bound=Traffic, covariant=True)


@dataclass(frozen=True)
class Column:
    """A column of results.csv.

    `decimals` is how a float is written (None: whole numbers and words); `meaning` goes into docs/results.md.
    """

    name: str
    decimals: int | None
    meaning: str


@dataclass(frozen=True)
class Subject(Generic[Planned_co]):
    """One workload of one cell, with its captures read at most once."""

    cell: RunCell
    workload: Planned_co
    _connections: dict[str, Connection | None] = field(default_factory=dict)

    def connection(self, probe: str) -> Connection | None:
        """The workload's connection as the capture probe saw it."""
        if probe not in self._connections:
            self._connections[probe] = self.cell.connection(probe, cast("Transfer", self.workload))
        return self._connections[probe]


@dataclass(frozen=True)
class Family(Generic[Planned_co]):
    """Metrics of one kind of workload. `measure` returns values by column name; what it cannot know it leaves out."""

    workload: type[Planned_co]
    columns: tuple[Column, ...]
    measure: Callable[[Subject[Planned_co]], dict[str, Value]]


def section(fields: object, key: str) -> dict[str, object]:
    """The fields under `key`, none for anything else."""
    found = fields.get(key) if isinstance(fields, dict) else None
    return found if isinstance(found, dict) else {}


def number(fields: dict[str, object], key: str) -> float | None:
    """The number under `key`, None for anything else."""
    found = fields.get(key)
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def count(fields: dict[str, object], key: str) -> int | None:
    """The whole number under `key`, None for anything else."""
    found = fields.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
