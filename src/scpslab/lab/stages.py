"""The three stages of every link direction (link-model §1), their limits, errors and accounts.

1. Serialise and queue at the sending interface: netem's rate (exact packet times), the limit held by the eBPF program
`entering`;
   a discipline of the kernel's own holds rate and limit instead (lab/disciplines).
2. Propagate on the relay's interface towards the receiver: netem's delay.
3. Err at the receiving interface: the eBPF program `arriving` walks a gap vector.

Struct layouts follow images/guest/tools/stages.bpf.c.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from scpslab.core.names import file_name
from scpslab.lab import bpf
from scpslab.lab.disciplines import DISCIPLINES, ETHERNET_HEADER_BYTES, NETEM_LIMIT
from scpslab.lab.loop import monotonic_offset_ns
from scpslab.lab.packets import PacketLines
from scpslab.lab.place import CGROUP, PROGRAMS
from scpslab.lab.template import Space
from scpslab.plan.cell import CellPlan, Impairment
from scpslab.plan.error_models import Errors
from scpslab.plan.links import CORRUPT, FLIPPED, OUTAGE, POLICY, QUEUE, Direction

FIRST_INDEX = 1000
OBJECT = PROGRAMS / "stages.bpf.o"
PINS = "/run/bpf/scpslab"
RING_LIMIT = 1 << 16

ENTRY = struct.Struct("=QqQQQQQ4Q7Q")
ENTRY_COUNTERS = ("offered_packets", "offered_bytes", "queue_packets", "queue_bytes", "most_bytes", "most_packets")
ENTRY_COUNTERS_AT = 11 * 8
ENTRY_PIECES_AT = 17 * 8
ARRIVAL = struct.Struct("=qQQQQQQQQQQQ7Q14Q")
ARRIVAL_WINDOWS_AT = 4 * 8
ARRIVAL_DROP_COUNT_AT, ARRIVAL_DROP_AT = 7 * 8, 15 * 8
ARRIVAL_EPOCH_AT = 9 * 8
ARRIVAL_COUNTERS = (
    *("seen_packets", "corrupt_packets", "corrupt_bytes", "outage_packets", "outage_bytes", "policy_packets"),
    *("policy_bytes", "delivered_packets", "delivered_bytes", "flipped_packets", "bit_errors", "vector_wraps"),
    *("duplicated_packets", "duplicated_bytes"),
)
ARRIVAL_COUNTERS_AT = 19 * 8
VERDICT = struct.Struct("=QQIIII")
VERDICTS = {1: CORRUPT, 2: OUTAGE, 3: POLICY, 4: FLIPPED, 5: QUEUE}
ACTIONS = {"drop": 0, "flip": 1}

# A rate so high that it costs a packet nothing measurable, but makes netem keep the order when a delay shrinks.
ORDER_RATE = "80gbit"


def slot_of(index: int) -> int:
    """Where the programs keep the state of the interface with that index."""
    return index - FIRST_INDEX


@dataclass(frozen=True, eq=False)
class DirectionStages:
    """One direction of one link: the indices of the interfaces where it enters, arrives, is delayed, and where the
    relay sees what has left the queue.
    """

    link: str
    plan: Direction
    entering: int
    arriving: int
    relay: int | None
    leaving: int | None

    @property
    def name(self) -> str:
        """The direction's name, such as "forward"."""
        return self.plan.name


@dataclass(frozen=True)
class Verdict:
    """What became of a packet that did not pass unharmed: when (monotonic clock), its number in the direction, and a
    word of plan/links.py.
    """

    at_ns: int
    ordinal: int
    wire_bytes: int
    word: str
    bit_errors: int


@dataclass(frozen=True)
class Room:
    """Where the maps have room for what a direction may become: its first gap, its window; and the windows (offset,
    count) that it has of its plan.
    """

    gaps: int
    window: int
    planned_windows: tuple[int, int]


@dataclass(frozen=True)
class Settled:
    """What a cell has made of a network: what goes wrong in each direction, and by arrival the room for changes.

    `drawn`: the arrivals that have a list of packets to lose. `sampled`: the nodes whose connections a probe samples.
    """

    impairments: dict[DirectionStages, Impairment | None]
    room: dict[int, Room]
    drawn: frozenset[int]
    sampled: frozenset[str] = frozenset()

    def errors(self, direction: DirectionStages) -> Errors | None:
        """A direction's bit errors, drop list and outages."""
        return _errors(self.impairments[direction])

    def delay_options(self, direction: DirectionStages, delay_ns: int) -> str:
        """Netem's options for stage 2 of a direction."""
        return delay_options(direction, delay_ns, impairment=self.impairments[direction])


