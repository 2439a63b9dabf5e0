"""What a kind of service is to scenarios and planning, and what its functions are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scpslab.documents.parts import Part
from scpslab.plan.services import Daemon

if TYPE_CHECKING:
    from scpslab.documents.yaml_lines import Problem
    from scpslab.scenario.cells import Cell
    from scpslab.scenario.model import ScenarioFile
    from scpslab.scenario.planning.network import NpNetwork
    from scpslab.scenario.workloads import Setting


class Service(Part):
    """The keys of every service; each kind declares them with its own words."""

    if TYPE_CHECKING:
        kind: str
        name: str
        node: str


@dataclass(frozen=True)
class Site:
    """What services are planned in: the cell, what its workloads are planned in, and the nodes that speak SCPS-NP.
    `number`: which of the scenario it is.
    """

    cell: Cell
    setting: Setting
    np: NpNetwork
    number: int = 0


def _no_problems(_service: Any, _known: Mapping[str, str]) -> Iterable[Problem]:
    return ()


def _nothing(_service: Any, _site: Site) -> Daemon:
    raise TypeError("no scenario says it")


def _none_of_the_lab(_site: Site) -> tuple[Daemon, ...]:
    return ()


def _no_port(_service: Any) -> None:
    return None


def _no_names(_model: ScenarioFile, _nodes: Mapping[str, str]) -> Iterable[str]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of service.

    `model`: what a scenario says of it; None for one that scenarios do not name. `plan`: its part of the plan.
    `problems`: what does not fit, given the addresses of the network with their nodes. `nodes`: the kinds of nodes that
    it runs on. `listens_at`: the port that is no other service's. `of_lab`: those that the lab has of its own in a
    cell. `own_names`: what these are called, given the kind of each node. `is_alone`: a node has one at most.
    `writes_record`: its account is a record. `makes_device`: it makes a TUN device. `runs_commands`: it runs programs
    that know the kernel's TCP only.
    """

    model: type[Service] | None = None
    plan: Callable[[Any, Site], Daemon] = _nothing
    problems: Callable[[Any, Mapping[str, str]], Iterable[Problem]] = _no_problems
    nodes: tuple[str, ...] = ("host", "router", "scps-router")
    listens_at: Callable[[Any], int | None] = _no_port
    of_lab: Callable[[Site], tuple[Daemon, ...]] = _none_of_the_lab
    own_names: Callable[[ScenarioFile, Mapping[str, str]], Iterable[str]] = _no_names
    is_alone: bool = False
    writes_record: bool = False
    makes_device: bool = False
    runs_commands: bool = False
