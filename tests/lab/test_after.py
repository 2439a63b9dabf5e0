"""Events that follow a line of a file of their cell: run once, read the instant, run again with the event there."""

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.measure.packets import NEVER, read
from scpslab.plan import parse
from scpslab.runs import CellFiles
from tests.lab.ran import digests

SLOWER = """
topology: point_to_point
links:
  hop: {forward: {rate: 10 Mbit/s, delay: 25 ms, queue: {limit: 1 BDP}}, return: {rate: 10 Mbit/s, delay: 25 ms}}
workloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 4 MB}]
probes: [{kind: tcp_info, node: h1, name: info, interval: 10 ms}]
"""
FOLLOWS = 'after: {log: records/info.jsonl, matches: \'"ca_state": "recovery"\''
RATES = f"""{SLOWER}
events:
  - {{{FOLLOWS}}}, link: hop, direction: forward, rate: 2 Mbit/s}}
  - {{{FOLLOWS}, delay: 500 ms}}, link: hop, direction: forward, rate: 20 Mbit/s}}
"""
# What the third event follows is there because of the second.
CHAIN = f"""{SLOWER}
events:
  - {{at: 1 s, node: h2, command: 'for n in 1 2 3; do echo tick $n; sleep 1; done'}}
  - {{after: {{log: logs/events-1-h2.log, matches: tick 2}}, node: h1, command: 'echo second'}}
  - {{after: {{log: logs/events-3-h1.log, matches: ^sec, delay: 250 ms}}, link: hop, state: down}}
  - {{at: 4 s, link: hop, state: up}}
"""
NOTHING = f"{SLOWER}\nevents: [{{after: {{log: records/info.jsonl, matches: no such}}, link: hop, state: down}}]\n"


def test_rates_follow_the_first_recovery_and_what_was_before_is_the_same(run):
    """The auditor knows the changed rates; without the events the same packets leave until then."""
    changed, without = run(RATES).cell.completed, run(SLOWER).cell.completed
    steps = parse((changed.folder / "plan.json").read_bytes()).cell.events
    first, second = (step.at_ns for step in steps)

    assert second - first == 500_000_000
    seen = next(line for line in changed.records("info") if line["ca_state"] == "recovery")
    assert 0 <= first - seen["t_s"] * 1e9 < 10_000
    (packets, _), (others, _) = (read(CellFiles(cell.folder).packets) for cell in (changed, without))
    before = int((packets.offered_ns < first).sum())
    assert before > 500
    assert (packets.wire_bytes[:before] == others.wire_bytes[:before]).all()
    slow = (packets.due_ns != NEVER) & (packets.due_ns > first) & (packets.due_ns < second)
    assert abs(packets.wire_bytes[slow].sum() * 8 - 2e6 / 2) < 2 * 8 * 1500


def test_events_follow_what_earlier_ones_have_caused(run):
    cell = run(CHAIN).cell.completed

    second, down, up = (cell.line("events", step=number) for number in (3, 4, 2))
    assert 2 < second["t_s"] < 2.001
    assert down["t_s"] - second["end_t_s"] == pytest.approx(0.25, abs=1e-3)
    assert up["t_s"] == pytest.approx(4, abs=1e-3)


def test_the_same_bytes_come_again(run):
    assert digests(run(RATES).cell.folder) == digests(run(RATES).cell.folder)


def test_a_cell_without_such_a_line_fails_by_name(run):
    cell = run(NOTHING).cell

    assert cell.status == "failed"
    assert 'event 1: found no line in records/info.jsonl that matches "no such"; expected one' in cell.reason


def test_engines_on_the_wall_clock_refuse_it(run):
    with pytest.raises(CapabilityError, match="engine live: found events with after; expected none"):
        run(RATES, engine="live")