class Settings:
    """A cell's settings for all directions, as they are written into the maps.

    `spare_gaps`: how many gaps each direction has room for besides its plan's; then there is a spare window too.
    """

    def __init__(self, impairments: dict[DirectionStages, Impairment | None], vectors: Path, spare_gaps: int) -> None:
        self.gaps, self.windows, self.drops = array("Q"), array("Q"), array("Q")
        self.drawn: set[int] = set()
        self.room: dict[int, Room] = {}
        self._impairments, self._vectors, self._spare_gaps = impairments, vectors, spare_gaps

    def arrivals(self, logged: set[tuple[str, str]]) -> dict[int, bytes]:
        """The settings of every arrival; `logged`: directions, by link and name, whose packets are logged."""
        settings = {d.arriving: self._arrival(d, (d.link, d.name) in logged) for d in self._impairments}
        for arriving, setting in settings.items() if self._spare_gaps else ():
            windows = struct.unpack_from("=2Q", setting, ARRIVAL_WINDOWS_AT)
            self.room[arriving] = Room(len(self.gaps), len(self.windows) // 2, windows)
            self.gaps.extend(repeat(1, self._spare_gaps))
            self.windows.extend((0, 0))
        return settings

    def _arrival(self, direction: DirectionStages, logged: bool) -> bytes:
        impairment = self._impairments[direction]
        errors = _errors(impairment)
        gap_offset = len(self.gaps)
        vector = self._vectors / file_name(direction.link, direction.name, suffix=".u64")
        if vector.exists():
            self.gaps.frombytes(vector.read_bytes())
        gap_count = len(self.gaps) - gap_offset
        first_error = self.gaps[gap_offset] - 1 if gap_count else 0
        window_offset = len(self.windows) // 2
        for start, end in sorted(errors.outages) if errors else ():
            # One within another would end before it.
            if len(self.windows) == 2 * window_offset or end > self.windows[-1]:
                self.windows.extend((start, end))
        drop_offset = len(self.drops)
        drawn = self._vectors / file_name(direction.link, direction.name, suffix=".drops")
        listed = set(errors.drop_packets if errors else ())
        if drawn.exists():
            self.drawn.add(direction.arriving)
            lost = array("Q", drawn.read_bytes())
            # Beyond the last one drawn the list is over, and so is the cell.
            last = max(lost, default=0)
            listed = {*lost, *(number for number in listed if number < last)}
        self.drops.extend(sorted(listed))
        return ARRIVAL.pack(
            direction.plan.overhead_bytes,
            ACTIONS[errors.action] if errors else ACTIONS["drop"],
            gap_offset,
            gap_count,
            window_offset,
            len(self.windows) // 2 - window_offset,
            drop_offset,
            len(self.drops) - drop_offset,
            errors.drop_min_bytes if errors else 0,
            0,
            logged,
            *_duplicates(impairment, first_error),
            *[0] * 14,
        )


class Stages:
    """All directions of a lab: makes the maps, loads the programs once, writes the settings, reads the accounts."""

    def __init__(self, directions: list[DirectionStages], space: Space) -> None:
        """Makes room for what `settle` puts there."""
        self.directions, self.space = directions, space
        # Where each drop-tail queue notes the departures of what is in it.
        self.ring_places: dict[int, tuple[int, int]] = {}
        rings = 0
        for direction in directions:
            ring = _ring_entries(direction.plan)
            self.ring_places[direction.entering] = (rings, ring)
            rings += ring
        slots = max((slot_of(index) for d in directions for index in (d.entering, d.arriving)), default=0) + 1
        self.entries = bpf.ArrayMap("entries", ENTRY.size, slots)
        self.arrivals = bpf.ArrayMap("arrivals", ARRIVAL.size, slots)
        self.verdict_count = bpf.ArrayMap("verdict_count", 8, 1)
        self.verdicts = bpf.ArrayMap("verdicts", VERDICT.size, space.verdicts)
        self.send_ceilings = bpf.HashMap("send_ceilings", 256)
        self.recorded = PacketLines(space.packets or 0)
        # The maps live as long as somebody holds them.
        self.arrays = {
            "entries": self.entries,
            "departures": bpf.ArrayMap("departures", 16, rings),
            "arrivals": self.arrivals,
            "gaps": bpf.ArrayMap("gaps", 8, space.gaps),
            "windows": bpf.ArrayMap("windows", 16, space.windows),
            "drop_list": bpf.ArrayMap("drop_list", 8, space.drops),
            "verdicts": self.verdicts,
            "verdict_count": self.verdict_count,
            **self.recorded.arrays,
        }
        descriptors = {name: array.fd for name, array in self.arrays.items()} | {"send_ceilings": self.send_ceilings.fd}
        programs = bpf.ObjectFile(OBJECT)
        Path(PINS).mkdir(exist_ok=True)
        for name in ("entering", "leaving", "arriving"):
            bpf.pin(programs.load(f"tc/{name}", bpf.PROG_SCHED_CLS, descriptors), f"{PINS}/{name}")
        self.established = programs.load("sockops/established", bpf.PROG_SOCK_OPS, descriptors)
        bpf.attach_to_cgroup(self.established, str(CGROUP))

    def settle(self, cell: CellPlan | None, vectors: Path, spare_gaps: int) -> Settled:
        """Gives every direction a cell's settings; without a cell, none. `spare_gaps`: see Settings."""
        probes = cell.probes if cell else ()
        logged = {probe.logged_direction for probe in probes if probe.logged_direction is not None}
        impairments = {d: cell.impairment(d.link, d.name) if cell else None for d in self.directions}
        settings = Settings(impairments, vectors, spare_gaps)
        entries = {d.entering: self._entry(d, (d.link, d.name) in logged) for d in self.directions}
        arrivals = settings.arrivals(logged)
        for name, values in (("gaps", settings.gaps), ("windows", settings.windows), ("drop_list", settings.drops)):
            self.arrays[name].write(0, values.tobytes())
        for array_map, written in ((self.entries, entries), (self.arrivals, arrivals)):
            for index, setting in written.items():
                array_map.write(slot_of(index), setting)
        self.recorded.switch(cell is not None and cell.packets is not None)
        sampled = frozenset(probe.sampled_node for probe in probes if probe.sampled_node is not None)
        return Settled(impairments, settings.room, frozenset(settings.drawn), sampled)

    def _entry(self, direction: DirectionStages, logged: bool) -> bytes:
        plan = direction.plan
        rate, limit_bytes, limit_packets = _drop_tail(plan)
        offset, ring = self.ring_places[direction.entering]
        limits = (limit_bytes, limit_packets)
        return ENTRY.pack(rate, plan.overhead_bytes, *limits, offset, max(ring - 1, 0), logged, *[0] * 11)

    def start_epoch(self, epoch_realtime_ns: int) -> None:
        """Lets outage windows count from the epoch (the programs read the monotonic clock)."""
        epoch = struct.pack("=Q", epoch_realtime_ns - monotonic_offset_ns())
        for direction in self.directions:
            at = slot_of(direction.arriving) * self.arrivals.stride + ARRIVAL_EPOCH_AT
            self.arrivals.memory[at : at + 8] = epoch

    def account(self, direction: DirectionStages) -> dict[str, int]:
        """All counters of a direction; see docs/plan-format.md, accounting."""
        entry = self.entries.read(slot_of(direction.entering), ENTRY.size)
        arrival = self.arrivals.read(slot_of(direction.arriving), ARRIVAL.size)
        counters = dict(zip(ENTRY_COUNTERS, struct.unpack_from("=6Q", entry, ENTRY_COUNTERS_AT), strict=True))
        counters |= dict(zip(ARRIVAL_COUNTERS, struct.unpack_from("=14Q", arrival, ARRIVAL_COUNTERS_AT), strict=True))
        return counters

    def followed(self, direction: DirectionStages) -> int:
        """Of how many packets in a direction's queue the lab knows when they leave: more drop packets too early."""
        return self.ring_places[direction.entering][1]

    def pieces(self, direction: DirectionStages) -> int:
        """How often a program gave the direction several packets in one piece."""
        entry = self.entries.read(slot_of(direction.entering), ENTRY.size)
        return int(struct.unpack_from("=Q", entry, ENTRY_PIECES_AT)[0])

    def lost_all(self, direction: DirectionStages) -> bool:
        """Whether a direction has lost the last packet of its list, so that it would lose no other one."""
        state = self.arrivals.read(slot_of(direction.arriving), ARRIVAL.size)
        count, at = (struct.unpack_from("=Q", state, place)[0] for place in (ARRIVAL_DROP_COUNT_AT, ARRIVAL_DROP_AT))
        return bool(at >= count)

    def write_packets(self, records: Path, epoch_realtime_ns: int) -> str:
        """Writes the record of every packet; returns "", or why it is not whole."""
        offers, sights = self.recorded.counts()
        if offers > self.recorded.room or sights > 2 * self.recorded.room:
            found = f"the record of packets: found {max(offers, sights // 2)} lines"
            return (
                f"{found}; expected at most {self.recorded.room}, a tenth of the guest's memory. "
                "Raise limits.memory, or set packets: off"
            )
        lines = (
            f"{d.link} {d.name} {slot_of(d.entering)} {-1 if d.leaving is None else slot_of(d.leaving)} "
            f"{slot_of(d.arriving)}\n"
            for d in self.directions
        )
        self.recorded.write(records, lines, epoch_realtime_ns - monotonic_offset_ns())
        return ""

    def verdicts_of(self, direction: DirectionStages) -> tuple[list[Verdict], int]:
        """The verdict log's lines of a direction, and how many of all directions did not fit."""
        count = struct.unpack("=Q", self.verdict_count.read(0, 8))[0]
        kept = min(count, self.space.verdicts)
        data = self.verdicts.read(0, kept * self.verdicts.stride)
        verdicts = []
        for at_ns, ordinal, slot, wire_bytes, number, bit_errors in VERDICT.iter_unpack(data):
            word = VERDICTS[number]
            # A queue drops where packets enter; everything else happens where they arrive.
            if slot == slot_of(direction.entering if word == QUEUE else direction.arriving):
                verdicts.append(Verdict(at_ns, ordinal, wire_bytes, word, bit_errors))
        return verdicts, count - kept


def _errors(impairment: Impairment | None) -> Errors | None:
    return impairment.errors if impairment else None


def _drop_tail(plan: Direction) -> tuple[int, int, int]:
    """Rate in bytes/s and limits in bytes and packets of a drop-tail queue; zeros where there is none."""
    queue = plan.queue
    if not plan.rate_bps or queue is None or not queue.serialises:
        return 0, 0, 0
    return plan.rate_bps // 8, queue.limit_bytes or 0, queue.limit_packets or 0


def _ring_entries(plan: Direction) -> int:
    _, limit_bytes, limit_packets = _drop_tail(plan)
    if not limit_bytes and not limit_packets:
        return 0
    most = limit_packets or limit_bytes // max(28 + plan.overhead_bytes, 1)
    return min(1 << (most + 1).bit_length(), RING_LIMIT)


def _duplicates(impairment: Impairment | None, first_error: int) -> tuple[int, ...]:
    """Settings and state of an arrival from `duplicate_below` to `draw`; the first error's distance is among them."""
    below, draw = 0, 0
    if impairment and impairment.duplicate and impairment.seed:
        below = min(int(impairment.duplicate * 2.0**64), 2**64 - 1)
        draw = int(impairment.seed[:16], 16) or 1
    return (below, 0, first_error, 0, 0, 0, 0, draw)


def tc_lines(direction: DirectionStages, names: dict[int, str]) -> dict[str, list[str]]:
    """The tc commands of a direction by place: `entering`, `leaving`, `relay`, `arriving` (batch form, without the
    leading "tc").
    """
    plan = direction.plan
    entering, arriving = names[direction.entering], names[direction.arriving]
    pinned = f"prio 1 bpf direct-action object-pinned {PINS}"
    lines: dict[str, list[str]] = {
        "entering": [f"qdisc add dev {entering} clsact", f"filter add dev {entering} egress {pinned}/entering"],
        "relay": [],
        "arriving": [f"filter add dev {arriving} ingress {pinned}/arriving"],
    }
    queue, rate = plan.queue, plan.rate_bps
    paced_at_relay = ""
    if rate and queue:
        discipline = DISCIPLINES[queue.discipline]
        lines["entering"].append(
            f"qdisc add dev {entering} root handle 1: {discipline.root(rate, plan.overhead_bytes, queue)}"
        )
        if inside := discipline.inside(rate, queue):
            lines["entering"].append(f"qdisc add dev {entering} parent 1:1 handle 11: {inside}")
        if not queue.serialises:
            paced_at_relay = f" rate {rate}bit {plan.overhead_bytes - ETHERNET_HEADER_BYTES}"
    if direction.leaving is not None:
        lines["leaving"] = [
            f"qdisc add dev {names[direction.leaving]} clsact",
            f"filter add dev {names[direction.leaving]} ingress {pinned}/leaving",
        ]
    if direction.relay is not None:
        lines["relay"].append(
            f"qdisc add dev {names[direction.relay]} root handle 2: "
            f"{delay_options(direction, first_delay_ns(plan), paced_at_relay)}"
        )
    return lines


def first_delay_ns(plan: Direction) -> int:
    """The delay a direction starts with, ns."""
    return int(plan.delay_table[0][1] if plan.delay_table else plan.delay_ns)


def delay_options(
    direction: DirectionStages, delay_ns: int, rate: str = "", *, impairment: Impairment | None = None
) -> str:
    """Netem's options for stage 2."""
    plan = direction.plan
    if plan.jitter_ns:
        # A number of its own, or the guest's randomness would depend on what else is drawn; until there is a cell, any.
        seed = int(impairment.seed[16:28], 16) if impairment and impairment.seed else 0
        return f"netem limit {NETEM_LIMIT} delay {delay_ns}ns {plan.jitter_ns}ns seed {seed}"
    if plan.delay_table and not rate:
        rate = f" rate {ORDER_RATE}"
    return f"netem limit {NETEM_LIMIT} delay {delay_ns}ns{rate}"
