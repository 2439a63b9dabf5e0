"""What `scpslab validate` refuses, as nothing can come of it, and what it warns of; a lab takes both in silence."""

import pytest

SCENARIO = """\
kind: scenario
version: 1
title: A trunk
topology: shared_router
links: {trunk: {forward: {rate: 1 Mbit/s, queue: {codel_target: null}}}}
workloads:
  - {kind: bulk, name: transfer, from: far, to: sink, size: 100 kB}
"""
DATA = "links.trunk.forward"
QUEUE, ERRORS = f"{DATA}.queue", f"{DATA}.errors"
MARKING = f"{QUEUE}={{discipline: codel, ecn: true, codel_target: 20 ms}}"
LARGE_PACKETS = f"{DATA}={{overhead: 101 B, queue: {{discipline: codel, codel_target: 20 ms}}}}"
FOREIGN_KEY = f"{QUEUE}.red_min=9 kB"
OTHER_MODEL = f"{ERRORS}={{ber: 1.0e-5, mean_gap_in_burst: 5}}"
FIRST_DELAY = "delay_table: [{at: 0 s, delay: 9 ms}]"
ENDS = "name: transfer, from: far, to: sink"
TOO_LONG = "found a delay of 10800000 s"
NO_PACKET = "found a queue of 1 B, which drops every packet"
AXIS = "{set: [seed], values: [1, 2]}"
NO_SURVIVOR = "errors: found errors by which a packet of 40 B passes with probability"
REFUSED = {
    "workloads.transfer.start=3600 s": 'workloads[0].start: found "3600 s"; expected a time before limits.lab_time',
    "events=[{at: 2 h, link: trunk, ber: 0}]": 'events[0].at: found "2 h"; expected a time before limits',
    f"{DATA}.delay=3000 h": f"{DATA}.delay: {TOO_LONG}; expected at most",
    "parameters.hop_delay=3000 h": f"hop.forward.delay: {TOO_LONG}; expected at most",
    "events=[{at: 2 s, link: trunk, delay: 3000 h}]": f"events[0].delay: {TOO_LONG}",
    "checks=[{metric: goodput, at_least: 3}]": 'checks[0].metric: found "goodput"; expected one of ',
    "checks=[{metric: goodput_bps, at_least: 3 s}]": "checks[0].at_least: goodput_bps: ",
    "checks=[{metric: transfer_s, at_least: 9 s, at_most: 8 s}]": 'checks[0].at_most: found "8 s", below at_least',
    f"sweep={{status: {AXIS}}}": 'found the axis "status", which is a column of results.csv',
    f"sweep={{transfer_s: {AXIS}}}": 'found the axis "transfer_s", which is a column of results.csv',
    "probes=[{kind: tcp_info, node: far, interval: 1 ns}]": 'found "1 ns"; expected a duration of at least 1 ms',
    "probes=[{kind: capture, node: far, snaplen: 53 B}]": 'found "53 B"; expected a size of at least 54 B',
    f"{ERRORS}.ber=1e-400": "found 1e-400, so small that a computer holds it as 0; expected 0, or a larger number",
    "repeats=2026-11-25": "repeats: found the date 2026-11-25; expected a whole number",
    f"{DATA}.overhead=1 GB": 'overhead: found "1 GB"; expected at most 65535 B, the length of the largest packet',
    f"{ERRORS}={{model: vector-file, file: {'x' * 300}}}": 'errors.file: found "xxxxx',
    f"{QUEUE}.limit=1 B": f"queue.limit: {NO_PACKET}; expected at least 28 B",
    "parameters.wide_buffer=1 B": f"hop.forward: {NO_PACKET}",
}
WARNED = {
    f"{ERRORS}.ber=1": f"{NO_SURVIVOR} 0",
    f"{ERRORS}={{model: packet, loss: 1}}": f"{NO_SURVIVOR} 0",
    f"{ERRORS}={{model: clustered, ber: 0.3, mean_errors_per_burst: 1}}": NO_SURVIVOR,
    "workloads.transfer.timeout=2 h": 'workloads[0].timeout: found "2 h" from 1 s on, beyond limits.lab_time',
    "workloads.transfer.timeout=3600 s": 'workloads[0].timeout: found "3600 s" from 1 s on, beyond limits.lab_time',
    f"workloads=[{{kind: iperf3, duration: 9 s, timeout: 9 s, {ENDS}}}]": "expected less than 10 s (its timeout)",
    f"workloads=[{{kind: iperf3, duration: 1 h, {ENDS}}}]": "until 3601 s at least, counted from the epoch",
    f"workloads=[{{kind: ping, count: 3600, {ENDS}}}]": "expected less than 3600 s (limits.lab_time)",
    f"{ERRORS}.outages=[{{from: 2 h, to: 3 h}}]": 'outages[0].from: found "2 h", after limits.lab_time ("3600 s")',
    f"{DATA}.delay_table=[{{at: 2 h, delay: 9 ms}}]": 'delay_table[0].at: found "2 h", after limits.lab_time ("3600 s")',
    OTHER_MODEL: "found mean_gap_in_burst with the error model independent",
    f"{QUEUE}={{discipline: codel, codel_target: 100 ms}}": "queue.codel_target: found a target of 100 ms, not below",
    f"{QUEUE}.limit=1 kB": "queue.limit: found a queue that takes packets of 1000 B, where full ones have 1500 B",
    LARGE_PACKETS: "queue.limit: found a queue that takes packets of 1600 B, where full ones have 1601 B",
    FOREIGN_KEY: "queue.red_min: found red_min on a queue of discipline drop-tail, which does not use it",
    f"{DATA}={{delay: 5 ms, {FIRST_DELAY}}}": f"{DATA}.delay: found a delay beside a delay_table from 0 s on",
    f"{QUEUE}={{discipline: codel}}": "queue.codel_target: found a target of 5 ms, where a full packet takes 12 ms",
    "links.hop.forward.queue.discipline=red": "queue.discipline: found red at far, a host, whose kernel keeps",
    MARKING: "queue.ecn: found a queue that marks (ecn), and no workload with ECN on both hosts",
}
# With one of these beside it, a point of the sweep or another host uses the word.
MOVES = f"later: {{workloads.transfer.start: 2 s}}, first: {{{DATA}.delay_table: [{{at: 0 s, delay: 9 ms}}]}}"
USED = [
    (FOREIGN_KEY, f"sweep={{queue: {{set: [{QUEUE}.discipline], values: [drop-tail, red]}}}}"),
    (OTHER_MODEL, f"sweep={{errors: {{set: [{ERRORS}.model], values: [independent, clustered]}}}}"),
    (f"{DATA}.delay=5 ms", f"sweep={{moves: {{cases: {{{MOVES}}}}}}}"),
    ("links.hop.forward.queue.discipline=red", "hosts={far: {stack: scps}, sink: {stack: scps}}"),
    (f"workloads=[{{kind: ping, count: 3600, {ENDS}}}]", "limits.lab_time=3601 s"),
    (f"workloads=[{{kind: ping, count: 3601, required: false, {ENDS}}}]",),
    (MARKING, "hosts={far: {ecn: true}, sink: {ecn: true}}"),
    (MARKING, "hosts={far: {congestion: dctcp}, sink: {congestion: dctcp}}"),
]


@pytest.fixture
def validate(scpslab, tmp_path):
    def run(*settings: str) -> tuple[int, str, str]:
        (path := tmp_path / "trunk.yaml").write_text(SCENARIO)
        return scpslab("validate", str(path), *(word for setting in settings for word in ("--set", setting)))

    return run


@pytest.mark.parametrize(("setting", "message"), REFUSED.items())
def test_what_nothing_can_come_of_is_refused(validate, setting, message):
    code, _, err = validate(setting)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(("setting", "message"), WARNED.items())
def test_what_can_hardly_be_meant_is_warned_of(validate, setting, message):
    code, _, err = validate(setting)
    assert code == 0
    (line,) = err.splitlines()
    assert line.startswith("warning: ")
    assert message in line


@pytest.mark.parametrize("settings", USED)
def test_what_is_used_somewhere_brings_no_warning(validate, settings):
    assert validate(*settings)[::2] == (0, "")
