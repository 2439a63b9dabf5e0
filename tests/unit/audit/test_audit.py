"""The auditor against packets that a loop sends one by one: it explains them, and finds each that is changed."""

import random
from dataclasses import replace

import numpy as np
import pytest

from scpslab.audit import Audit, Changes, Channel, Doubt
from scpslab.measure.packets import FATES, NEVER, Packets
from scpslab.plan.cell import Impairment, LatePackets
from scpslab.plan.disciplines import Queue
from scpslab.plan.error_models import Errors, ErrorSettings
from scpslab.plan.links import Direction
from tests.made_records import tcp

from scpslab.kinds.errors.gilbert_elliott.plan import GilbertElliott

RATE_BPS, DELAY_NS, LIMIT_BYTES = 2_000_000, 40_000_000, 6_000
OUTAGE = (500_000_000, 600_000_000)
LISTED = (5, 9)
GAPS = np.array([90_000, 1, 7, 50_000, 30_000], np.int64)


RATES = (
    (700_000_000, RATE_BPS),
    (700_000_007, 8),
    (701_000_000, 40_000_000),
    (1_200_000_000, 300_000),
    (1 << 62, RATE_BPS),
)
CHANNEL = Channel(
    gaps=np.array([70, 9, 130], np.int64),
    listed=np.zeros(0, np.int64),
    bad_gaps=np.array([1, 2, 1, 5], np.int64),
    spells=np.array([0, 37, 1_800, 333, 2, 4_000], np.int64),
)


