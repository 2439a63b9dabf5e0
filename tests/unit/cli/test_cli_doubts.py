"""What `scpslab validate` says of words that a lab would take in silence: refused where nothing can come of them, else
warned of.
"""

from __future__ import annotations

import pytest

SCENARIO = """\
kind: scenario
version: 1
title: A trunk
topology: shared_router
links: {trunk: {data: {rate: 1 Mbit/s, queue: {codel_target: null}}}}
workloads:
  - {kind: bulk, name: transfer, from: far, to: sink, size: 100 kB}
"""
QUEUE = "links.trunk.data.queue"
MARKING = f"{QUEUE}={{discipline: codel, ecn: true, codel_target: 20 ms}}"
FOREIGN_KEY = f"{QUEUE}.red_min=9 kB"
PROBES = "probes=[{kind: "
ERRORS = "links.trunk.data.errors"
REPLACED_DELAY = "links.trunk.data={delay: 5 ms, delay_table: [{at: 0 s, delay: 9 ms}]}"
REFUSED = {
    "a start at the limit": (
        "workloads.transfer.start=3600 s",
        'workloads[0].start: found "3600 s"; expected a time before limits.virtual, "3600 s"',
    ),
    "a step after the limit": (
        "script=[{do: link, at: 2 h, link: trunk, ber: 0}]",
        'script[0].at: found "2 h"; expected a time before limits.virtual',
    ),
    "a delay of months": (
        "links.trunk.data.delay=3000 h",
        "links.trunk.data.delay: found a delay of 10800000 s; expected at most",
    ),
    "a delay of months in a topology": (
        "parameters.hop_delay=3000 h",
        "hop.data: found a delay of 10800000 s; expected at most",
    ),
    "a delay of months in a step": (
        "script=[{do: link, at: 2 s, link: trunk, delay: 3000 h}]",
        "script[0].delay: found a delay of 10800000 s",
    ),
    "a check of no metric": (
        "checks=[{metric: goodput, at_least: 3}]",
        'checks[0].metric: found "goodput"; expected one of ',
    ),
    "a check in another unit": ("checks=[{metric: goodput_bps, at_least: 3 s}]", "checks[0].at_least: goodput_bps: "),
    "a check that no value fits": (
        "checks=[{metric: transfer_s, at_least: 9 s, at_most: 8 s}]",
        'checks[0].at_most: found "8 s", below at_least "9 s"',
    ),
    "an axis called as a fixed column": (
        "sweep={status: {set: [seed], values: [1, 2]}}",
        'found the axis "status", which is a column of results.csv',
    ),
    "an axis called as a metric": (
        "sweep={transfer_s: {set: [seed], values: [1, 2]}}",
        'found the axis "transfer_s", which is a column of results.csv',
    ),
    "more samples than packets": (
        f"{PROBES}tcp_info, node: far, interval: 1 ns}}]",
        'found "1 ns"; expected a duration of at least 1 ms',
    ),
    "captures without headers": (
        f"{PROBES}capture, node: far, snaplen: 53 B}}]",
        'found "53 B"; expected a size of at least 54 B',
    ),
    "a number too small for computers": (
        f"{ERRORS}.ber=1e-400",
        "found 1e-400, so small that a computer holds it as 0; expected 0, or a larger number",
    ),
    "a date for a number": ("repeats=2026-11-25", "repeats: found the date 2026-11-25; expected a whole number"),
    "an overhead beyond packets": (
        "links.trunk.data.overhead=1 GB",
        'overhead: found "1 GB"; expected at most 65535 B, the length of the largest packet',
    ),
    "a file name beyond file systems": (
        f"{ERRORS}={{model: vector-file, file: {'x' * 300}}}",
        'errors.file: found "xxxxx',
    ),
    "a queue of a byte": (
        f"{QUEUE}.limit=1 B",
        "queue.limit: found a queue of 1 B, which drops every packet; expected at least 28 B",
    ),
    "a queue of a byte in a topology": (
        "parameters.wide_buffer=1 B",
        "hop.data: found a queue of 1 B, which drops every packet",
    ),
}
WARNED = {
    "errors that nothing survives": (
        f"{ERRORS}.ber=1",
        "errors: found errors by which a packet of 40 B passes with probability 0",
    ),
    "losses that nothing survives": (
        f"{ERRORS}={{model: packet-loss, loss: 1}}",
        "errors: found errors by which a packet of 40 B passes with probability 0",
    ),
    "clusters that nothing survives": (
        f"{ERRORS}={{model: clustered, ber: 0.3, mean_errors_per_burst: 1}}",
        "errors: found errors by which a packet of 40 B passes with probability",
    ),
    "patience beyond the limit": (
        "workloads.transfer.patience=2 h",
        'workloads[0].patience: found "2 h" from 1 s on, beyond limits.virtual ("3600 s")',
    ),
    "patience from the start on": (
        "workloads.transfer.patience=3600 s",
        'workloads[0].patience: found "3600 s" from 1 s on, beyond limits.virtual',
    ),
    "an outage after the end": (
        f"{ERRORS}.outages=[{{from: 2 h, to: 3 h}}]",
        'outages[0].from: found "2 h", after limits.virtual ("3600 s")',
    ),
    "a delay after the end": (
        "links.trunk.data.delay_table=[{at: 2 h, delay: 9 ms}]",
        'delay_table[0].at: found "2 h", after limits.virtual ("3600 s")',
    ),
    "a key of another error model": (
        f"{ERRORS}={{ber: 1.0e-5, mean_gap_in_burst: 5}}",
        "found mean_gap_in_burst with the error model independent",
    ),
    "a target that is the interval": (
        f"{QUEUE}={{discipline: codel, codel_target: 100 ms}}",
        "queue.codel_target: found a target of 100 ms, not below the interval, 100 ms",
    ),
    "a queue below a packet": (
        f"{QUEUE}.limit=1 kB",
        "queue.limit: found a queue of 1000 B, where full packets have 1500 B",
    ),
    "a key of another discipline": (
        FOREIGN_KEY,
        "queue.red_min: found red_min on a queue of discipline drop-tail, which does not use it",
    ),
    "a delay that a table replaces": (
        REPLACED_DELAY,
        "links.trunk.data.delay: found a delay beside a delay_table from 0 s on",
    ),
    "a target below a packet": (
        f"{QUEUE}={{discipline: codel}}",
        "queue.codel_target: found a target of 5 ms, where a full packet takes 12 ms",
    ),
    "a managed queue at a host": (
        "links.hop.data.queue.discipline=red",
        "queue.discipline: found red at far, a host, whose kernel keeps but a few packets",
    ),
    "marks that nobody asks for": (
        MARKING,
        "queue.ecn: found a queue that marks (ecn), and no workload with ECN on both hosts",
    ),
}
# With one of these beside it, a point of the sweep or another host uses the word.
USED = {
    "a key of a discipline in the sweep": (
        FOREIGN_KEY,
        f"sweep={{queue: {{set: [{QUEUE}.discipline], values: [drop-tail, red]}}}}",
    ),
    "a key of an error model in the sweep": (
        f"{ERRORS}={{ber: 1.0e-5, mean_gap_in_burst: 5}}",
        f"sweep={{errors: {{set: [{ERRORS}.model], values: [independent, clustered]}}}}",
    ),
    "a delay without the table of the sweep": (
        "links.trunk.data.delay=5 ms",
        (
            "sweep={moves: {cases: {later: {workloads.transfer.start: 2 s}, first: {links.trunk.data.delay_table: "
            "[{at: 0 s, delay: 9 ms}]}}}}"
        ),
    ),
    "a managed queue at a host whose program sends": (
        "links.hop.data.queue.discipline=red",
        "hosts={far: {stack: scps}, sink: {stack: scps}}",
    ),
    "marks that hosts ask for": (MARKING, "hosts={far: {ecn: true}, sink: {ecn: true}}"),
    "marks that DCTCP asks for": (MARKING, "hosts={far: {congestion: dctcp}, sink: {congestion: dctcp}}"),
}


@pytest.fixture
def validate(scpslab, tmp_path):
    def run(*settings: str) -> tuple[int, str, str]:
        (path := tmp_path / "trunk.yaml").write_text(SCENARIO)
        return scpslab("validate", str(path), *(word for setting in settings for word in ("--set", setting)))

    return run


@pytest.mark.parametrize(("setting", "message"), REFUSED.values(), ids=REFUSED)
def test_what_nothing_can_come_of_is_refused(validate, setting, message):
    code, _, err = validate(setting)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(("setting", "message"), WARNED.values(), ids=WARNED)
def test_what_can_hardly_be_meant_is_warned_of(validate, setting, message):
    code, _, err = validate(setting)
    assert code == 0
    (line,) = err.splitlines()
    assert line.startswith("warning: ")
    assert message in line


@pytest.mark.parametrize("settings", USED.values(), ids=USED)
def test_what_is_used_somewhere_brings_no_warning(validate, settings):
    assert validate(*settings)[::2] == (0, "")
