"""What a kind of probe is to scenarios and planning."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from scpslab.documents.parts import Part
from scpslab.plan import probes as planned

if TYPE_CHECKING:
    from scpslab.documents.yaml_lines import Problem
    from scpslab.plan.network import NetworkPlan


class Observer(Part):
    """What every probe is; each kind declares these keys where they stand among its own."""

    if TYPE_CHECKING:
        kind: str
        name: str | None


Model = TypeVar("Model", bound=Observer)
Planned = TypeVar("Planned", bound=planned.Observer)


def _no_problems(_probe: Any, _network: NetworkPlan) -> Iterable[Problem]:
    return ()


def _no_memory(_probe: Any, _packets: int) -> int:
    return 0


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Model, Planned]):
    """One kind of probe.

    `model`: what a scenario says of it. `default_name`: its name where the scenario gives none. `plan`: its part of the
    plan, given its name. `problems`: what does not fit the network. `memory_bytes`: what it keeps in the guest's memory
    of so many packets.
    """

    model: type[Model]
    default_name: Callable[[Model], str]
    plan: Callable[[str, Model, NetworkPlan], Planned]
    problems: Callable[[Model, NetworkPlan], Iterable[Problem]] = _no_problems
    memory_bytes: Callable[[Model, int], int] = _no_memory
