"""The record of a cell's packets with the plan's network: what each node saw, and what waited before each hop."""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from scpslab.core.addresses import number
from scpslab.measure.connections import ABSENT, Bools, Floats, Ints, Seen
from scpslab.measure.packets import DELIVERED, NEVER, TCP_HEADERS, UDP, UNSEEN, Flow, Packets
from scpslab.plan.links import POLICED, QUEUE, Direction
from scpslab.plan.network import NetworkPlan


class Record:
    """The packets of every direction, by the names of link and direction; `programs`: nodes of addresses that programs
    have for themselves.
    """

    def __init__(self, directions: Sequence[Packets], network: NetworkPlan, programs: Mapping[str, str]) -> None:
        self.by_place = {(packets.link, packets.direction): packets for packets in directions}
        self.planned: dict[tuple[str, str], Direction] = {
            (link.name, direction.name): direction for link in network.links for direction in link.directions
        }

        ends = ((end.ip, end.node) for link in network.links for end in link.ends if end.ip)
        self.addresses = {ip.partition("/")[0]: node for ip, node in ends} | dict(programs)

    def has(self, node: str) -> bool:
        """Whether a node is at a link whose packets are recorded."""
        return any(node in (way.from_, way.to) for place, way in self.planned.items() if place in self.by_place)

    def connections_of(self, owner: str) -> frozenset[frozenset[tuple[str, int]]]:
        """Both ends of each connection of TCP or SCPS-TP in which an owner sends."""
        flows = (flow for packets in self.by_place.values() for flow in packets.flows if flow.owner == owner)
        ends = (
            ((one.from_ip, one.from_port), (one.to_ip, one.to_port)) for one in flows if one.protocol in TCP_HEADERS
        )
        return frozenset(map(frozenset, ends))

    def seen_at(self, node: str, *, behind_queue: bool = False) -> Seen:
        """What a node saw on its links: what arrived unharmed, and what it sent, where it left its sockets; with
        `behind_queue`, what its own queues let pass, when it was on the wire. Times since the epoch.
        """
        parts = []
        for place, packets in self.by_place.items():
            way = self.planned[place]
            if way.to == node:
                parts.append(_part(packets, way, packets.had(DELIVERED), packets.arrived_ns))
        for place, packets in self.by_place.items():
            way = self.planned[place]
            if way.from_ == node:
                is_gone = dropped(packets, way) | packets.had(POLICED)
                passed = ~is_gone if behind_queue else np.ones(len(packets), np.bool_)
                parts.append(_part(packets, way, passed, wire_ns(packets) if behind_queue else packets.offered_ns))
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else _nothing()
        # An answer in the nanosecond of its reason stands behind it: what arrives comes first.
        order = np.argsort(columns["t_ns"], kind="stable")
        return Seen(
            frame=np.zeros(len(order), np.int64),
            **{name: column[order] for name, column in columns.items()},
            window_scale=np.full(len(order), ABSENT, np.int64),
            is_truncated=False,
            has_options=False,
        )

    def depth(self, link: str, direction: str) -> tuple[Floats, Floats]:
        """The queue before a direction at every change, the packet in transmission included: seconds since the epoch,
        and bytes from then on, both float64[n]; empty where its packets are not recorded.
        """
        packets = self.by_place.get((link, direction))
        if packets is None:
            return np.zeros(0), np.zeros(0)
        left_ns, is_lost = wire_ns(packets), dropped(packets, self.planned[link, direction])
        rows = np.flatnonzero(~is_lost & (left_ns > packets.offered_ns))
        sizes = packets.wire_bytes[rows]
        t_ns = np.concatenate([left_ns[rows], packets.offered_ns[rows]])
        order = np.argsort(t_ns, kind="stable")
        depth = np.cumsum(np.concatenate([-sizes, sizes])[order])
        return t_ns[order] / 1e9, depth.astype(np.float64)


def dropped(packets: Packets, way: Direction) -> Bools:
    """Which packets the queue before a direction dropped: a queue of the kernel's own does not say so."""
    is_own = way.queue is None or way.queue.serialises
    is_gone = packets.had(UNSEEN) & (packets.left_ns == NEVER) & (packets.arrived_ns == NEVER)
    return np.asarray(packets.had(QUEUE) | (is_gone & (not is_own)))


def wire_ns(packets: Packets) -> Ints:
    """When each packet had left its queue: by the link's own clock, else as it was seen, else when it was offered."""
    found = packets.offered_ns
    for better in (packets.arrived_ns, packets.left_ns, packets.due_ns):
        found = np.where(better == NEVER, found, better)
    return found


def _part(packets: Packets, way: Direction, mask: Bools, t_ns: Ints) -> dict[str, Ints]:
    """Columns of Seen for some packets of a direction."""
    ends = np.array([numbers_of(flow) for flow in packets.flows], np.int64).reshape(-1, 5)
    protocol = ends[packets.flow, 0] if len(packets) else no_ints()
    is_tcp = packets.is_tcp
    rows = np.flatnonzero(mask & (is_tcp | (protocol == UDP)))
    tcp = is_tcp[rows]
    of_flow = ends[packets.flow[rows]]
    return {
        "t_ns": t_ns[rows],
        "ip_bytes": packets.wire_bytes[rows] - way.overhead_bytes,
        "protocol": of_flow[:, 0],
        "source": of_flow[:, 1],
        "source_port": of_flow[:, 2],
        "destination": of_flow[:, 3],
        "destination_port": of_flow[:, 4],
        "payload_bytes": packets.payload[rows],
        "seq": np.where(tcp, packets.sequence[rows], 0),
        "ack": np.where(tcp, packets.acknowledgement[rows], 0),
        "flags": np.where(tcp, packets.flags[rows].astype(np.int64), 0),
        "window": np.where(tcp, packets.window[rows], 0),
    }


def no_ints() -> Ints:
    """int64[0]."""
    return np.zeros(0, np.int64)


@cache
def numbers_of(flow: Flow) -> tuple[int, int, int, int, int]:
    """A flow's protocol, addresses and ports, which TCP and UDP alone have."""
    near, far = number(flow.from_ip), number(flow.to_ip)
    ports = (flow.from_port, flow.to_port) if flow.protocol in (*TCP_HEADERS, UDP) else (0, 0)
    return flow.protocol, near, ports[0], far, ports[1]


def _nothing() -> dict[str, Ints]:
    names = ("t_ns", "ip_bytes", "protocol", "source", "source_port", "destination", "destination_port")
    return dict.fromkeys((*names, "payload_bytes", "seq", "ack", "flags", "window"), no_ints())
