"""Probe `capture`: the frames that pass an interface."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.places import unknown
from scpslab.plan.probes import Observer
from scpslab.plan.values import Amount, Filter, Interface, Name


class Capture(Observer, kind="capture"):
    """The frames that pass an interface: `captures/<name>.pcap`, with nanosecond time stamps."""

    kind: Literal["capture"] = "capture"
    node: Name
    interface: Interface
    snaplen_bytes: Amount
    filter_: Filter

    folder: ClassVar[Literal["records", "captures"]] = "captures"

    @property
    def captured_node(self) -> str:
        """Its node."""
        return self.node

    @property
    def captures_all(self) -> bool:
        """Without a filter it does."""
        return not self.filter_

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """The interface is the node's; switches have some too."""
        nodes = [node.name for node in network.nodes]
        interfaces = [name for _, name in network.interfaces(self.node)]
        if self.node not in nodes:
            yield unknown(("node",), self.node, nodes)
        elif self.interface not in interfaces:
            yield unknown(("interface",), self.interface, interfaces)
