"""Who talks to whom in a cell: conversations, each of two ends, from the flows of the record's directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from scpslab.measure.packets import Flow, Packets
from scpslab.measure.record import Record

ARP, IPV6 = 0x0806, 0x86DD
# Numbers of protocols of IP (IANA); 105 is compressed SCPS-TP, 106 is SCPS-TP (CCSDS 714.0-B-2).
PROTOCOLS = {1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 105: "SCPS-TP, compressed", 106: "SCPS-TP"}
Ends = tuple[str, int, str, int]


@dataclass
class Conversation:
    """Packets of one owner between two ends. `way`: 0 from `ends[0]` to `ends[1]`, as its first packet, 1 back.

    By way: `first` and `last`, the directions (their numbers) at its sender and at its receiver; `payload` bytes and
    `packets` that the first one was offered.
    """

    owner: str
    protocol: str
    ends: tuple[str, str]
    nodes: list[str] = field(default_factory=lambda: ["", ""])
    first: list[int] = field(default_factory=lambda: [-1, -1])
    last: list[int] = field(default_factory=lambda: [-1, -1])
    payload: list[int] = field(default_factory=lambda: [0, 0])
    packets: list[int] = field(default_factory=lambda: [0, 0])

    @property
    def data_way(self) -> int:
        """The way of most of its payload."""
        return int(self.payload[1] > self.payload[0])


def conversations(record: Record, directions: Sequence[Packets]) -> tuple[list[Conversation], list[list[list[int]]]]:
    """The conversations in the order of their first packets; and for each direction, for each of its flows, the number
    of the conversation and its way.
    """
    found: dict[tuple[object, ...], int] = {}
    talks: list[Conversation] = []
    numbers: list[list[list[int]]] = [[[0, 0] for _ in packets.flows] for packets in directions]
    for _, place, number in sorted(_firsts(directions)):
        flow = directions[place].flows[number]
        near, far = (flow.from_ip, flow.from_port), (flow.to_ip, flow.to_port)
        kind = (flow.owner, flow.protocol, flow.type_)
        if (*kind, near, far) not in found:
            found[*kind, near, far] = found[*kind, far, near] = len(talks)
            talks.append(Conversation(flow.owner, protocol_text(flow), (end_text(*near), end_text(*far))))
        talk = talks[found[*kind, near, far]]
        way = 0 if talk.ends[0] == end_text(*near) else 1
        numbers[place][number] = [found[*kind, near, far], way]
        _seen(talk, way, record, directions[place], place, number)
    return talks, numbers


def _firsts(directions: Sequence[Packets]) -> list[tuple[int, int, int]]:
    """The first packet of each flow: when, and the numbers of direction and flow."""
    firsts = []
    for place, packets in enumerate(directions):
        flows, rows = np.unique(packets.flow, return_index=True)
        firsts += [(int(packets.offered_ns[row]), place, int(flow)) for flow, row in zip(flows, rows, strict=True)]
    return firsts


def _seen(talk: Conversation, way: int, record: Record, packets: Packets, place: int, number: int) -> None:
    """Where a conversation's packets begin and end: at the node that has the address, else where they are seen first
    and last.
    """
    planned = record.planned[packets.link, packets.direction]
    flow = packets.flows[number]
    at_sender = record.addresses.get(flow.from_ip) == planned.from_
    if talk.first[way] < 0 or at_sender:
        mine = packets.flow == number
        talk.first[way] = place
        talk.nodes[way] = planned.from_
        talk.payload[way], talk.packets[way] = int(packets.payload[mine].sum()), int(mine.sum())
    at_receiver = record.addresses.get(flow.to_ip) == planned.to
    is_known = flow.to_ip in record.addresses and talk.last[way] >= 0
    if at_receiver or not is_known:
        talk.last[way] = place
        talk.nodes[1 - way] = talk.nodes[1 - way] or planned.to


def end_text(ip: str, port: int) -> str:
    """An end as people write it."""
    return f"{ip}:{port}" if port else ip


def protocol_text(flow: Flow) -> str:
    """The protocol of a flow, in a word."""
    if flow.type_ == ARP:
        return "ARP"
    name = PROTOCOLS.get(flow.protocol, f"protocol {flow.protocol}")
    return f"{name}, IPv6" if flow.type_ == IPV6 else name
