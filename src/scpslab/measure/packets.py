"""Reads records/packets.rec: what became of every packet, direction by direction of the links (docs/plan-format.md).

The file may be a stranger's: what it says of its size is held against its length before anything is made of it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from scpslab.core.contents import LARGEST_FILE, content_of
from scpslab.core.errors import ResultError
from scpslab.plan.links import CORRUPT, FLIPPED, OUTAGE, POLICED, POLICY, QUEUE

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST_LINE = b"scpslab packets 1\n"
LONGEST_LINE = 1 << 12
# A fate's number in the file; `unseen`: it was still on its way at the end, or a queue of the kernel's dropped it.
DELIVERED, DUPLICATE, UNSEEN = "delivered", "duplicate", "unseen"
FATES = (DELIVERED, CORRUPT, OUTAGE, POLICY, FLIPPED, QUEUE, DUPLICATE, UNSEEN, POLICED)
FATE_BITS, HAS_LEFT, HAS_ARRIVED = 0x0F, 0x10, 0x20
# Each with the octets that a value takes.
SIZES = (
    "offered:8 wire_bytes:4 waited_bytes:4 due:8 left:8 arrived:8 fate:1 bit_errors:4 flow:4 id:2 payload:2 sequence:4 "
    "acknowledgement:4 window:2 flags:1"
)
COLUMNS = {name: int(size) for name, _, size in (one.partition(":") for one in SIZES.split())}
FLOW_KEYS = ["from", "to", "from_port", "to_port", "type", "owner", "protocol", ""]
FLOW: Any = {"names": FLOW_KEYS, "formats": ["V16", "V16", "<u2", "<u2", "<u2", "<u2", "u1", "u1"]}
SHOWN_BYTES = 64
TCP, UDP, SCPS_TP = 6, 17, 106
# SCPS-TP that is not compressed has the header of TCP (scps-tp §3).
TCP_HEADERS = (TCP, SCPS_TP)
# The time of what did not happen.
NEVER = -(1 << 63)
OWNERS = re.compile(rb"owners (\S{1,100}(?: \S{1,100}){0,4095})\n")
HEADER = re.compile(
    rb"direction (?P<link>\S{1,100}) (?P<name>\S{1,100}) packets (?P<packets>\d{1,10}) "
    rb"duplicates (?P<duplicates>\d{1,10}) flows (?P<flows>\d{1,10}) heads (?P<heads>\d{1,10}) "
    rb"left-turns (?P<left>\d{1,10}) arrived-turns (?P<arrived>\d{1,10})\n"
)

Numbers: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True)
class Flow:
    """Packets from one place to another: addresses (text), ports (0: none; of ICMP's echoes their identifier), protocol
    of IP, EtherType.

    `owner`: the workload or service whose it is, `lab` (commands), `kernel`, or `unknown`.
    """

    from_ip: str
    to_ip: str
    from_port: int
    to_port: int
    protocol: int
    type_: int
    owner: str


@dataclass(frozen=True, eq=False)
class Packets:
    """The packets that a direction of a link was offered, in their order; times in ns since the epoch, NEVER for what
    did not happen.

    `waited_bytes`: bytes in the queue before it, the packet in transmission included. `due_ns`: when its last bit
    leaves by the link's own clock; `left_ns`: when it was seen behind the queue. `sequence`, `acknowledgement`,
    `window` (as in the header), `flags` are TCP's, and 0 for others. `payload`: bytes behind the transport's header.
    `heads`: the first 64 bytes behind the header of IP of packets that are neither TCP nor UDP, in their order.
    `left_turns`, `arrived_turns`: the rows of those moments in which packets were seen in another order than that in
    which they were offered, in the order in which they were seen.
    """

    link: str
    direction: str
    flows: tuple[Flow, ...]
    offered_ns: Numbers
    wire_bytes: Numbers
    waited_bytes: Numbers
    due_ns: Numbers
    left_ns: Numbers
    arrived_ns: Numbers
    fate: NDArray[np.uint8]
    bit_errors: Numbers
    flow: Numbers
    id_: Numbers
    payload: Numbers
    sequence: Numbers
    acknowledgement: Numbers
    window: Numbers
    flags: NDArray[np.uint8]
    heads: NDArray[np.uint8]
    duplicates_ns: Numbers
    left_turns: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    arrived_turns: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        """How many packets were offered."""
        return len(self.offered_ns)

    @cached_property
    def is_tcp(self) -> NDArray[np.bool_]:
        """Which packets show a header of TCP."""
        of_flows = np.array([flow.protocol in TCP_HEADERS for flow in self.flows], bool)
        found: NDArray[np.bool_] = of_flows[self.flow] & (self.flags != 0)
        return found

    def had(self, fate: str) -> NDArray[np.bool_]:
        """Which packets had a fate."""
        found: NDArray[np.bool_] = self.fate == FATES.index(fate)
        return found

    @cached_property
    def as_left(self) -> Numbers:
        """The rows of the packets that were seen behind the queue, in the order in which they were."""
        return _in_order(self.left_ns, self.left_turns)

    @cached_property
    def as_arrived(self) -> Numbers:
        """The rows of the packets that were seen at the end of the link, in the order in which they were."""
        return _in_order(self.arrived_ns, self.arrived_turns)

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """Which packets arrived unharmed, or with bits changed."""
        return self.had(DELIVERED) | self.had(FLIPPED)


def _in_order(times: Numbers, turns: Numbers) -> Numbers:
    seen = np.flatnonzero(times != NEVER)
    rows: Numbers = seen[np.argsort(times[seen], kind="stable")]
    # Whole moments: they have the same places among the rows by time.
    rows[np.isin(rows, turns)] = turns
    return rows


def read(path: Path) -> tuple[Packets, ...]:
    """The packets of every direction.

    Raises:
        ResultError: the file is missing, or is none.
    """
    try:
        content = content_of(path, LARGEST_FILE)
    except OSError as error:
        raise ResultError(
            f"{path}: found {error.strerror}; expected the record of a cell's packets. "
            "Run it again, without packets: off in its scenario."
        ) from error
    try:
        return tuple(_directions(content))
    except _Bad as error:
        raise ResultError(
            f"{path}: found {error}; expected a record of packets (docs/plan-format.md). Run the cell again."
        ) from error


class _Bad(Exception):
    """What is wrong with a file."""


def _directions(content: bytes) -> Iterator[Packets]:
    said = FIRST_LINE + b"columns " + layout(COLUMNS) + b"\n"
    if not content.startswith(said):
        raise _Bad("another first line")
    owners = OWNERS.match(content, len(said))
    if owners is None:
        raise _Bad("no owners")
    names = owners[1].decode(errors="replace").split(" ")
    at = owners.end()
    while at < len(content):
        header = HEADER.match(content, at)
        if header is None:
            raise _Bad(f"no direction at byte {at}")
        counts = {name: int(header[name]) for name in ("packets", "duplicates", "flows", "heads", "left", "arrived")}
        sizes = (
            counts["flows"] * np.dtype(FLOW).itemsize,
            counts["packets"] * sum(COLUMNS.values()),
            counts["heads"] * SHOWN_BYTES,
            counts["duplicates"] * 8,
            counts["left"] * 4,
            counts["arrived"] * 4,
        )
        start, at = header.end(), header.end() + sum(sizes)
        if at > len(content):
            raise _Bad(f"{len(content) - start} bytes of a direction's {sum(sizes)}")
        yield _direction(header, counts, content[start:at], sizes, names)


def _direction(
    header: re.Match[bytes], counts: Mapping[str, int], body: bytes, sizes: tuple[int, ...], names: list[str]
) -> Packets:
    flows_end, columns_end, heads_end, duplicates_end, left_end = np.cumsum(sizes[:5])
    raw = columns(body[flows_end:columns_end], COLUMNS, counts["packets"])
    flow = raw["flow"].astype(np.int64)
    if counts["packets"] and flow.max() >= counts["flows"]:
        raise _Bad(f"flow {flow.max()} of {counts['flows']}")
    flows = np.frombuffer(body, np.dtype(FLOW), counts["flows"])
    if counts["flows"] and flows["owner"].max() >= len(names):
        raise _Bad(f"owner {flows['owner'].max()} of {len(names)}")
    fate, payload = raw["fate"], raw["payload"].astype(np.int64)
    offered = np.cumsum(raw["offered"]).view(np.int64)
    due = _due(offered, raw["due"].view(np.int64))
    left = np.where(fate & HAS_LEFT, np.where(due == NEVER, offered, due) + raw["left"].view(np.int64), NEVER)
    before = np.where(left != NEVER, left, np.where(due == NEVER, offered, due))
    arrived = np.where(fate & HAS_ARRIVED, before + raw["arrived"].view(np.int64), NEVER)
    of_flows = _OfFlows(flow)
    return Packets(
        link=header["link"].decode(errors="replace"),
        direction=header["name"].decode(errors="replace"),
        flows=tuple(_flow(line, names) for line in flows),
        offered_ns=offered,
        wire_bytes=_sums(raw["wire_bytes"]),
        waited_bytes=_sums(raw["waited_bytes"]),
        due_ns=due,
        left_ns=left,
        arrived_ns=arrived,
        fate=fate & FATE_BITS,
        bit_errors=raw["bit_errors"].astype(np.int64),
        flow=flow,
        id_=of_flows.sums(raw["id"]) & 0xFFFF,
        payload=payload,
        sequence=of_flows.sums(raw["sequence"], payload) & 0xFFFFFFFF,
        acknowledgement=of_flows.sums(raw["acknowledgement"]) & 0xFFFFFFFF,
        window=of_flows.sums(raw["window"]) & 0xFFFF,
        flags=raw["flags"],
        heads=np.frombuffer(body[columns_end:heads_end], np.uint8).reshape(-1, SHOWN_BYTES),
        duplicates_ns=np.frombuffer(body[heads_end:duplicates_end], "<i8"),
        left_turns=_turns(body[duplicates_end:left_end], left),
        arrived_turns=_turns(body[left_end:], arrived),
    )


def _turns(body: bytes, times: Numbers) -> Numbers:
    """Rows of packets that were seen, each once, by time."""
    rows = np.frombuffer(body, "<u4").astype(np.int64)
    is_known = not len(rows) or (rows.max() < len(times) and len(np.unique(rows)) == len(rows))
    if not is_known or (times[rows] == NEVER).any() or (np.diff(times[rows]) < 0).any():
        raise _Bad("turns of packets that were not seen, or not in that order")
    return rows


def layout(sizes: Mapping[str, int]) -> bytes:
    """What a file says of its columns: their names, with the octets that a value takes."""
    return b" ".join(b"%s:%d" % (name.encode(), size) for name, size in sizes.items())


def columns(body: bytes, sizes: Mapping[str, int], count: int) -> dict[str, Any]:
    """The columns as they are in the file: the first bytes of all values stand together, then all second ones."""
    found, at = {}, 0
    for name, size in sizes.items():
        planes = np.frombuffer(body, np.uint8, size * count, at).reshape(size, count)
        found[name] = np.ascontiguousarray(planes.T).view(f"<u{size}").reshape(count)
        at += size * count
    return found


def _sums(column: Any) -> Numbers:
    """Values of 32 bits from their differences."""
    return (np.cumsum(column, dtype=np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _due(offered: Numbers, takes: Numbers) -> Numbers:
    """When packets are due, where `takes` is what each takes from where it can begin: when it is offered, or when the
    one before it is due. 0: it has no due time.
    """
    due = np.full(len(offered), NEVER)
    rows = np.flatnonzero(takes)
    if len(rows):
        ends = np.cumsum(takes[rows])
        due[rows] = ends + np.maximum.accumulate(offered[rows] - (ends - takes[rows]))
    return due


class _OfFlows:
    """Sums over the packets of each flow."""

    def __init__(self, flow: Numbers) -> None:
        self.order = np.argsort(flow, kind="stable")
        in_order = flow[self.order]
        self.begins = np.flatnonzero(np.diff(in_order, prepend=-1))
        self.lengths = np.diff(self.begins, append=len(flow))

    def sums(self, differences: Any, besides: Numbers | None = None) -> Numbers:
        """Values from differences to the flow's packet before, plus what that packet and those before it have in
        `besides`.
        """
        steps = differences[self.order].astype(np.int64)
        if besides is not None:
            earlier = np.roll(besides[self.order], 1)
            earlier[self.begins] = 0
            steps = steps + earlier
        sums = np.cumsum(steps)
        sums -= np.repeat(sums[self.begins] - steps[self.begins], self.lengths)
        found = np.empty_like(sums)
        found[self.order] = sums
        return found


def _flow(line: Any, names: list[str]) -> Flow:
    places = (ipaddress.IPv6Address(bytes(line[name])) for name in ("from", "to"))
    from_ip, to_ip = (str(place.ipv4_mapped or place) for place in places)
    from_port, to_port, protocol, type_, owner = (
        int(line[name]) for name in ("from_port", "to_port", "protocol", "type", "owner")
    )
    return Flow(from_ip, to_ip, from_port, to_port, protocol, type_, names[owner])


def seconds(t_ns: int) -> str | None:
    """Nanoseconds as seconds, all digits."""
    if t_ns == NEVER:
        return None
    sign = "-" if t_ns < 0 else ""
    return f"{sign}{abs(t_ns) // 10**9}.{abs(t_ns) % 10**9:09d}"
