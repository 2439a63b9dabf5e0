"""What happens while a cell runs."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from scpslab.core.problems import Problem
from scpslab.plan.links import FOR_EVER_NS, rate_problems
from scpslab.plan.network import NetworkPlan
from scpslab.plan.routes import Route
from scpslab.plan.schema import DependsOn, Items, Kinds, Part, Range, Text
from scpslab.plan.values import LONGEST_LABEL, Name, Nanoseconds, Period, PlainText, Probability, Rate, Seed

Change = Literal["ber", "delay", "rate", "state"]
CHANGES: dict[Change, Any] = {"ber": Probability, "delay": Nanoseconds, "rate": Rate, "state": Literal["down", "up"]}


LOGS = re.compile(r"(records/[A-Za-z0-9._+=,-]+\.jsonl|logs/[A-Za-z0-9._+=,-]+\.log)")


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return 0 < len(text) <= LONGEST_LABEL


LOG = Text("a file of the cell: records/NAME.jsonl or logs/NAME.log", lambda text: bool(LOGS.fullmatch(text)))
PATTERN = Text(f"a regular expression of Python, of at most {LONGEST_LABEL} characters", _is_pattern)


class After(Part):
    """The step comes `delay_ns` after the first line of a file of the cell that the pattern is found in."""

    log: Annotated[str, LOG]
    matches: Annotated[str, PATTERN]
    delay_ns: Nanoseconds


class Instant:
    """When a step comes; None: after a line of a file, of which nobody knows yet when it is written."""

    t_ns: int | None

    @property
    def at_ns(self) -> int:
        """When it comes, as far as that is known: else after everything else."""
        return FOR_EVER_NS if self.t_ns is None else self.t_ns


class LinkStep(Instant, Part):
    """Directions of a link change; `seeds`, one for each of them, for bit errors only."""

    t_ns: Nanoseconds | None
    do: Literal["link"] = "link"
    link: Name
    directions: Annotated[tuple[Name, ...], Items(1, 2)]
    change: Change
    value: Annotated[float | int | str, DependsOn("change", CHANGES)]
    seeds: Annotated[tuple[Seed, ...], Items(1, 2)] | None = None
    after: After | None = None

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """What the link cannot do, and seeds that are too few or too many."""
        yield from network.not_directions(self.link, self.directions, "directions")
        link = next((link for link in network.links if link.name == self.link), None)
        if link is not None and self.change == "delay":
            if link.via is None:
                found, expected = f"a delay of {self.link}, which has no relay", "a link that goes through a switch"
                yield Problem(("value",), found, expected, "Choose another link.")
            for direction in (one for one in link.directions if one.name in self.directions):
                changed = replace(direction, delay_ns=int(self.value), delay_table=None)
                wrong = (one for one in changed.problems() if one.at in (("delay_ns",), ("jitter_ns",)))
                yield from (replace(one, at=("value",)) for one in wrong)
        if link is not None and self.change == "rate":
            queues = [direction.queue for direction in link.directions if direction.name in self.directions]
            for name in sorted(
                {queue.discipline if queue else "" for queue in queues if not (queue and queue.serialises)}
            ):
                found = f"a rate of {self.link}, which has {f'the discipline {name}' if name else 'no serialiser'}"
                yield Problem(("value",), found, "a drop-tail queue", "Choose another link, or discipline.")
            yield from rate_problems(("value",), int(self.value))
        seeds = len(self.seeds or ())
        if seeds != (len(self.directions) if self.change == "ber" else 0):
            expected = "one for each direction where bit errors change, and none elsewhere"
            yield Problem(("seeds",), f"{seeds} seeds", expected, "Correct them.")


class RunStep(Instant, Part):
    """A command is typed into a node. `expect`: the exit code, if not 0, of one that the cell waits for."""

    t_ns: Nanoseconds | None
    do: Literal["run"] = "run"
    node: Name
    command: PlainText
    timeout_ns: Period
    required: bool
    expect: Annotated[int, Range(0, 255)] | None = None
    after: After | None = None

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """A node without programs."""
        return network.not_speaking(self.node)


class ServiceStep(Instant, Part):
    """A service of the cell gets a signal; that it ends is no fault from then on."""

    t_ns: Nanoseconds | None
    do: Literal["service"] = "service"
    service: Name
    signal: Literal["kill", "terminate"]
    after: After | None = None

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """None: its service is the cell's."""
        yield from ()


class RouteStep(Instant, Part):
    """A node gets a route, or (`holds` false) loses it, so that those of the network hold again."""

    t_ns: Nanoseconds
    do: Literal["route"] = "route"
    node: Name
    route: Route
    holds: bool
    after: ClassVar[None] = None

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """A node without routes."""
        return network.not_speaking(self.node)


STEPS: dict[str, type] = {"link": LinkStep, "run": RunStep, "service": ServiceStep, "route": RouteStep}
Step = Annotated[LinkStep | RunStep | ServiceStep | RouteStep, Kinds("do", STEPS)]
