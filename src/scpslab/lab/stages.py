"""The three stages of every link direction (link-model §1), their limits, errors and accounts.

1. Serialise and queue at the sending interface: netem's rate (exact packet times), the limit held by the eBPF program
`entering`;
   a discipline of the kernel's own holds rate and limit instead (lab/disciplines). Where a cell changes the rate,
   `entering` gives each packet its time, and the kernel's fq holds it until then.
2. Propagate on the relay's interface towards the receiver: netem's delay; where a profile changes it, `delaying` gives
   each packet its time, and fq holds it.
3. Err at the receiving interface: the eBPF program `arriving` walks the places of bit errors.

Struct layouts follow images/guest/tools/stages.bpf.c.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice, repeat, takewhile
from pathlib import Path
from typing import Self

from scpslab.core.names import file_name
from scpslab.lab import bpf
from scpslab.lab.disciplines import DISCIPLINES, ETHERNET_HEADER_BYTES, NETEM_LIMIT
from scpslab.lab.packets import Owners, PacketLines
from scpslab.lab.place import CGROUP, PROGRAMS
from scpslab.lab.records import PACKETS, STATES
from scpslab.lab.template import Space
from scpslab.plan.cell import CellPlan, Impairment, LatePackets, stretches_of
from scpslab.plan.error_models import Errors
from scpslab.plan.links import Direction
from scpslab.plan.profiles import WHOLE_WEIGHT, Stretches, chances_of, with_sums

FIRST_INDEX = 1000
# By whether addresses are those of IPv6.
OBJECTS = {False: PROGRAMS / "stages.bpf.o", True: PROGRAMS / "stages-ipv6.bpf.o"}
PINS = "/run/bpf/scpslab"
RING_LIMIT = 1 << 16

ENTRY = struct.Struct("=Qq4Q4Q9Q7Q7Q")
ENTRY_COUNTERS = ("offered_packets", "offered_bytes", "queue_packets", "queue_bytes", "most_bytes", "most_packets")
ENTRY_EPOCH_AT = 8 * 8
ENTRY_COUNTERS_AT = 19 * 8
ENTRY_PIECES_AT = 25 * 8
ENTRY_BURST_AT, ENTRY_POLICED_AT = 28 * 8, 31 * 8
TRACK = struct.Struct("=4Qq")
ARRIVAL = struct.Struct(f"=q12Q{2 * TRACK.size}s8Q3Q14Q")
ARRIVAL_WINDOWS_AT = 2 * 8
ARRIVAL_DROP_COUNT_AT, ARRIVAL_DROP_AT = 5 * 8, 28 * 8
ARRIVAL_EPOCH_AT = 7 * 8
ARRIVAL_COUNTERS = (
    *("seen_packets", "corrupt_packets", "corrupt_bytes", "outage_packets", "outage_bytes", "policy_packets"),
    *("policy_bytes", "delivered_packets", "delivered_bytes", "flipped_packets", "bit_errors", "vector_wraps"),
    *("duplicated_packets", "duplicated_bytes"),
)
ARRIVAL_COUNTERS_AT = 34 * 8
PASSAGE = struct.Struct("=8Qq6Q")
ACTIONS = {"drop": 0, "flip": 1}
SOCKET_PROGRAMS = (
    ("sockops/established", bpf.PROG_SOCK_OPS, bpf.ATTACH_SOCK_OPS),
    ("cgroup/packet", bpf.PROG_CGROUP_SKB, bpf.ATTACH_INGRESS),
    ("cgroup/packet", bpf.PROG_CGROUP_SKB, bpf.ATTACH_EGRESS),
)

# A rate so high that it costs a packet nothing measurable, but makes netem keep the order when a delay shrinks.
ORDER_RATE = "80gbit"
# Beyond the life of any lab, in bits or nanoseconds.
NEVER = 1 << 62
STRETCH_BYTES = 32
# Pairs of a time (ns since the epoch) and a value.
Steps = tuple[tuple[int, int], ...]


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


def drawn(vectors: Path, direction: DirectionStages, suffix: str) -> array[int]:
    """The numbers that the engine has written for a direction, if any."""
    path = vectors / file_name(direction.link, direction.name, suffix=suffix)
    return array("Q", path.read_bytes() if path.exists() else b"")


@dataclass(frozen=True)
class Moves:
    """What the plan changes of a direction while a cell runs: its rates (until when, bit/s, sum, rest) or chances to
    leave (when, 0, bytes), its delays and the weights of its bit errors (from when, value), and when it is down.

    `is_linear`, `may_reorder`: of delays. `late`: packets with a delay of their own. `hold_ns`: of an aggregate, where
    there is no profile.
    """

    stretches: Stretches = ()
    in_chances: bool = False
    delays: Steps = ()
    weights: Steps = ()
    downs: Steps = ()
    is_linear: bool = False
    may_reorder: bool = False
    late: LatePackets | None = None
    hold_ns: int = 0

    @classmethod
    def of(cls, direction: DirectionStages, cell: CellPlan, vectors: Path) -> Self:
        """What a cell changes: its events change rates, a profile everything; the engine has written it out."""

        def steps(suffix: str) -> Steps:
            numbers = drawn(vectors, direction, suffix)
            return tuple(zip(numbers[::2], numbers[1::2], strict=True))

        impairment = cell.impairment(direction.link, direction.name)
        profile = impairment.profile if impairment else None
        late = impairment.late if impairment else None
        # Its program knows stage 2 by its steps only.
        delays = steps(".delays") or (((0, direction.plan.delay_ns),) if late else ())
        if profile is None:
            rates = tuple(with_sums(stretches_of(cell, direction.link, direction.plan)))
            return cls(rates, delays=delays, late=late, hold_ns=(impairment and impairment.aggregate_ns) or 0)
        chances = chances_of(steps(".chances"), direction.plan.overhead_bytes)
        return cls(
            chances or tuple(with_sums(steps(".rates") or stretches_of(cell, direction.link, direction.plan))),
            bool(chances),
            delays,
            steps(".weights"),
            steps(".downs"),
            profile.delay == "linear",
            profile.reorder,
            late,
        )

    def passage(self, settings: Settings, overhead_bytes: int) -> bytes:
        """Stage 2 as its program has it; the steps of delays and the numbers of late packets go into the maps."""
        late, course, numbers_at = self.late, settings.course(self.delays), len(settings.drops)
        settings.drops.extend(late.packets if late else ())
        listed = (len(late.packets), late.min_bytes, late.by_ns) if late else (0, 0, 0)
        own = (0, self.is_linear, self.may_reorder, *course, 0, 0)
        return PASSAGE.pack(*own, overhead_bytes, numbers_at, *listed, 0, 0)


UNMOVED = Moves()


@dataclass(frozen=True)
class Room:
    """Where the maps have room for what a direction may become: its first place, its window; and the windows (offset,
    count) that it has of its plan.
    """

    places: int
    window: int
    planned_windows: tuple[int, int]


@dataclass(frozen=True)
class Settled:
    """What a cell has made of a network: what goes wrong in each direction, and by arrival the room for changes.

    `drawn`: the arrivals that have a list of packets to lose. `sampled`: the nodes whose connections a probe samples.
    `varying`: the entries whose rate the plan changes. `moves`: what profiles change of directions.
    """

    impairments: dict[DirectionStages, Impairment | None]
    room: dict[int, Room]
    drawn: frozenset[int]
    sampled: frozenset[str] = frozenset()
    varying: frozenset[int] = frozenset()
    moves: Mapping[DirectionStages, Moves] = field(default_factory=dict)

    def errors(self, direction: DirectionStages) -> Errors | None:
        """A direction's bit errors, drop list and outages."""
        return _errors(self.impairments[direction])

    def delay_options(self, direction: DirectionStages, delay_ns: int) -> str:
        """Netem's options for stage 2 of a direction."""
        return delay_options(direction, delay_ns, impairment=self.impairments[direction])


