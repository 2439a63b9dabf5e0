"""Names and places that a plan has, and what is said of one that it has not."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from scpslab.plan.schema import shown

# Where in a plan, or in a part of it, and what was found and expected.
Problem = tuple[str, str]
NAMES_SHOWN = 12
At = TypeVar("At")
Named = TypeVar("Named", bound=Hashable)


@dataclass(frozen=True)
class Places:
    """What workloads and probes of a plan are held against: its hosts with their stacks, the nodes with programs,
    interfaces (node and name), links.
    """

    stacks: Mapping[str, str]
    in_containers: bool
    speaking: tuple[str, ...]
    interfaces: frozenset[tuple[str, str]]
    directions: Mapping[str, tuple[str, ...]]

    def not_directions(self, link: str, directions: Iterable[str]) -> Iterator[Problem]:
        """What is wrong with naming these directions of a link."""
        if link not in self.directions:
            yield "link", one_of(link, list(self.directions))
            return
        for direction in directions:
            if direction not in self.directions[link]:
                yield "direction", one_of(direction, self.directions[link])


def one_of(found: str, known: Iterable[str]) -> str:
    """What was found, and what there is."""
    return f"found {shown(found)}; expected one of {listed(list(known))}"


def listed(names: Sequence[str]) -> str:
    """The first of some names."""
    return (
        ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
        if names
        else "none, for there is none"
    )


def twice(named: Iterable[tuple[At, Named]]) -> Iterator[tuple[At, Named]]:
    """Those of some places whose name, or whatever else must be their own, an earlier one has."""
    seen: set[Named] = set()
    for place, name in named:
        if name in seen:
            yield place, name
        seen.add(name)
