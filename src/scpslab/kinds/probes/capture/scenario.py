"""Kind `capture`: the frames that pass an interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from scpslab.core.choices import one_of
from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, Snaplen
from scpslab.documents.yaml_lines import Problem
from scpslab.scenario.probes.base import Kind, Observer
from scpslab.scenario.probes.filters import certain_mistake
from scpslab.scenario.probes.watched import not_a_node

from scpslab.kinds.probes.capture import plan as planned

if TYPE_CHECKING:
    from scpslab.plan.network import NetworkPlan

PCAP_RECORD_BYTES = 16


class Capture(Observer):
    """The frames that pass one interface of a node, with nanosecond time stamps: captures/NAME.pcap."""

    kind: Literal["capture"] = key(says="The kind of probe.", example="capture")
    name: Name | None = key(None, says="Name of the file. Default: the node's name.", example="sink")
    node: Name = key(says="Where.", example="ws2")
    link: str | None = key(
        None, says="Capture on the node's interface to this link. Default: its first interface.", example="hop"
    )
    snaplen: Snaplen = key("96 B", says="Bytes kept of each packet: 96 hold all headers and options.", example="96 B")
    filter: str = key(
        "",
        says="tcpdump filter, as in pcap-filter(7). `validate` finds most mistakes, and the lab the others before "
        "anything is sent.",
        example="tcp port 5001",
    )


def problems(probe: Capture, network: NetworkPlan) -> Iterator[Problem]:
    """What does not fit: every node has interfaces, switches too."""
    if missing := list(not_a_node(probe.node, (node.name for node in network.nodes))):
        yield from missing
    elif probe.filter.lstrip().startswith("-"):
        yield (
            ("filter",),
            (
                f'found "{probe.filter}", which tcpdump would take for an option; expected a filter. '
                'Write "not" for a minus.'
            ),
        )
    elif mistake := certain_mistake(probe.filter):
        yield (
            ("filter",),
            (
                f'found "{probe.filter}": {mistake}; expected a filter as in pcap-filter(7), such as "tcp port '
                '5001". Correct the filter.'
            ),
        )
    elif probe.link is not None:
        near = [
            link.name
            for link in network.all_links
            if probe.node in (*(end.node for end in link.ends if end.interface), getattr(link, "via", None))
        ]
        if probe.link not in near:
            yield ("link",), f'found "{probe.link}"; {one_of(probe.link, near)}'


def plan(name: str, probe: Capture, network: NetworkPlan) -> planned.Capture:
    """Its part of a plan."""
    ends = [(link.name, end) for link in network.all_links for end in link.ends if end.node == probe.node]
    # A serial line of SCPS-NP has no interface that a capture could listen to.
    interfaces = [(link, end.interface) for link, end in ends if end.interface is not None]
    interfaces += [
        (link.name, interface)
        for link in network.links
        if link.via == probe.node
        for interface in link.relay_interfaces or ()
    ]
    return planned.Capture(
        name=name,
        node=probe.node,
        interface=next(interface for link, interface in interfaces if probe.link in (None, link)),
        snaplen_bytes=probe.snaplen,
        filter_=probe.filter,
    )


def memory_bytes(probe: Capture, packets: int) -> int:
    """The file, which is written out at the cell's end."""
    return packets * (probe.snaplen + PCAP_RECORD_BYTES)


KIND = Kind(
    model=Capture, default_name=lambda probe: probe.node, plan=plan, problems=problems, memory_bytes=memory_bytes
)