def track(gaps: Sequence[int], offset: int, parts: int = 1) -> tuple[array[int], bytes]:
    """What the programs walk of a gap vector: the places of its errors from the first on, and behind them where they
    begin again; and the settings and state of such a track, at `offset` in the map. Places count in `parts` of a bit.
    """
    others = accumulate((gap * parts for gap in islice(gaps, 1, None)), initial=0)
    places = array("Q", takewhile(NEVER.__gt__, others)) if gaps else array("Q")
    if len(places) < len(gaps):
        places.append(NEVER)
    first = min(gaps[0] * parts, NEVER) - 1 if gaps else 0
    return places, TRACK.pack(offset, len(places), places[-1] if places else 0, 0, -first)


class Settings:
    """A cell's settings for all directions, as they are written into the maps.

    `spare_gaps`: how many errors each direction has room for besides its plan's; then there is a spare window too.
    """

    def __init__(
        self,
        impairments: dict[DirectionStages, Impairment | None],
        vectors: Path,
        spare_gaps: int,
        moves: Mapping[DirectionStages, Moves],
    ) -> None:
        self.places, self.windows, self.drops, self.steps = array("Q"), array("Q"), array("Q"), array("Q")
        self._moves = moves
        self.drawn: set[int] = set()
        self.room: dict[int, Room] = {}
        self._impairments, self._vectors, self._spare_gaps = impairments, vectors, spare_gaps

    def arrivals(self) -> dict[int, bytes]:
        """The settings of every arrival."""
        settings = {d.arriving: self._arrival(d) for d in self._impairments}
        for arriving, setting in settings.items() if self._spare_gaps else ():
            windows = struct.unpack_from("=2Q", setting, ARRIVAL_WINDOWS_AT)
            self.room[arriving] = Room(len(self.places), len(self.windows) // 2, windows)
            self.places.extend(repeat(1, self._spare_gaps))
            self.windows.extend((0, 0))
        return settings

    def _arrival(self, direction: DirectionStages) -> bytes:
        impairment = self._impairments[direction]
        errors = _errors(impairment)
        below, draw = _duplicates(impairment)
        tracks = b""
        moves = self._moves.get(direction, UNMOVED)
        parts = WHOLE_WEIGHT if moves.weights else 1
        for suffix in (".u64", ".bad.u64"):
            places, settings = track(drawn(self._vectors, direction, suffix), len(self.places), parts)
            self.places.extend(places)
            tracks += settings
        window_offset = len(self.windows) // 2
        for start, end in sorted((*(errors.outages if errors else ()), *moves.downs)):
            # One within another would end before it.
            if len(self.windows) == 2 * window_offset or end > self.windows[-1]:
                self.windows.extend((start, end))
        drop_offset = len(self.drops)
        listed = set(errors.drop_packets if errors else ())
        if lost := drawn(self._vectors, direction, ".drops"):
            self.drawn.add(direction.arriving)
            # Beyond the last one drawn the list is over, and so is the cell.
            last = max(lost, default=0)
            listed = {*lost, *(number for number in listed if number < last)}
        self.drops.extend(sorted(listed))
        return ARRIVAL.pack(
            direction.plan.overhead_bytes,
            ACTIONS[errors.action] if errors else ACTIONS["drop"],
            window_offset,
            len(self.windows) // 2 - window_offset,
            drop_offset,
            len(self.drops) - drop_offset,
            errors.drop_min_bytes if errors else 0,
            0,
            below,
            *self._spells(direction),
            bool(errors and errors.settings.in_time),
            tracks,
            *[0] * 7,
            draw,
            *self.course(moves.weights),
            *[0] * 14,
        )

    def course(self, steps: Steps) -> tuple[int, int, int]:
        """Puts steps into the map; returns where, how many, and which one holds first."""
        offset = len(self.steps) // 2
        self.steps.extend(chain.from_iterable(steps))
        return offset, len(steps), 0

    def _spells(self, direction: DirectionStages) -> tuple[int, int, int]:
        """Puts where the spells of the bad state begin among the places, and the sums of their lengths behind them;
        returns where, how many, and after how long they begin again.
        """
        lengths, offset = drawn(self._vectors, direction, ".spells"), len(self.places)
        ends = array("Q", takewhile(NEVER.__gt__, accumulate(lengths)))
        begins = ends[::2]
        self.places.extend(begins)
        self.places.extend(accumulate(islice(lengths, 1, 2 * len(begins), 2), initial=0) if lengths else ())
        return offset, len(begins), ends[-1] if lengths and len(ends) == len(lengths) else NEVER


class Stages:
    """All directions of a lab: makes the maps, loads the programs once, writes the settings, reads the accounts."""

    def __init__(self, directions: list[DirectionStages], space: Space, is_ipv6: bool = False) -> None:
        """Makes room for what `settle` puts there."""
        self.directions, self.space, self.is_ipv6 = directions, space, is_ipv6
        # Where each drop-tail queue notes the departures of what is in it.
        self.ring_places: dict[int, tuple[int, int]] = {}
        rings = 0
        for direction in directions:
            ring = _ring_entries(direction.plan)
            self.ring_places[direction.entering] = (rings, ring)
            rings += ring
        used = (index for d in directions for index in (d.entering, d.arriving, d.relay) if index is not None)
        slots = max(map(slot_of, used), default=0) + 1
        self.entries = bpf.ArrayMap("entries", ENTRY.size, slots)
        self.arrivals = bpf.ArrayMap("arrivals", ARRIVAL.size, slots)
        self.passages = bpf.ArrayMap("passages", PASSAGE.size, slots)
        self.send_ceilings = bpf.HashMap("send_ceilings", 256)
        self.recorded = PacketLines(space.packets)
        # The maps live as long as somebody holds them.
        self.arrays = {
            "entries": self.entries,
            "departures": bpf.ArrayMap("departures", 16, rings),
            "arrivals": self.arrivals,
            "places": bpf.ArrayMap("places", 8, space.places),
            "stretches": bpf.ArrayMap("stretches", STRETCH_BYTES, space.stretches),
            "steps": bpf.ArrayMap("steps", 16, space.steps),
            "passages": self.passages,
            "windows": bpf.ArrayMap("windows", 16, space.windows),
            "drop_list": bpf.ArrayMap("drop_list", 8, space.drops),
            **self.recorded.arrays,
        }
        self.hashes = {"send_ceilings": self.send_ceilings, "known_states": self.recorded.known_states}
        descriptors = {name: one.fd for name, one in (self.arrays | self.hashes).items()}
        programs = bpf.ObjectFile(OBJECTS[is_ipv6])
        Path(PINS).mkdir(exist_ok=True)
        for name in ("entering", "leaving", "delaying", "arriving"):
            bpf.pin(programs.load(f"tc/{name}", bpf.PROG_SCHED_CLS, descriptors), f"{PINS}/{name}")
        self.of_sockets = [(programs.load(name, kind, descriptors), where) for name, kind, where in SOCKET_PROGRAMS]
        self.attach(str(CGROUP))

    def attach(self, folder: str) -> None:
        """Has the programs of sockets run for those of a control group."""
        for program, where in self.of_sockets:
            bpf.attach_to_cgroup(program, folder, where)

    def settle(self, cell: CellPlan | None, vectors: Path, spare_gaps: int) -> Settled:
        """Gives every direction a cell's settings; without a cell, none. `spare_gaps`: see Settings."""
        probes = cell.probes if cell else ()
        impairments = {d: cell.impairment(d.link, d.name) if cell else None for d in self.directions}
        moves = {d: Moves.of(d, cell, vectors) for d in self.directions if cell}
        settings = Settings(impairments, vectors, spare_gaps, moves)
        stretches = array("Q")
        entries = {}
        for d in self.directions:
            own = moves.get(d, UNMOVED)
            at, count = STRETCH_BYTES // 8, len(own.stretches)
            places = (len(stretches) // at, count, 0, own.in_chances)
            entries[d.entering] = self._entry(d, places, _shaping(impairments[d]))
            stretches.extend(chain.from_iterable(own.stretches))
        arrivals = settings.arrivals()
        passages = {
            d.relay: moves.get(d, UNMOVED).passage(settings, d.plan.overhead_bytes)
            for d in self.directions
            if d.relay is not None
        }
        written_whole = {"places": settings.places, "windows": settings.windows, "drop_list": settings.drops}
        for name, values in (written_whole | {"stretches": stretches, "steps": settings.steps}).items():
            self.arrays[name].write(0, values.tobytes())
        for array_map, written in ((self.entries, entries), (self.arrivals, arrivals), (self.passages, passages)):
            for index, setting in written.items():
                array_map.write(slot_of(index), setting)
        self.recorded.switch(cell is not None and cell.packets is True)
        sampled = frozenset(probe.sampled_node for probe in probes if probe.sampled_node is not None)
        varying = frozenset(d.entering for d, own in moves.items() if own.stretches)
        return Settled(impairments, settings.room, frozenset(settings.drawn), sampled, varying, moves)

    def _entry(self, direction: DirectionStages, stretches: tuple[int, ...], shaping: tuple[int, ...]) -> bytes:
        plan = direction.plan
        rate, limit_bytes, limit_packets = _drop_tail(plan)
        offset, ring = self.ring_places[direction.entering]
        places = (limit_bytes, limit_packets, offset, max(ring - 1, 0), *stretches)
        return ENTRY.pack(rate, plan.overhead_bytes, *places, *[0] * 16, *shaping, *[0] * 4)

    def start_epoch(self, epoch_ns: int) -> None:
        """Lets whatever changes count from the epoch, on the monotonic clock, which the programs read."""
        epoch = struct.pack("=Q", epoch_ns)
        for direction in self.directions:
            at = slot_of(direction.arriving) * self.arrivals.stride + ARRIVAL_EPOCH_AT
            self.arrivals.memory[at : at + 8] = epoch
            at = slot_of(direction.entering) * self.entries.stride + ENTRY_EPOCH_AT
            self.entries.memory[at : at + 8] = epoch
            if direction.relay is not None:
                self.passages.write(slot_of(direction.relay), epoch)

    def account(self, direction: DirectionStages) -> dict[str, int]:
        """All counters of a direction; see docs/plan-format.md, accounting."""
        entry = self.entries.read(slot_of(direction.entering), ENTRY.size)
        arrival = self.arrivals.read(slot_of(direction.arriving), ARRIVAL.size)
        counters = dict(zip(ENTRY_COUNTERS, struct.unpack_from("=6Q", entry, ENTRY_COUNTERS_AT), strict=True))
        counters |= dict(zip(ARRIVAL_COUNTERS, struct.unpack_from("=14Q", arrival, ARRIVAL_COUNTERS_AT), strict=True))
        if struct.unpack_from("=Q", entry, ENTRY_BURST_AT)[0]:
            policed = struct.unpack_from("=2Q", entry, ENTRY_POLICED_AT)
            counters |= dict(zip(("policed_packets", "policed_bytes"), policed, strict=True))
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

    def write_packets(self, records: Path, owners: Owners, epoch_ns: int) -> str:
        """Writes the record of every packet and of TCP's states, in times since the epoch (on the monotonic clock);
        returns "", or why it is not whole.
        """
        if (used := self.recorded.used()) > self.recorded.room:
            return (
                f"the record of packets: found {used} lines; expected at most {self.recorded.room}, as many as the "
                "guest's memory has room for. Raise limits.memory, or set packets: off"
            )
        lines = (
            f"direction {d.link} {d.name} {slot_of(d.entering)} {-1 if d.leaving is None else slot_of(d.leaving)} "
            f"{slot_of(d.arriving)}\n"
            for d in self.directions
        )
        self.recorded.write(records / PACKETS, (*owners.lines(), *lines), epoch_ns)
        self.recorded.write_states(records / STATES, epoch_ns, self.is_ipv6)
        return ""


def _errors(impairment: Impairment | None) -> Errors | None:
    return impairment.errors if impairment else None


def _shaping(impairment: Impairment | None) -> tuple[int, int, int]:
    """Every how many ns packets may begin to leave, and the policer's rate (bytes/s) and burst; zeros without."""
    policer = impairment.policer if impairment else None
    hold_ns = (impairment.aggregate_ns if impairment else None) or 0
    return (hold_ns, policer.rate_bps // 8, policer.burst_bytes) if policer else (hold_ns, 0, 0)


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


def _duplicates(impairment: Impairment | None) -> tuple[int, int]:
    """Below what a draw doubles a packet, and the generator's first state; zeros where none is."""
    if impairment and impairment.duplicate and impairment.seed:
        return min(int(impairment.duplicate * 2.0**64), 2**64 - 1), int(impairment.seed[:16], 16) or 1
    return 0, 0


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
            f"{delay_options(direction, plan.first_delay_ns, paced_at_relay)}"
        )
    return lines


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
