"""Policers, aggregates, late packets, and programs that write when they like: as the record of packets has them.

A cell is completed only if the auditor, which computes the same by itself, explains every packet.
"""

import numpy as np
import pytest

from scpslab.measure.packets import NEVER, read
from scpslab.runs import CellFiles

LINK = """
topology: point_to_point
links:
  hop: {forward: {rate: 20 Mbit/s, delay: 20 ms, queue: {limit: 200 kB}}, return: {rate: 20 Mbit/s, delay: 20 ms}}
workloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 1 MB, timeout: 200 s}]
hosts: {h1: {preset: cubic}, h2: {preset: cubic}}
packets: true
seed: 5
limits: {lab_time: 300 s}
"""
# All that a direction can have at once: what each of them does is in the record, or the cell has failed.
EVERYTHING = """{
  links.hop.forward: {
    rate: 10 Mbit/s, overhead: 4 B, duplicate: 0.01, errors: {ber: 1e-6, drop_packets: [50]}, aggregate: 3 ms,
    policer: {rate: 5 Mbit/s, burst: 9 kB}, late: {packets: [10, 200], by: 3 ms},
    profile: {delay: linear, steps: [
      {at: 0 s, delay: 30 ms}, {at: 2 s, delay: 5 ms, rate: 3 Mbit/s}, {at: 4 s, rate: 20 Mbit/s, delay: 12 ms},
      {at: 5 s, state: down}, {at: 5.5 s, state: up}]}},
  links.hop.return: {aggregate: 5 ms, late: {packets: [40], by: 10 ms}, policer: {rate: 200 kbit/s, burst: 2 kB}},
}"""
EVENTS = """{
  links.hop.*.aggregate: 4 ms,
  links.hop.forward.policer: {rate: 5 Mbit/s, burst: 30 kB},
  events: [{at: 2 s, link: hop, rate: 1 Mbit/s}, {at: 4 s, link: hop, rate: 30 Mbit/s}, {at: 5 s, link: hop, ber: 1e-5}],
}"""


@pytest.fixture
def forward(run):
    """The packets of the hop's forward direction, with these keys."""

    def of(*keys):
        return read(CellFiles(run(LINK, *keys).cell.completed.folder).packets)[0]

    return of


def test_a_policer_lets_pass_what_its_bucket_holds(forward):
    """In any stretch of time at most the burst and what has come since; and what it drops is no loss of the queue."""
    packets = forward("links.hop.forward.policer={rate: 5 Mbit/s, burst: 30 kB}")
    passed = ~packets.had("policed")
    times, sums = packets.offered_ns[passed], np.cumsum(packets.wire_bytes[passed])

    # Of all stretches at once: what has passed less what came never rises by more than the burst.
    over = sums - times * 5e6 / 8e9
    assert (over - np.minimum.accumulate(over - packets.wire_bytes[passed])).max() <= 30_001
    assert packets.had("policed").sum() > 20
    assert not packets.had("queue").any()


def test_an_aggregate_lets_packets_leave_together(forward):
    """Each begins to leave with a multiple of 7 ms, or right behind the one before it."""
    packets = forward("links.hop.forward.aggregate=7 ms")
    due, takes = packets.due_ns, packets.wire_bytes * 400
    begins = due - takes
    rows = np.flatnonzero((packets.offered_ns > 0) & (due != NEVER))[1:]
    is_first = begins[rows] != due[rows - 1]

    assert (begins[rows][is_first] % 7_000_000 == 0).all()
    assert is_first.sum() > 5
    assert len(rows) > 2 * is_first.sum()


def test_late_packets_alone_are_late(forward):
    """The 10th and 200th packet with data, by 30 ms; and others overtake them."""
    packets = forward("links.hop.forward.late={packets: [10, 200], by: 30 ms, min_bytes: 500 B}")
    data = np.flatnonzero(packets.wire_bytes >= 500)
    delays = packets.arrived_ns - packets.left_ns

    assert (delays[data[[9, 199]]] // 1_000_000 == 50).all()
    assert (np.delete(delays, data[[9, 199]]) // 1_000_000 == 20).all()


def test_what_a_direction_has_at_once_is_explained(run):
    """By the auditor: errors, lists, duplicates, a profile and both directions; and changes of rate and errors."""
    for keys in (EVERYTHING, EVENTS):
        _ = run(f"{LINK}sweep: {{all: {{cases: {{one: {keys}}}}}}}").cell.completed


def test_a_program_writes_when_it_likes(forward):
    """65,000 bytes every 130 ms, and 3 s of silence after half of the file."""
    packets = forward(
        "workloads.transfer.application={rate: 4 Mbit/s, burst: 65 kB, pauses: [{after: 500 kB, lasts: 3 s}]}"
    )
    sent_s = packets.offered_ns[packets.payload > 0] / 1e9
    begins_s = sent_s[1:][np.diff(sent_s) > 0.05]
    apart_s = np.diff(begins_s)

    assert abs(np.median(apart_s) - 0.13) < 0.001
    assert (apart_s > 0.14).sum() == 1
    assert 3 < apart_s.max() < 3.14
    assert abs(sent_s[-1] - sent_s[0] - (3 + 15 * 0.13)) < 0.2
