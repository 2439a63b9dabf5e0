"""Records of packets without a lab: directions from plain lines, and the file that labtool would write of them."""

import ipaddress
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from scpslab.measure.packets import (
    COLUMNS,
    FATES,
    FIRST_LINE,
    HAS_ARRIVED,
    HAS_LEFT,
    NEVER,
    SHOWN_BYTES,
    TCP_HEADERS,
    UDP,
    Flow,
    Packets,
)

TCP, IPV4 = 6, 0x0800
WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Line:
    """A packet that a direction is offered; times in ns since the epoch, None for what did not happen."""

    flow: Flow
    offered: int
    arrived: int | None = None
    fate: str = "delivered"
    wire: int = 1456
    waited: int = 0
    due: int | None = None
    left: int | None = None
    errors: int = 0
    id_: int = 0
    payload: int = 0
    sequence: int = 0
    acknowledgement: int = 0
    window: int = 0
    flags: int = 0
    head: bytes = field(default=b"")


def tcp(from_: tuple[str, int], to: tuple[str, int], protocol: int = TCP) -> Flow:
    """A flow between two ends, each an address and a port."""
    return Flow(from_[0], to[0], from_[1], to[1], protocol, IPV4, "unknown")


def packets(link: str, direction: str, lines: Sequence[Line], duplicates: Iterable[int] = ()) -> Packets:
    """A direction's packets from lines in the order of their offers."""
    flows = list(dict.fromkeys(line.flow for line in lines))

    def column(name: str, values: Iterable[int | None] | None = None) -> np.ndarray:
        given = (getattr(line, name) for line in lines) if values is None else values
        return np.array([NEVER if value is None else value for value in given], np.int64)

    heads = [line.head.ljust(SHOWN_BYTES, b"\0") for line in lines if line.flow.protocol not in (*TCP_HEADERS, UDP)]
    return Packets(
        link=link,
        direction=direction,
        flows=tuple(flows),
        offered_ns=column("offered"),
        wire_bytes=column("wire"),
        waited_bytes=column("waited"),
        due_ns=column("due"),
        left_ns=column("left"),
        arrived_ns=column("arrived"),
        fate=column("", (FATES.index(line.fate) for line in lines)).astype(np.uint8),
        bit_errors=column("errors"),
        flow=column("", (flows.index(line.flow) for line in lines)),
        id_=column("id_"),
        payload=column("payload"),
        sequence=column("sequence"),
        acknowledgement=column("acknowledgement"),
        window=column("window"),
        flags=column("flags").astype(np.uint8),
        heads=np.frombuffer(b"".join(heads), np.uint8).reshape(-1, SHOWN_BYTES),
        duplicates_ns=np.array(list(duplicates), np.int64),
    )


def written(directions: Iterable[Packets]) -> bytes:
    """The file (docs/plan-format.md), value by value."""
    head = b" ".join(b"%s:%d" % (name.encode(), size) for name, size in COLUMNS.items())
    return FIRST_LINE + b"columns " + head + b"\nowners unknown\n" + b"".join(map(_direction, directions))


def _direction(its: Packets) -> bytes:
    count = (len(its), len(its.duplicates_ns), len(its.flows), len(its.heads))
    count = (*count, len(its.left_turns), len(its.arrived_turns))
    words = "direction {} {} packets {} duplicates {} flows {} heads {} left-turns {} arrived-turns {}\n".format(
        its.link, its.direction, *count
    )
    columns: dict[str, list[int]] = {name: [] for name in COLUMNS}
    before = dict.fromkeys(("offered", "wire_bytes", "waited_bytes"), 0)
    of_flow: dict[int, dict[str, int]] = {}
    due_before = 0
    for row in range(len(its)):
        offered, due, left, arrived = (
            int(times[row]) for times in (its.offered_ns, its.due_ns, its.left_ns, its.arrived_ns)
        )
        now = {"offered": offered, "wire_bytes": int(its.wire_bytes[row]), "waited_bytes": int(its.waited_bytes[row])}
        for name, value in now.items():
            columns[name].append(value - before[name])
        before = now
        columns["due"].append(0 if due == NEVER else due - max(offered, due_before))
        due_before = due_before if due == NEVER else due
        base = offered if due == NEVER else due
        columns["left"].append(0 if left == NEVER else left - base)
        base = base if left == NEVER else left
        columns["arrived"].append(0 if arrived == NEVER else arrived - base)
        has = (HAS_LEFT if left != NEVER else 0) | (HAS_ARRIVED if arrived != NEVER else 0)
        columns["fate"].append(int(its.fate[row]) | has)
        columns["bit_errors"].append(int(its.bit_errors[row]))
        number = int(its.flow[row])
        columns["flow"].append(number)
        columns["payload"].append(int(its.payload[row]))
        columns["flags"].append(int(its.flags[row]))
        last = of_flow.setdefault(number, dict.fromkeys(("id", "sequence", "acknowledgement", "window"), 0))
        values = {"id": its.id_, "sequence": its.sequence, "acknowledgement": its.acknowledgement, "window": its.window}
        for name, value in values.items():
            columns[name].append(int(value[row]) - last[name])
            last[name] = int(value[row]) + (int(its.payload[row]) if name == "sequence" else 0)
    planes = b"".join(_planes(columns[name], size) for name, size in COLUMNS.items())
    times = struct.pack(f"<{len(its.duplicates_ns)}q", *its.duplicates_ns.tolist())
    turns = b"".join(rows.astype("<u4").tobytes() for rows in (its.left_turns, its.arrived_turns))
    return words.encode() + b"".join(map(_flow, its.flows)) + planes + its.heads.tobytes() + times + turns


def _planes(values: Sequence[int], size: int) -> bytes:
    whole = [(value & WORD).to_bytes(8, "little")[:size] for value in values]
    return b"".join(bytes(value[place] for value in whole) for place in range(size))


def _flow(flow: Flow) -> bytes:
    ends = (ipaddress.IPv6Address(f"::ffff:{address}").packed for address in (flow.from_ip, flow.to_ip))
    return b"".join(ends) + struct.pack("<HHHHBB", flow.from_port, flow.to_port, flow.type_, 0, flow.protocol, 0)
