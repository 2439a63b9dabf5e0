"""What happens while a cell runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from scpslab.plan.schema import DependsOn, Items, Kinds
from scpslab.plan.values import Name, Nanoseconds, Period, PlainText, Probability, Rate, Seed

Change = Literal["ber", "delay", "rate", "state"]
CHANGES: dict[str, Any] = {"ber": Probability, "delay": Nanoseconds, "rate": Rate, "state": Literal["down", "up"]}


@dataclass(frozen=True, kw_only=True)
class LinkStep:
    """Directions of a link change; `seeds`, one for each of them, for bit errors only."""

    t_ns: Nanoseconds
    do: Literal["link"] = "link"
    link: Name
    directions: Annotated[tuple[Name, ...], Items(1, 2)]
    change: Change
    value: Annotated[float | int | str, DependsOn("change", CHANGES)]
    seeds: Annotated[tuple[Seed, ...], Items(1, 2)] | None = None


@dataclass(frozen=True, kw_only=True)
class RunStep:
    """A command is typed into a node."""

    t_ns: Nanoseconds
    do: Literal["run"] = "run"
    node: Name
    command: PlainText
    patience_ns: Period
    required: bool


STEPS: dict[str, type] = {"link": LinkStep, "run": RunStep}
Step = Annotated[LinkStep | RunStep, Kinds("do", STEPS)]
