"""What a probe looks at, a node or a direction of a link: whether it is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from scpslab.core.choices import one_of

if TYPE_CHECKING:
    from scpslab.documents.yaml_lines import Problem
    from scpslab.plan.network import NetworkPlan


class AtDirection(Protocol):
    """A probe of one direction of a link."""

    @property
    def link(self) -> str:
        """Link."""

    @property
    def direction(self) -> str:
        """Direction."""


def not_a_node(node: str, nodes: Iterable[str]) -> Iterator[Problem]:
    """The node must be one of these."""
    known = list(nodes)
    if node not in known:
        yield ("node",), f'found "{node}"; {one_of(node, known)}'


def speaking(network: NetworkPlan) -> list[str]:
    """Nodes that have programs and connections."""
    return [node.name for node in network.speaking]


def not_a_direction(probe: AtDirection, network: NetworkPlan) -> Iterator[Problem]:
    """The link must have stages, and the direction."""
    links = {link.name: link for link in network.links}
    if probe.link not in links:
        yield ("link",), f'found "{probe.link}"; {one_of(probe.link, links)}'
        return
    known = [direction.name for direction in links[probe.link].directions]
    if probe.direction not in known:
        yield ("direction",), f'found "{probe.direction}"; {one_of(probe.direction, known)}'