def leaves_at(start: int, wire: int, rates) -> int:
    """When a packet has left, nanosecond by nanosecond where few are left, as the rates are."""
    left, now = wire * 8 * 10**9, start
    for to, bps in rates:
        if now < to:
            needs = -(-left // bps)
            if needs <= to - now:
                return now + needs
            left, now = left - (to - now) * bps, to
    raise AssertionError("it never leaves")


def sent(seed: int, *, queue: Queue, count: int = 400, rates=()) -> Packets:
    """What a drop-tail link does with packets of random sizes at random times, packet by packet."""
    draw = random.Random(seed)
    now, last_due, line, bits, seen = 0, 0, [], 0, 0
    errors = _error_places()
    columns = {name: [] for name in ("offered", "wire", "waited", "due", "left", "arrived", "fate", "errors")}
    for _ in range(count):
        now += draw.choice((0, 256, 500_000, 4_000_000, 9_000_000))
        wire = draw.choice((40, 52, 576, 1452, 1500))
        line = [(due, size) for due, size in line if due > now]
        waited = sum(size for _, size in line)
        is_full = (queue.limit_bytes is not None and waited + wire > queue.limit_bytes) or (
            queue.limit_packets is not None and len(line) + 1 > queue.limit_packets
        )
        due = left = arrived = NEVER
        fate, wrong = "queue", 0
        if not is_full:
            start = max(last_due, now)
            last_due = due = leaves_at(start, wire, rates) if rates else start + wire * 10**9 // (RATE_BPS // 8)
            line.append((due, wire))
            left = due + draw.choice((0, 256, 1024))
            arrived = left + DELAY_NS + draw.choice((0, 256))
            wrong = sum(bits <= place < bits + 8 * wire for place in errors)
            bits, seen = bits + 8 * wire, seen + 1
            is_out = OUTAGE[0] <= arrived < OUTAGE[1]
            fate = "outage" if is_out else "policy" if seen in LISTED else "corrupt" if wrong else "delivered"
        values = (now, wire, waited, due, left, arrived, FATES.index(fate), wrong)
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    numbers = {name: np.array(column, np.int64) for name, column in columns.items()}
    nothing = np.zeros(count, np.int64)
    return Packets(
        link="hop",
        direction="forward",
        flows=(tcp(("10.0.0.1", 1), ("10.0.0.2", 2)),),
        offered_ns=numbers["offered"],
        wire_bytes=numbers["wire"],
        waited_bytes=numbers["waited"],
        due_ns=numbers["due"],
        left_ns=numbers["left"],
        arrived_ns=numbers["arrived"],
        fate=numbers["fate"].astype(np.uint8),
        bit_errors=numbers["errors"],
        **dict.fromkeys(("flow", "id_", "payload", "sequence", "acknowledgement", "window"), nothing),
        flags=nothing.astype(np.uint8),
        heads=np.zeros((0, 64), np.uint8),
        duplicates_ns=nothing[:0],
    )


def _error_places() -> list[int]:
    """The places of the vector's errors, walked gap by gap."""
    place, places, at = int(GAPS[0]) - 1, [], 0
    while place < 5_000_000:
        places.append(place)
        at = at + 1 if at + 1 < len(GAPS) else 1
        place += int(GAPS[at])
    return places


def audit(
    packets: Packets,
    queue: Queue,
    *,
    gaps=GAPS,
    listed: tuple[int, ...] = LISTED,
    outages=(OUTAGE,),
    rates=(),
    is_relayed=True,
    late=None,
) -> Doubt | None:
    """What the auditor doubts of a link with these errors."""
    errors = Errors(
        model="none",
        action="drop",
        settings=ErrorSettings(),
        seed="5c" * 32,
        vector_errors=1,
        drop_packets=listed,
        drop_min_bytes=0,
        outages=outages,
    )
    impairment = Impairment(link="hop", direction="forward", errors=errors, late=late)
    channel = Channel(gaps, np.array(listed, np.int64))
    direction = Direction("forward", RATE_BPS, 0, queue, DELAY_NS)
    return Audit(direction, impairment, channel, packets, True, Changes(rates=rates), is_relayed=is_relayed).doubt()


QUEUES = [Queue(limit_bytes=LIMIT_BYTES), Queue(limit_packets=5)]
BIG = Queue(limit_bytes=10**9)


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("seed", range(5))
def test_what_a_link_does_is_explained(queue, seed):
    packets = sent(seed, queue=queue)

    assert audit(packets, queue) is None
    assert {FATES[fate] for fate in packets.fate} == {"delivered", "corrupt", "outage", "policy", "queue"}


def changed(packets: Packets, column: str, row: int, by: int) -> Packets:
    values = getattr(packets, column).copy()
    values[row] = int(values[row]) + by
    return replace(packets, **{column: values})


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize(
    ("column", "by"),
    [
        ("due_ns", 1),
        ("due_ns", -1),
        ("left_ns", -5_000),
        ("left_ns", 20_000),
        ("arrived_ns", 20_000),
        ("arrived_ns", -5_000),
        ("bit_errors", 1),
        ("waited_bytes", 1),
        ("waited_bytes", -1),
        ("wire_bytes", 1),
        ("fate", FATES.index("corrupt")),
        ("fate", FATES.index("queue")),
    ],
)
def test_a_changed_packet_is_found(queue, column, by):
    packets = sent(1, queue=queue)
    for row in np.flatnonzero(packets.fate == FATES.index("delivered"))[[3, 20, -2]].tolist():
        doubt = audit(changed(packets, column, row, by), queue)

        assert doubt is not None
        assert abs(doubt.row - row) <= 1


@pytest.mark.parametrize(("row", "most_ns"), [(0, 200_000), (20, 10_000)])
def test_the_first_packet_may_wait_for_the_daemon_of_a_switch(row, most_ns):
    packets = sent(3, queue=QUEUES[0], count=60)
    since_ns = packets.arrived_ns[row] - packets.left_ns[row] - DELAY_NS

    assert audit(changed(packets, "arrived_ns", row, most_ns - since_ns), QUEUES[0]) is None
    assert audit(changed(packets, "arrived_ns", row, most_ns - since_ns + 1), QUEUES[0]) is not None
    late = changed(packets, "arrived_ns", row, 10_001 - since_ns)
    assert audit(late, QUEUES[0], is_relayed=False) is not None


def test_a_late_packet_that_one_of_the_same_kind_overtakes_is_taken_for_it():
    """The record tells packets that are alike apart by their order alone."""
    packets = sent(4, queue=BIG, count=40)
    clean = replace(packets, fate=np.zeros(40, np.uint8), bit_errors=np.zeros(40, np.int64))
    asked = {"gaps": np.array([10**9, 10**9]), "listed": (), "outages": ()}
    alike = np.flatnonzero(clean.wire_bytes == clean.wire_bytes[10])
    first, second = alike[alike >= 10][:2].tolist()
    by_ns = int(clean.left_ns[second] - clean.left_ns[first]) + 5_000_000
    late = LatePackets(packets=(first + 1,), by_ns=by_ns, min_bytes=0)
    swapped = clean.arrived_ns.copy()
    swapped[[first, second]] = swapped[second], swapped[first] + by_ns
    assert audit(replace(clean, arrived_ns=swapped), BIG, **asked, late=late) is None
    assert audit(changed(replace(clean, arrived_ns=swapped), "arrived_ns", second, 20_000), BIG, **asked, late=late)
    assert audit(changed(clean, "arrived_ns", first, by_ns), BIG, **asked, late=late) is None
    assert audit(clean, BIG, **asked, late=late) is not None


@pytest.mark.parametrize("queue", QUEUES)
def test_a_packet_that_is_let_in_beyond_the_limit_is_found(queue):
    packets = sent(2, queue=queue)
    row = int(np.flatnonzero(packets.fate == FATES.index("queue"))[0])

    assert audit(changed(packets, "fate", row, -FATES.index("queue")), queue) is not None


def test_the_first_and_the_last_bit_count():
    """An error at a packet's last bit is in it; one at the bit behind it is in the next packet."""
    (queue, _), packets = QUEUES, sent(3, queue=QUEUES[0], count=2)
    last = int(packets.wire_bytes[0]) * 8 - 1

    for first_error, counts in ((last, [1, 0]), (last + 1, [0, 1])):
        fates = [FATES.index("corrupt" if count else "delivered") for count in counts]
        hit = replace(packets, bit_errors=np.array(counts), fate=np.array(fates, np.uint8))
        gaps = np.array([first_error + 1, 10**9])
        assert audit(hit, queue, gaps=gaps, listed=(), outages=()) is None
        assert audit(packets, queue, gaps=gaps, listed=(), outages=()) is not None


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("seed", range(3))
def test_rates_that_change_while_packets_wait_are_explained_to_the_nanosecond(queue, seed):
    packets = sent(seed, queue=queue, rates=RATES)

    assert audit(packets, queue, rates=RATES) is None
    assert audit(packets, queue) is not None
    for row in np.flatnonzero(packets.due_ns != NEVER)[[3, 90, -2]].tolist():
        for by in (1, -1):
            doubt = audit(changed(packets, "due_ns", row, by), queue, rates=RATES)
            assert doubt is not None
            assert abs(doubt.row - row) <= 1


def wrong_bits_of(sizes: list[int], times: list[int], *, in_time: bool) -> list[int]:
    """The errors of packets of so many bits, bit by bit: two vectors, of which the channel's state chooses one."""
    spells, clock, counts = CHANNEL.spells.tolist(), 0, []
    places = {state: _walk(gaps.tolist()) for state, gaps in ((0, CHANNEL.gaps), (1, CHANNEL.bad_gaps))}
    next_error, seen = {state: next(walk) for state, walk in places.items()}, {0: 0, 1: 0}
    for bits, t_ns in zip(sizes, times, strict=True):
        count = 0
        for _ in range(bits):
            at = (t_ns if in_time else clock) % sum(spells)
            state = next(number for number in range(len(spells)) if at < sum(spells[: number + 1])) % 2
            if seen[state] == next_error[state]:
                count, next_error[state] = count + 1, next(places[state])
            seen[state], clock = seen[state] + 1, clock + 1
        counts.append(count)
    return counts


def _walk(gaps: list[int]):
    place, at = gaps[0] - 1, 0
    while True:
        yield place
        at = at + 1 if at + 1 < len(gaps) else 1
        place += gaps[at]


@pytest.mark.parametrize("in_time", [False, True])
def test_a_channel_of_two_states_is_explained_bit_by_bit(in_time):
    packets = sent(4, queue=Queue(limit_bytes=10**7), count=30)
    leave = {"good_to_bad_per_bit": 0.1, "bad_to_good_per_bit": 0.1, "ber_good": 0.01, "ber_bad": 0.4}
    settings = GilbertElliott(**leave, clock="time" if in_time else None)
    counts = wrong_bits_of((packets.wire_bytes * 8).tolist(), packets.arrived_ns.tolist(), in_time=in_time)
    fates = [FATES.index("corrupt" if count else "delivered") for count in counts]
    right = replace(packets, bit_errors=np.array(counts), fate=np.array(fates, np.uint8))
    errors = Errors(
        model="gilbert-elliott",
        action="drop",
        settings=settings,
        seed="5c" * 32,
        vector_errors=4,
        drop_packets=(),
        drop_min_bytes=0,
        outages=(),
    )

    def doubt(packets: Packets) -> Doubt | None:
        impairment = Impairment(link="hop", direction="forward", errors=errors)
        direction = Direction("forward", RATE_BPS, 0, Queue(limit_bytes=10**7), DELAY_NS)
        return Audit(direction, impairment, CHANNEL, packets, True).doubt()

    assert doubt(right) is None
    for row in (0, 11, 29):
        assert doubt(changed(right, "bit_errors", row, 1)).row == row
