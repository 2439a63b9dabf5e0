"""What a direction of a link does with packets, from what it is offered alone (link-model §1): who is dropped by the
queue, when each is due to leave, which bits are wrong, and what becomes of it.

All in numbers of numpy: an hour of a link is a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scpslab.measure.packets import DELIVERED, DUPLICATE, FATES, NEVER, Packets
from scpslab.plan.cell import Impairment
from scpslab.plan.links import CORRUPT, FLIPPED, OUTAGE, POLICY, QUEUE, Direction

SECOND_NS = 10**9
# A packet is passed on at most so much later than it is due: the clock of virtual time goes on by a fraction of it with
# every look at it that a program takes.
LATEST_NS = 10_000
# Errors of one packet that the lab counts; what is beyond falls into the packet behind it.
MOST_ERRORS = 512
WORD = (1 << 64) - 1

Numbers = NDArray[np.int64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Doubt:
    """A packet that cannot be explained: its place in the direction from 0, what was found and what was expected."""

    row: int
    found: str
    expected: str


@dataclass(frozen=True)
class Channel:
    """What stage 3 of a direction goes by: the gap vector as drawn, and the numbers of packets to lose."""

    gaps: Numbers
    listed: Numbers


@dataclass(frozen=True, eq=False)
class Audit:
    """The questions to a direction's record. `is_exact`: time is virtual, so that instants are known to the
    nanosecond; `is_steady`: nothing changes the link while it runs.
    """

    plan: Direction
    impairment: Impairment | None
    channel: Channel
    packets: Packets
    is_exact: bool
    is_steady: bool

    def doubt(self) -> Doubt | None:
        """The first packet that cannot be explained."""
        questions: list[Callable[[], Doubt | None]] = [self._order]
        queue = self.plan.queue
        if self.is_steady and self.plan.rate_bps and queue is not None and queue.serialises:
            questions += [self._due, self._queue]
        questions += [self._left, self._arrived]
        if self.is_steady:
            questions += [self._errors, self._fates, self._duplicates]
        doubts = [doubt for doubt in (question() for question in questions) if doubt is not None]
        return min(doubts, key=lambda doubt: doubt.row, default=None)

    @property
    def _is_ordered(self) -> bool:
        return not self.plan.jitter_ns

    def _passed(self) -> Marks:
        return ~self.packets.had(QUEUE)

    def _order(self) -> Doubt | None:
        """Nobody is offered, or seen, before what came before it; jitter alone lets packets overtake each other."""
        packets = self.packets
        doubts = [self._differs("offered after", packets.offered_ns[:-1], packets.offered_ns[1:], np.less_equal)]
        for times in (packets.left_ns, packets.arrived_ns) if self._is_ordered else (packets.left_ns,):
            rows = np.flatnonzero(times != NEVER)
            doubts.append(self._differs("seen after", times[rows][:-1], times[rows][1:], np.less_equal, rows[1:]))
        return next(filter(None, doubts), None)

    def _due(self) -> Doubt | None:
        """A packet takes its bytes' time on the line from when it is offered, or the one before it has left."""
        packets, rows = self.packets, np.flatnonzero(self._passed())
        assert self.plan.rate_bps is not None
        takes = packets.wire_bytes[rows] * SECOND_NS // (self.plan.rate_bps // 8)
        ends = np.cumsum(takes)
        due = ends + np.maximum.accumulate(packets.offered_ns[rows] - (ends - takes)) if len(rows) else ends
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
        return self._differs("behind bytes:", waited, packets.waited_bytes, np.equal) or self._differs(
            "dropped by the queue:", full, ~passed, np.equal
        )

    def _left(self) -> Doubt | None:
        """Nobody leaves before it is due, nor long after it."""
        packets = self.packets
        due = np.where(packets.due_ns == NEVER, packets.offered_ns, packets.due_ns)
        has_left = packets.left_ns != NEVER
        has_due_time = (packets.due_ns != NEVER) | (self.plan.rate_bps is None)
        return self._within("left at", due, packets.left_ns, has_left, has_due_time & self.is_steady)

    def _arrived(self) -> Doubt | None:
        """A packet arrives one delay after it has left."""
        packets, plan = self.packets, self.plan
        delays = [delay_ns for _, delay_ns in plan.delay_table] if plan.delay_table else [plan.delay_ns]
        has_arrived = (packets.arrived_ns != NEVER) & (packets.left_ns != NEVER)
        least = min(delays) - plan.jitter_ns if self.is_steady else 0
        is_known = self.is_steady and not plan.delay_table and (plan.queue is None or plan.queue.serialises)
        room_ns = 2 * plan.jitter_ns
        return self._within("arrived at", packets.left_ns + least, packets.arrived_ns, has_arrived, is_known, room_ns)

    def _within(
        self, what: str, least: Numbers, times: Numbers, which: Marks, is_known: Any, room_ns: int = 0
    ) -> Doubt | None:
        """Times are not before `least`; where they are known, at most `room_ns` and a moment later."""
        if not self.is_exact:
            # A real clock is read twice, by the program and by the kernel's queue.
            least, is_known = least - LATEST_NS, False
        late = self._differs(what, least, times, np.less_equal, which=which)
        return late or self._differs(
            what, least, times, lambda one, other: other <= one + room_ns + LATEST_NS, which=which & is_known
        )

    def _seen(self) -> Numbers:
        """The rows that were seen at the end of the link, in the order in which they came."""
        rows = np.flatnonzero(self.packets.arrived_ns != NEVER)
        return rows if self._is_ordered else rows[np.argsort(self.packets.arrived_ns[rows], kind="stable")]

    def _errors(self) -> Doubt | None:
        """The bits of the packets, one behind the other, meet the errors of the vector."""
        rows = self._seen()
        ends = np.cumsum(self.packets.wire_bytes[rows] * 8)
        places = _places(self.channel.gaps, int(ends[-1]) if len(ends) else 0)
        counts = np.diff(np.searchsorted(places, ends), prepend=0)
        if np.any(counts > MOST_ERRORS):
            return None
        return self._differs("bit errors:", counts, self.packets.bit_errors[rows], np.equal, rows)

    def _fates(self) -> Doubt | None:
        """An outage comes before the drop list, and that before bit errors."""
        packets, rows = self.packets, self._seen()
        errors = self.impairment.errors if self.impairment else None
        fate = np.where(packets.bit_errors[rows] > 0, FATES.index(FLIPPED), FATES.index(DELIVERED))
        if errors is not None:
            if errors.action == "drop":
                fate[packets.bit_errors[rows] > 0] = FATES.index(CORRUPT)
            counted = packets.wire_bytes[rows] >= errors.drop_min_bytes
            fate[counted & np.isin(np.cumsum(counted), self.channel.listed)] = FATES.index(POLICY)
            times = packets.arrived_ns[rows]
            for begin, end in errors.outages:
                fate[(times >= begin) & (times < end)] = FATES.index(OUTAGE)
        words = np.array(FATES)
        return self._differs("fate:", words[fate], words[packets.fate[rows]], np.equal, rows)

    def _duplicates(self) -> Doubt | None:
        """Packets that arrive are doubled by draws of a generator (xorshift64*, Vigna 2016) of the cell's."""
        packets, impairment = self.packets, self.impairment
        rows = self._seen()
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


def _places(gaps: Numbers, bits: int) -> Numbers:
    """The places of wrong bits among so many: the first gap leads to the first error, the others repeat."""
    if not len(gaps) or gaps[0] > bits:
        return gaps[:0]
    others = gaps[1:]
    once = np.cumsum(others, dtype=np.float64)
    # Gaps as long as a life of links would not fit into 64 bits when summed.
    others = others[: int(np.searchsorted(once, float(bits))) + 1] if once[-1] > bits else others
    turns = max(int(bits // max(float(others.sum(dtype=np.float64)), 1.0)) + 1, 1)
    places = int(gaps[0]) - 1 + np.concatenate(([0], np.cumsum(np.tile(np.minimum(others, bits + 1), turns))))
    return places[places < bits]


def _draws(state: int, count: int) -> list[int]:
    found = []
    for _ in range(count):
        state ^= state >> 12
        state = (state ^ state << 25) & WORD
        state ^= state >> 27
        found.append(state * 0x2545F4914F6CDD1D & WORD)
    return found
