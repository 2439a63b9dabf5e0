"""What every stack is: the model of what a scenario says of such a host, the function that plans it, and what else the
project asks of a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scpslab.documents.parts import Part
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.stacks import STACKS, Carrier
from scpslab.scenario.stacks.node import NodePlan


class HostPart(Part):
    """What a scenario says of a host, whatever its stack. A stack's own model says its name as the only choice."""

    stack: str

    @property
    def carrier(self) -> Carrier:
        """What carries TCP on the host."""
        return STACKS[self.stack]


def no_problems(_host: Any, _containers: str) -> Iterator[Problem]:
    """A stack whose hosts fit wherever the model accepts them."""
    yield from ()


def nothing_settled(_host: Any) -> Mapping[str, Any]:
    """A stack whose presets, if any, promise nothing."""
    return {}


@dataclass(frozen=True)
class Stack:
    """A stack. `plan` makes what a plan says of a host of the model `host`.

    `image`: which folder of images/ its hosts are, with `containers: docker` ("": what the host does decides).
    `makes_device`: they make a network device of their own. `presets`: the title of each of its presets. `problems`:
    what does not fit a host of the stack, given the scenario's `containers`: key and text. `settled`: settings of a
    host by name, from its preset and its own words (None: left to the kernel), as far as results that carry the name of
    a preset promise them.
    """

    host: type[HostPart]
    plan: Callable[[Any], NodePlan]
    image: str = ""
    makes_device: bool = False
    presets: Mapping[str, str] = field(default_factory=dict)
    problems: Callable[[Any, str], Iterator[Problem]] = no_problems
    settled: Callable[[Any], Mapping[str, Any]] = nothing_settled
