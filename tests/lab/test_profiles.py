"""Profiles carried out: every packet against its table, and tables that the auditor must not believe."""

import re
import shutil

import numpy as np
import pytest

from scpslab.audit import unexplained
from scpslab.engine.cell_folder import write_vectors
from scpslab.measure.packets import NEVER, read
from tests.lab.ran import Lab

MOVING = """kind: scenario
version: 1
title: A link that moves
description: Rate, delay, bit errors and state change.
topology: point_to_point
seed: 1
limits: {lab_time: 60 s}
packets: true
links:
  hop:
    forward:
      rate: 10 Mbit/s
      queue: {limit: 200 kB}
      profile:
        delay: linear
        steps:
          - {at: 0 s, rate: 10 Mbit/s, delay: 20 ms, ber: 1e-7}
          - {at: 2 s, rate: 1 Mbit/s, delay: 40 ms, ber: 1e-6}
          - {at: 3 s, rate: 0 bit/s}
          - {at: 3.5 s, rate: 20 Mbit/s, state: down}
          - {at: 4 s, state: up, delay: 10 ms}
workloads:
  - {kind: bulk, name: big, from: h1, to: h2, size: 600 kB}
"""
CHANCES = """kind: scenario
version: 1
title: Delivery opportunities
description: Packets leave when a trace lets them.
topology: point_to_point
seed: 1
limits: {lab_time: 60 s}
packets: true
links:
  hop:
    forward: {rate: 10 Mbit/s, overhead: 4 B, queue: {limit: 200 kB}, profile: {file: trace.csv, when_down: hold}}
    return:
      rate: 10 Mbit/s
      profile: {file: back.csv, when_down: hold, reorder: true}
workloads:
  - {kind: bulk, name: big, from: h1, to: h2, size: 600 kB}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return Lab(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def moving(lab, tmp_path_factory):
    file = tmp_path_factory.mktemp("moving") / "moving.yaml"
    file.write_text(MOVING)
    return lab(file).cell.completed


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    file = tmp_path_factory.mktemp("chances") / "chances.yaml"
    file.write_text(CHANCES)
    # Bursts of 7 in one millisecond of ten, and a delay that falls by steps.
    rows = [f"{ms / 1000:.3f},{7 if ms % 10 == 0 else ''},{(30 - ms % 20) / 1000 if ms % 5 == 0 else ''},{1 if ms in (0, 600) else 0 if ms == 500 else ''}" for ms in range(1000)]  # fmt: skip
    (file.parent / "trace.csv").write_text("# repeat_s: 1\nt_s,packets,delay_s,up\n" + "\n".join(rows) + "\n")
    (file.parent / "back.csv").write_text("# repeat_s: 0.5\nt_s,rate_bit_s,delay_s\n0,1000000,0.05\n0.3,200000,0.001\n")
    return file


@pytest.fixture(scope="module")
def chances(lab, trace):
    return lab(trace).cell.completed


def directions(cell):
    return {one.direction: one for one in read(cell.packets_file)}


def doubt(cell, folder, change):
    """What the auditor says where the table is another one than the lab had."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write_vectors(cell.plan, folder)
    table = folder / "hop-forward.csv"
    table.write_text(change(table.read_text()))
    return unexplained(cell.plan, folder, cell.packets_file, is_exact=True)


def test_the_integral_of_the_rate_is_what_has_left(moving):
    """From 2 s, while packets wait, 1 Mbit/s; nothing while the rate is 0, and what waits then leaves at 20 Mbit/s."""
    forward = directions(moving)["forward"]
    left = forward.left_ns[forward.left_ns != NEVER]

    assert not ((left > 3_000_010_000) & (left < 3_500_000_000)).any()
    assert forward.had("outage").any()
    assert forward.had("corrupt").any()


def test_delays_are_those_of_the_table(moving):
    """Straight lines between 20 ms at 0 s, 40 ms at 2 s and 10 ms at 4 s: to 10 µs for each packet, in order."""
    forward = directions(moving)["forward"]
    rows = np.flatnonzero((forward.arrived_ns != NEVER) & (forward.left_ns > 0))
    left, arrived = forward.left_ns[rows], forward.arrived_ns[rows]
    table = np.interp(left / 1e9, [0, 2, 4], [0.02, 0.04, 0.01])
    in_order = np.maximum.accumulate(left + table * 1e9)

    assert len(rows) > 300
    assert (np.diff(arrived) > 0).all()
    assert np.abs(arrived - in_order).max() < 10_000


