"""What a family of metrics is: columns of results.csv, and a function that fills them for one cell.

docs/columns.md says what each column means. A column's name ends with its unit.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, NamedTuple, TypeAlias, TypeVar, cast

from scpslab.analysis.run import RunCell, Transfer, bottleneck_bps, has_one_delay
from scpslab.core.kinds import Registry
from scpslab.core.strict_json import JsonObject, count, items, number, section, text  # noqa: F401  # for metrics
from scpslab.measure.connections import Connection
from scpslab.plan import Plan
from scpslab.plan.workloads import Traffic

Value: TypeAlias = int | float | str | bool | None
Values: TypeAlias = dict[str, Value]
# The lines of a record, by its name.
Records: TypeAlias = Callable[[str], list[JsonObject]]
RATES = ("goodput_bps", "utilization")
NO_RATE = "no hop has a rate, one has delivery opportunities, or routes change"
Planned_co = TypeVar("Planned_co", bound=Traffic, covariant=True)


class Unknown(str):
    """Why a column has no value."""

    __slots__ = ()


class MetricColumn(NamedTuple):
    """A column of results.csv. `decimals` is how a float is written (None: whole numbers and words)."""

    name: str
    decimals: int | None = None


def columns(words: str) -> tuple[MetricColumn, ...]:
    """Columns in their order, with their decimals behind a colon, such as "bytes transfer_s:9"."""
    parted = (word.partition(":") for word in words.split())
    return tuple(MetricColumn(name, int(digits) if digits else None) for name, _, digits in parted)


def unknown(names: Iterable[str], why: str) -> Values:
    """Columns that have no value, all for one reason."""
    return dict.fromkeys(names, Unknown(why))


@dataclass(frozen=True)
class Subject(Generic[Planned_co]):
    """One workload of one cell, with its record read at most once."""

    cell: RunCell
    workload: Planned_co

    @cached_property
    def lines(self) -> list[JsonObject]:
        """The lines of its record."""
        return self.cell.records(self.workload.name)

    def line(self, event: str) -> JsonObject:
        """The line of an event in its record, the first of several; empty without one."""
        return next((line for line in self.lines if line.get("event") == event), {})

    def connection_at(self, node: str, *, behind_queue: bool = False) -> Connection | None:
        """The workload's connection as a node saw it; None where that is not known (`RunCell.view`)."""
        view = self.cell.view(node, behind_queue=behind_queue)
        return view.connection(cast("Transfer", self.workload)) if view else None

    def unseen(self, node: str) -> str:
        """Why it has no connection as a node saw it."""
        seen = self.cell.view(node) is not None
        return f"no connection of {self.workload.name} was seen at {node}" if seen else unrecorded(node)

    def rates(
        self, size_bytes: int | None, transfer_s: Value, start_s: float | None, first_bytes: int | None = None
    ) -> Values:
        """Goodput and utilization, of a transfer that took time from `start_s` on (since the epoch; None: unknown).

        `first_bytes`: of the first segment, where the clock starts when that has arrived. Its time on the link is not
        counted then, so that few segments seem faster than the link: those have no rate.
        """
        if not size_bytes or not isinstance(transfer_s, float) or transfer_s <= 0:
            return unknown(RATES, "no bytes arrived, or the time that they took is not known")
        rate_bps = self.rate_bps(transfer_s, start_s)
        most_bytes = transfer_s * rate_bps / 8 if rate_bps else math.inf
        if first_bytes and (size_bytes <= first_bytes or size_bytes - first_bytes <= most_bytes < size_bytes):
            return unknown(RATES, "a transfer of so few segments has no rate")
        used: Value = size_bytes * 8 / (transfer_s * rate_bps) if rate_bps else Unknown(NO_RATE)
        if size_bytes > most_bytes and not has_one_delay(self.cell.plan, self.workload):
            used = Unknown("delays on its way change, and packets came closer together than they left")
        return {"goodput_bps": size_bytes * 8 / transfer_s, "utilization": used}

    def rate_bps(self, transfer_s: float, start_s: float | None) -> float | None:
        """What the slowest hop offers over that time."""
        span_s = None if start_s is None else (start_s, start_s + transfer_s)
        return bottleneck_bps(self.cell.plan, self.workload, span_s, self.cell.table)


@dataclass(frozen=True)
class Family(Generic[Planned_co]):
    """Metrics of a kind of workload. `measure` returns values by column name; what it cannot know is None or left out,
    for the reason in `empty`, or Unknown; without a reason it is what the workload's record does not say.

    `of_topology`: columns in the unit of a paper, which say something to readers of that paper alone, and its topology.
    """

    columns: tuple[MetricColumn, ...]
    measure: Callable[[Subject[Planned_co]], Values]
    of_topology: Mapping[str, str] = field(default_factory=dict)
    empty: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PlanFamily:
    """Metrics of a plan's other parts, each with its part's name in its name.

    `values` has them all in the order of the columns, with the value None where the records do not say it. `decimals`
    of its floats.
    """

    values: Callable[[Plan, Records], Values]
    decimals: int | None = None

    def columns(self, plan: Plan) -> tuple[MetricColumn, ...]:
        """The columns that cells of a plan have."""
        return tuple(MetricColumn(name, self.decimals) for name in self.values(plan, lambda _name: []))

    def measure(self, cell: RunCell) -> Values:
        """Values by column name."""
        return self.values(cell.plan, cell.records)


# Columns of services, by their kind.
OF_SERVICES: Registry[PlanFamily] = Registry("services", "metrics")


def event(records: Records, name: str, word: str) -> JsonObject:
    """The line of an event in a record, the last of several; empty without one."""
    return next((line for line in reversed(records(name)) if line.get("event") == word), {})


def unrecorded(node: str) -> str:
    """Why the packets at a node are not known."""
    return f"no record of packets has {node}, and no capture has all of its packets"


def elapsed(start_s: float | None, end_s: float | None) -> float | None:
    """The time from one instant to another, both known."""
    return None if start_s is None or end_s is None else end_s - start_s


def waited_s(clients: Sequence[JsonObject]) -> float | None:
    """What the user of a file's clients waits: until the last of them has done its work."""
    is_done = clients and count(clients[-1], "exit_code") == 0
    return elapsed(number(clients[0], "start_t_s"), number(clients[-1], "end_t_s")) if is_done else None
