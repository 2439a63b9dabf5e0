"""A second model of the links, which explains every packet of a cell's record, or names the first one that it cannot.

It shares no line with the lab that it judges: it knows the plan, the vectors as drawn, and the record.

Direction by direction, and hop by hop from what each was offered: who is dropped by the queue, when each is due to
leave, which bits are wrong, and what becomes of it (link-model §1). All in numbers of numpy: an hour of a link is a
second.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scpslab.audit.profile import WHOLE_WEIGHT, Course
from scpslab.core.errors import ResultError
from scpslab.core.names import file_name
from scpslab.measure.packets import DELIVERED, DUPLICATE, FATES, NEVER, Packets, read
from scpslab.plan import Plan
from scpslab.plan.cell import CellPlan, Impairment
from scpslab.plan.error_models import Errors
from scpslab.plan.events import LinkStep, RunStep
from scpslab.plan.links import CORRUPT, FLIPPED, FOR_EVER_NS, OUTAGE, POLICED, POLICY, QUEUE, Direction

SECOND_NS = 10**9
# A packet is passed on at most so much later than it is due: the clock of virtual time goes on by a fraction of it with
# every look at it that a program takes.
LATEST_NS = 10_000
# Between two addresses, Open vSwitch asks its daemon about the first packet, and about the first after a silence. The
# daemon waits for its turn among programs, which takes them some hundred looks where they begin; packets that follow
# wait too.
DAEMON_NS, SILENCE_NS = 200_000, 9 * SECOND_NS
# Beyond the life of any lab, in bits or nanoseconds.
LONGEST = 2.0**62
WORD = (1 << 64) - 1

Numbers = NDArray[np.int64]
Marks = NDArray[np.bool_]
NOTHING: Numbers = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Doubt:
    """A packet that cannot be explained: its place in the direction from 0, what was found and what was expected."""

    row: int
    found: str
    expected: str


@dataclass(frozen=True)
class Channel:
    """What stage 3 of a direction goes by, as drawn: the gap vector, the numbers of packets to lose; the gap vector of
    a bad state and how long the states last by turns, if there are two.
    """

    gaps: Numbers
    listed: Numbers
    bad_gaps: Numbers = field(default_factory=NOTHING.copy)
    spells: Numbers = field(default_factory=NOTHING.copy)


@dataclass(frozen=True)
class Changes:
    """What changes of a direction while a cell runs. `unknown`: anything may, as a person or a command likes.

    `rates`: until when each rate holds (ns), and bit/s; empty where it is constant. `delays_ns`: those to come.
    """

    unknown: bool = False
    rates: tuple[tuple[int, int], ...] = ()
    delays_ns: tuple[int, ...] = ()
    errors: bool = False


@dataclass(frozen=True, eq=False)
class Audit:
    """The questions to a direction's record. `is_exact`: time is virtual, so that instants are known to the
    nanosecond. `is_relayed`: packets pass a switch between its queue and its end.
    """

    plan: Direction
    impairment: Impairment | None
    channel: Channel
    packets: Packets
    is_exact: bool
    changes: Changes = Changes()
    course: Course | None = None
    is_relayed: bool = False

    def doubt(self) -> Doubt | None:
        """The first packet that cannot be explained."""
        questions: list[Callable[[], Doubt | None]] = [self._order, self._policed]
        queue, changes = self.plan.queue, self.changes
        if not changes.unknown and self.plan.rate_bps and queue is not None and queue.serialises:
            is_paced = self.course is not None and self.course.paces
            varying = self._due_by_profile if is_paced else self._due_as_rates_change
            questions += [varying if is_paced or changes.rates else self._due, self._queue]
        has_delays = self.course is not None and self.course.has("delay_s")
        questions += [self._left, self._arrived_by_profile if has_delays else self._arrived]
        if not changes.unknown and not changes.errors:
            questions += [self._errors, self._fates, self._duplicates]
        doubts = [doubt for doubt in (question() for question in questions) if doubt is not None]
        return min(doubts, key=lambda doubt: doubt.row, default=None)

    @property
    def _is_ordered(self) -> bool:
        late = self.impairment and self.impairment.late
        return not self.plan.jitter_ns and not late and not (self.course and self.course.profile.reorder)

    @property
    def _takes_turns(self) -> bool:
        """Whether packets are held until their times: flows that are due within a step of the clock take turns then."""
        return bool(self.changes.rates) or (self.course is not None and self.course.paces)

    def _passed(self) -> Marks:
        return ~(self.packets.had(QUEUE) | self.packets.had(POLICED))

    def _policed(self) -> Doubt | None:
        """A packet passes the policer for its bytes of credit, of which the bucket is full at first."""
        policer = self.impairment.policer if self.impairment else None
        lacking = np.zeros(len(self.packets), bool)
        if policer is not None:
            most = credit = policer.burst_bytes * SECOND_NS
            before = int(self.packets.offered_ns[0]) if len(self.packets) else 0
            each = zip(self.packets.offered_ns.tolist(), self.packets.wire_bytes.tolist(), strict=True)
            for row, (at, size) in enumerate(each):
                credit, before = min(most, credit + (at - before) * policer.rate_bps // 8), at
                lacking[row] = credit < size * SECOND_NS
                credit -= 0 if lacking[row] else size * SECOND_NS
        return self._differs("policed:", lacking, self.packets.had(POLICED), np.equal)

    def _begins(self, rows: Numbers) -> Numbers:
        """When packets can begin to leave: as they are offered, or with the next lot of an aggregate."""
        offered, hold_ns = self.packets.offered_ns[rows], (self.impairment and self.impairment.aggregate_ns) or 1
        return np.where(offered < 0, offered, -(-offered // hold_ns) * hold_ns)

    def _lateness(self) -> Numbers:
        """By how much longer than others each packet is under way."""
        late, packets, found = self.impairment.late if self.impairment else None, self.packets, self.packets.left_ns * 0
        if late is not None:
            counted = packets.as_left[packets.wire_bytes[packets.as_left] >= late.min_bytes]
            found[counted[[number - 1 for number in late.packets if number <= len(counted)]]] = late.by_ns
            shown = (packets.flow, packets.wire_bytes, packets.id_, packets.sequence, packets.acknowledgement)
            _, kind = np.unique(np.stack(shown), axis=1, return_inverse=True)
            for one in np.unique(kind[found > 0]):
                # The first of packets that are alike is seen first, whichever overtook the other.
                rows = np.flatnonzero((kind == one) & (packets.arrived_ns != NEVER))
                if (np.diff(packets.arrived_ns[rows]) >= 0).all():
                    found[rows] = np.sort(packets.left_ns[rows] + found[rows]) - packets.left_ns[rows]
        return found

    def _order(self) -> Doubt | None:
        """Nobody is offered, or seen, before what came before it; jitter lets packets overtake each other, and flows
        take turns where packets are held: within a moment, and where time is real for as long as timers are late.
        """
        packets, room_ns = self.packets, LATEST_NS if self._takes_turns else 0
        doubts = [self._differs("offered after", packets.offered_ns[:-1], packets.offered_ns[1:], np.less_equal)]
        for times in (packets.left_ns, packets.arrived_ns) if self._is_ordered else (packets.left_ns,):
            rows = np.flatnonzero(times != NEVER)
            before = times[rows][:-1] - room_ns
            if self._takes_turns and not self.is_exact:
                rows = rows[np.argsort(packets.flow[rows], kind="stable")]
                before = np.where(np.diff(packets.flow[rows]), -(1 << 62), times[rows][:-1])
            doubts.append(self._differs("seen after", before, times[rows][1:], np.less_equal, rows[1:]))
        return next(filter(None, doubts), None)

    def _due(self) -> Doubt | None:
        """A packet takes its bytes' time on the line from when it is offered, or the one before it has left."""
        packets, rows = self.packets, np.flatnonzero(self._passed())
        assert self.plan.rate_bps is not None
        takes = packets.wire_bytes[rows] * SECOND_NS // (self.plan.rate_bps // 8)
        ends = np.cumsum(takes)
        due = ends + np.maximum.accumulate(packets.offered_ns[rows] - (ends - takes)) if len(rows) else ends
        return self._differs("due at", due, packets.due_ns[rows], np.equal, rows)

    def _due_as_rates_change(self) -> Doubt | None:
        """The rate's integral, from when a packet can begin to when it is due, is its bits: a nanosecond less would not
        do. All in whole numbers.
        """
        packets, rows = self.packets, np.flatnonzero(self._passed())
        begins = np.maximum(self._begins(rows), np.append(-(1 << 62), packets.due_ns[rows][:-1]))
        ends, rates = (np.array(column, np.int64) for column in zip(*self.changes.rates, strict=True))
        now, left = begins.copy(), packets.wire_bytes[rows] * 8 * SECOND_NS
        at = np.searchsorted(ends, now, side="right")
        while True:
            needs = -(-left // rates[at])
            is_over = needs > ends[at] - now
            if not is_over.any():
                break
            has = np.where(is_over, ends[at] - now, 0)
            left, now, at = left - has * rates[at], now + has, at + is_over
        return self._differs("due at", np.maximum(now + needs, begins + 1), packets.due_ns[rows], np.equal, rows)

    def _due_by_profile(self) -> Doubt | None:
        """As the table says."""
        assert self.course is not None
        assert self.plan.rate_bps is not None
        packets, rows = self.packets, np.flatnonzero(self._passed())
        due = self.course.due(
            self._begins(rows), packets.wire_bytes[rows], self.plan.rate_bps, self.plan.overhead_bytes
        )
        return self._differs("due at", due, packets.due_ns[rows], np.equal, rows)

    def _queue(self) -> Doubt | None:
        """What waits is what has passed and is not yet due; a packet that does not fit is dropped."""
        packets, queue, passed = self.packets, self.plan.queue, self._passed()
        assert queue is not None
        before: Numbers = np.cumsum(passed) - passed
        gone = np.searchsorted(packets.due_ns[passed], packets.offered_ns, side="right")
        filled = np.concatenate(([0], np.cumsum(packets.wire_bytes[passed])))
        waited = filled[before] - filled[np.minimum(gone, before)]
        held = before - np.minimum(gone, before)
        full = np.zeros(len(packets), bool)
        if queue.limit_bytes is not None:
            full |= waited + packets.wire_bytes > queue.limit_bytes
        if queue.limit_packets is not None:
            full |= held + 1 > queue.limit_packets
        came = ~packets.had(POLICED)
        return self._differs("behind bytes:", waited, packets.waited_bytes, np.equal, which=came) or self._differs(
            "dropped by the queue:", full & came, packets.had(QUEUE), np.equal
        )

    def _left(self) -> Doubt | None:
        """Nobody leaves before it is due, nor long after it."""
        packets = self.packets
        due = np.where(packets.due_ns == NEVER, packets.offered_ns, packets.due_ns)
        has_left = packets.left_ns != NEVER
        has_due_time = (packets.due_ns != NEVER) | (self.plan.rate_bps is None)
        return self._within("left at", due, packets.left_ns, has_left, has_due_time & (not self.changes.unknown))

    def _arrived(self) -> Doubt | None:
        """A packet arrives one delay after it has left."""
        packets, plan, changes = self.packets, self.plan, self.changes
        delays = [delay_ns for _, delay_ns in plan.delay_table] if plan.delay_table else [plan.delay_ns]
        has_arrived = (packets.arrived_ns != NEVER) & (packets.left_ns != NEVER)
        least = 0 if changes.unknown else min(*delays, *changes.delays_ns, delays[0]) - plan.jitter_ns
        is_constant = not plan.delay_table and not changes.delays_ns and not changes.unknown
        is_known = is_constant and (plan.queue is None or plan.queue.serialises)
        room_ns = 2 * plan.jitter_ns + self._daemon_ns()
        least_ns = packets.left_ns + least + self._lateness()
        return self._within("arrived at", least_ns, packets.arrived_ns, has_arrived, is_known, room_ns)

    def _arrived_by_profile(self) -> Doubt | None:
        """A packet arrives the delay of the moment after it has left, and in the order of leaving unless the profile
        says otherwise.
        """
        assert self.course is not None
        packets = self.packets
        rows = packets.as_left[packets.arrived_ns[packets.as_left] != NEVER]
        left, own_ns = packets.left_ns[rows], self.plan.first_delay_ns
        # The program looks at the clock a moment after the packet has left, and the delay of then counts.
        latest_ns = LATEST_NS + self._daemon_ns()[rows]
        delays = [self.course.delays(times, own_ns) for times in (left, left + latest_ns)]
        late = self._lateness()[rows]
        bounds = [left + np.minimum(*delays) - 2, left + np.maximum(*delays) + latest_ns - LATEST_NS]
        if not self.course.profile.reorder:
            # Late ones are overtaken, and hold nobody up.
            latest = [np.maximum.accumulate(np.where(late > 0, 0, one)) for one in bounds]
            bounds = [np.where(late > 0, one, of_all) for one, of_all in zip(bounds, latest, strict=True)]
        bounds = [one + late for one in bounds]
        least, room_ns, which = (
            np.zeros(len(packets), np.int64),
            np.zeros(len(packets), np.int64),
            np.zeros(len(packets), bool),
        )
        least[rows], room_ns[rows], which[rows] = bounds[0], bounds[1] - bounds[0], True
        return self._within("arrived at", least, packets.arrived_ns, which, True, room_ns)

    def _within(
        self, what: str, least: Numbers, times: Numbers, which: Marks, is_known: Any, room_ns: Numbers | int = 0
    ) -> Doubt | None:
        """Times are not before `least`; where they are known, at most `room_ns` and a moment later."""
        if not self.is_exact:
            # A real clock is read twice, by the program and by the kernel's queue.
            least, is_known = least - LATEST_NS, False
        late = self._differs(what, least, times, np.less_equal, which=which)
        return late or self._differs(
            what, least, times, lambda one, other: other <= one + room_ns + LATEST_NS, which=which & is_known
        )

    def _daemon_ns(self) -> Numbers:
        """How much later each packet may arrive where the daemon of a switch had to say where it goes."""
        packets, found = self.packets, np.zeros(len(self.packets), np.int64)
        if not self.is_relayed:
            return found
        pairs: dict[tuple[str, str], int] = {}
        numbers = [pairs.setdefault((flow.from_ip, flow.to_ip), len(pairs)) for flow in packets.flows]
        pair = np.array(numbers, np.int64)[packets.flow]
        rows = packets.as_left[np.argsort(pair[packets.as_left], kind="stable")]
        times = packets.left_ns[rows]
        is_asked = (np.diff(pair[rows], prepend=-1) != 0) | (np.diff(times, prepend=0) > SILENCE_NS)
        asked = np.maximum.accumulate(np.where(is_asked, np.arange(len(rows)), 0))
        found[rows] = (times - times[asked] <= DAEMON_NS) * (DAEMON_NS - LATEST_NS)
        return found

    def _errors(self) -> Doubt | None:
        """The bits of the packets, one behind the other, meet the errors of the vector."""
        rows, channel = self.packets.as_arrived, self.channel
        bits = self.packets.wire_bytes[rows] * 8
        parts = 1
        if self.course is not None and self.course.has("ber"):
            # Places count in parts of a bit: at a smaller rate a packet has fewer of them.
            parts = WHOLE_WEIGHT
            bits = bits * self.course.weights(self.packets.arrived_ns[rows])
        bad = np.zeros_like(bits)
        if len(channel.spells):
            if self.impairment and self.impairment.errors and self.impairment.errors.settings.in_time:
                times = np.maximum(self.packets.arrived_ns[rows], 0)
                bad = bits * (_bad_until(channel.spells, times + 1) - _bad_until(channel.spells, times))
            else:
                bad = np.diff(_bad_until(channel.spells, np.cumsum(bits)), prepend=0)
        counts = np.diff(_errors_until(channel.gaps, np.cumsum(bits - bad), parts), prepend=0)
        counts += np.diff(_errors_until(channel.bad_gaps, np.cumsum(bad)), prepend=0)
        return self._differs("bit errors:", counts, self.packets.bit_errors[rows], np.equal, rows)

    def _fates(self) -> Doubt | None:
        """An outage comes before the drop list, and that before bit errors."""
        packets, rows = self.packets, self.packets.as_arrived
        errors, times = self.impairment.errors if self.impairment else None, packets.arrived_ns[rows]
        fate = np.where(packets.bit_errors[rows] > 0, FATES.index(FLIPPED), FATES.index(DELIVERED))
        if errors is not None:
            if errors.action == "drop":
                fate[packets.bit_errors[rows] > 0] = FATES.index(CORRUPT)
            counted = packets.wire_bytes[rows] >= errors.drop_min_bytes
            fate[counted & np.isin(np.cumsum(counted), self.channel.listed)] = FATES.index(POLICY)
            for begin, end in errors.outages:
                fate[(times >= begin) & (times < end)] = FATES.index(OUTAGE)
        if self.course is not None and self.course.profile.when_down == "lose":
            fate[self.course.downs(times)] = FATES.index(OUTAGE)
        words = np.array(FATES)
        return self._differs("fate:", words[fate], words[packets.fate[rows]], np.equal, rows)

    def _duplicates(self) -> Doubt | None:
        """Packets that arrive are doubled by draws of a generator (xorshift64*, Vigna 2016) of the cell's."""
        packets, impairment = self.packets, self.impairment
        rows = self.packets.as_arrived
        rows = rows[packets.arrived[rows]]
        twice = rows[:0]
        if impairment is not None and impairment.duplicate and impairment.seed:
            below = min(int(impairment.duplicate * 2.0**64), WORD)
            draws = _draws(int(impairment.seed[:16], 16) or 1, len(rows))
            twice = rows[[draw < below for draw in draws]]
        times, count = packets.arrived_ns[twice], min(len(twice), len(packets.duplicates_ns))
        if len(twice) != len(packets.duplicates_ns):
            row = int(twice[count]) if count < len(twice) else len(packets) - 1
            return Doubt(row, f"{len(packets.duplicates_ns)} that arrived twice", f"{len(twice)}")
        return self._differs(f"{DUPLICATE} at", times, packets.duplicates_ns, np.less_equal, twice)

    def _differs(
        self,
        what: str,
        expected: Any,
        found: Any,
        is_right: Callable[[Any, Any], Any],
        rows: Numbers | None = None,
        which: Marks | None = None,
    ) -> Doubt | None:
        """The first place where two columns are not as they must be."""
        wrong = ~is_right(expected, found)
        places = np.flatnonzero(wrong if which is None else wrong & which)
        if not len(places):
            return None
        place = int(places[0])
        first_row = len(self.packets) - len(found) if rows is None else 0
        row = place + first_row if rows is None else int(rows[place])
        return Doubt(row, f"{what} {found[place]}", f"{expected[place]}")


def _turn(lengths: Numbers) -> tuple[Numbers, int]:
    """Where each of some lengths ends, one behind the other, and after how long they begin again; what is longer than
    the life of links does not fit into 64 bits when summed.
    """
    fitting = np.cumsum(lengths, dtype=np.float64) < LONGEST
    ends = np.cumsum(lengths[fitting])
    return ends, int(ends[-1]) if fitting.all() else int(LONGEST)


def _errors_until(gaps: Numbers, bits: Numbers, parts: int = 1) -> Numbers:
    """How many errors are among the first so many bits, or `parts` of them: the first gap leads to the first error, the
    others repeat.
    """
    if not len(gaps):
        return np.zeros_like(bits)
    others, period = _turn(gaps[1:] * parts)
    behind = bits - gaps[0] * parts
    turns, rest = np.divmod(behind, period)
    counts = 1 + turns * (len(gaps) - 1) + np.searchsorted(others, rest, side="right")
    return np.where(behind >= 0, counts, 0)


def _bad_until(spells: Numbers, places: Numbers) -> Numbers:
    """How much of the bad state is before places of the channel's clock; spells are good and bad by turns."""
    ends, period = _turn(spells)
    lengths = spells[: len(ends)] * (np.arange(len(ends)) % 2)
    sums = np.concatenate(([0], np.cumsum(lengths)))
    turns, rest = np.divmod(places, period)
    at = np.searchsorted(ends, rest, side="right")
    begun = np.concatenate(([0], ends))[at]
    before: Numbers = turns * sums[-1] + sums[at] + np.where(at % 2, rest - begun, 0)
    return before


def _draws(state: int, count: int) -> list[int]:
    found = []
    for _ in range(count):
        state ^= state >> 12
        state = (state ^ state << 25) & WORD
        state ^= state >> 27
        found.append(state * 0x2545F4914F6CDD1D & WORD)
    return found


def unexplained(plan: Plan, vectors: Path, record: Path, *, is_exact: bool) -> str:
    """The first packet of a cell that the model cannot explain, in a sentence; "" if it explains all.

    `vectors`: the folder of the bit errors and lost packets that were drawn for the cell.
    """
    try:
        directions = {(one.link, one.direction): one for one in read(record)}
    except ResultError as error:
        return f"the audit of packets: {error}"
    for link in plan.network.links:
        for direction in link.directions:
            place = (link.name, direction.name)
            packets = directions.get(place)
            if packets is None:
                return f"the audit of packets: found no record of {link.name}.{direction.name}; expected one"
            impairment = plan.cell.impairment(*place)
            channel = _channel(vectors, link.name, direction.name, impairment.errors if impairment else None)
            changes = _changes(plan.cell, link.name, direction)
            table, profile = vectors / file_name(*place, suffix=".csv"), impairment.profile if impairment else None
            course = Course.of(table.read_text(), profile) if profile else None
            doubt = Audit(direction, impairment, channel, packets, is_exact, changes, course, bool(link.via)).doubt()
            if doubt is not None:
                where = f"{link.name}.{direction.name}, packet {doubt.row + 1}{_offered(packets, doubt.row)}"
                return f"the audit of packets: {where}: found {doubt.found}; expected {doubt.expected}"
    return ""


def _offered(packets: Packets, row: int) -> str:
    return f" (offered at {packets.offered_ns[row] / SECOND_NS:.9f} s)" if 0 <= row < len(packets) else ""


def _channel(vectors: Path, link: str, name: str, errors: Errors | None) -> Channel:
    drawn = vectors / file_name(link, name, suffix=".drops")
    listed = np.array(errors.drop_packets if errors else (), np.int64)
    if drawn.exists():
        lost = _numbers(drawn)
        # Beyond the last one drawn the list is over, and so is the cell.
        listed = np.union1d(lost, listed[listed < lost.max(initial=0)])
    gaps, bad_gaps, spells = (
        _numbers(vectors / file_name(link, name, suffix=ending)) for ending in (".u64", ".bad.u64", ".spells")
    )
    return Channel(gaps, listed, bad_gaps, spells)


def _changes(cell: CellPlan, link: str, direction: Direction) -> Changes:
    """What a plan says of the changes of a direction: bit errors and outages of an event are not known beforehand."""
    steps = [step for step in cell.events if isinstance(step, LinkStep)]
    own = [step for step in steps if step.link == link and direction.name in step.directions]
    rates = sorted((step.at_ns, int(step.value)) for step in own if step.change == "rate")
    ends = [*(t_ns for t_ns, _ in rates), FOR_EVER_NS]
    impairment = cell.impairment(link, direction.name)
    varies = rates or (impairment is not None and impairment.aggregate_ns is not None)
    return Changes(
        unknown=bool(cell.shell or cell.mininet or any(isinstance(step, RunStep) for step in cell.events)),
        rates=tuple(zip(ends, [direction.rate_bps or 0, *(bps for _, bps in rates)], strict=True)) if varies else (),
        delays_ns=tuple(int(step.value) for step in own if step.change == "delay"),
        errors=any(step.change in ("ber", "state") for step in own),
    )


def _numbers(path: Path) -> Numbers:
    return np.fromfile(path, "<u8").astype(np.int64) if path.exists() else np.zeros(0, np.int64)