def test_opportunities_are_used_or_lost(chances):
    """Of each burst of 7 about 7 x 1504 bytes leave, all within a microsecond of it, and none while it is down."""
    forward = directions(chances)["forward"]
    rows = np.flatnonzero((forward.due_ns > 0) & ~forward.had("queue"))
    due = forward.due_ns[rows]
    instants, sizes = np.unique(due // 10_000_000, return_inverse=True)
    sent = np.bincount(sizes, forward.wire_bytes[rows])

    assert (due % 10_000_000 < 1000).all()
    # What is left of a packet that did not fit leaves with the next burst.
    assert sent.max() < 8 * 1504
    assert (sent > 6 * 1504).any()
    assert ((instants % 100 < 50) | (instants % 100 >= 60)).all()


def test_where_time_is_real_packets_are_due_when_the_table_says(trace, lab):
    """The auditor reckons every packet's due time from the table; to the nanosecond, for the record counts from the very
    instant from which the links' programs count.
    """
    forward = directions(lab(trace, "limits.lateness=5 s", engine="live").cell.completed)["forward"]

    due = forward.due_ns[(forward.due_ns > 0) & (forward.due_ns != NEVER)]

    assert len(due) > 300
    # Packets of one burst follow each other by a nanosecond.
    assert (due % 10_000_000 < 100).all()


def test_packets_overtake_where_they_may(chances):
    """Acknowledgements that leave after 0.3 s have 49 ms less before them."""
    back = directions(chances)["return"]
    rows = np.flatnonzero(back.arrived_ns != NEVER)

    assert (np.diff(back.arrived_ns[rows]) < 0).any()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0,10000000", "0,10000100", "due at"),
        ("3.5,20000000", "3.4999,20000000", "due at"),
        ("0.02,", "0.0201,", "arrived at"),
        ("4,,0.01", "4,,0.0099", "arrived at"),
        (",1e-06", ",2e-06", "bit errors"),
        (",,,0", ",,,1", "due at|fate"),
    ],
)
def test_another_table_is_not_believed(moving, tmp_path, old, new, said):
    """A rate 10 ppm off, a step 0.1 ms early, a delay 100 µs off, other errors, another state: each is found."""

    def change(table):
        assert old in table or old == ",,,0", table
        return table.replace(old, new) if old in table else table.replace("20000000,,,0", "20000000,,,1")

    assert doubt(moving, tmp_path / "vectors", lambda table: table) == ""
    assert re.search(said, doubt(moving, tmp_path / "vectors", change))


def test_another_trace_is_not_believed(chances, tmp_path):
    """An opportunity less in every burst, or one more."""
    for number in (6, 8):
        found = doubt(chances, tmp_path / "vectors", lambda table, number=number: table.replace(",7,", f",{number},"))
        assert "due at" in found


HELD = """kind: scenario
version: 1
title: Echoes that are held
topology: point_to_point
limits: {lab_time: 60 s}
links:
  hop:
    forward:
      rate: 1 Mbit/s
      queue: {limit: 100 kB}
      profile: {when_down: hold, steps: [{at: 2.5 s, state: down}, {at: 22.5 s, state: up}]}
    return: {rate: 1 Mbit/s}
workloads:
  - {kind: ping, name: echo, from: h1, to: h2, count: 5, interval: 1 s}
"""


def test_an_echo_that_a_profile_holds_is_no_lost_one(lab, tmp_path):
    """ping itself gives up two round trips after its last request: here after a second."""
    (tmp_path / "held.yaml").write_text(HELD)
    *answers, summary = lab(tmp_path / "held.yaml").cell.completed.records("echo")

    assert (summary["sent"], summary["received"]) == (5, 5)
    assert [answer["seq"] for answer in answers] == [1, 2, 3, 4, 5]
    # They leave at 22.5 s, one after the other, and are under way for 250 ms there and back.
    sent = [answer["t_s"] - answer["rtt_ms"] / 1000 for answer in answers]
    assert sent[2:] == pytest.approx([sent[1] + n for n in (1, 2, 3)], abs=0.1)
    assert answers[2]["t_s"] == pytest.approx(23.0, abs=0.01)
