"""What the kernel made of a queue of the plan, read back with tc: limits, thresholds, times, probabilities, effects."""

import re

import pytest

from scpslab.plan import schema
from tests.lab.conftest import datagrams, network_of, run_network, typed

from scpslab.kinds.disciplines.red.plan import SLOPE_LIMIT, burst_packets, is_possible

# One in 2^30 for each byte between the thresholds: half of it is more than tc takes.
LEAST = 90_000 * 2.0**-30
RED = {"min_bytes": 10_000, "max_bytes": 100_000}

MARKED = """
topology: shared_router
hosts: {near: {ecn: true}, sink: {ecn: true}}
links: {trunk: {forward: {queue: {limit: 120 kB}}}}
workloads:
  - {kind: bulk, name: upload, from: near, to: sink, size: 2 MB}
sweep:
  queue:
    cases:
      drop-tail: {links.trunk.forward.queue.discipline: drop-tail}
      red: {links.trunk.forward.queue: {discipline: red, limit: 120 kB, red_min: 15 kB, red_max: 45 kB, ecn: true}}
      codel: {links.trunk.forward.queue: {discipline: codel, limit: 120 kB, codel_target: 10 ms, ecn: true}}
"""
# The largest upper threshold beside a lower one (for 250 kB there are larger ones behind a gap).
BORDERS = {1500: 262_143, 2000: 271_999, 33_000: 1_048_575, 250_000: 1_926_999}


def printed(engine, tmp_path, network, command, at_ns, **cell) -> str:
    """What a command prints on h1."""
    ended = run_network(engine, tmp_path, network, {"events": [typed(command, at_ns)]} | cell).completed
    return ended.log("events-1-h1")


@pytest.fixture
def shown(engine, tmp_path):
    """What tc says after four seconds of a quarter more than the line takes: 56 kB wait, within RED's range."""

    def run(**queue) -> str:
        network = schema.write(network_of("point_to_point", forward_rate="2 Mbit/s", forward_limit="1 MB"))
        network["links"][0]["directions"][0]["queue"] |= queue
        command, load = "tc -s -d qdisc show dev h1-hop", datagrams(2_500_000, 5, 1000)
        return printed(engine, tmp_path, network, command, 4_900_000_000, workloads=[load])

    return run


def number(text: str, name: str) -> float:
    """The first number behind a word."""
    return float(re.search(rf"\b{name} ([0-9.e-]+)", text)[1])


def test_drop_tail_is_a_rate_and_no_queue_of_the_kernels(shown):
    text = shown()

    assert "qdisc netem 1: root refcnt 2 limit 1000000000 rate 2Mbit packetoverhead -14" in text
    assert re.findall(r"^qdisc (\w+)", text, re.MULTILINE) == ["netem", "clsact"]


def test_red_has_the_thresholds_and_the_probability_of_the_plan_and_drops_early(shown):
    text = shown(discipline="red", settings=RED | {"probability": 0.1}, ecn=True)

    assert "qdisc red 11: parent 1:1 limit 1000000b min 10000b max 100000b ecn" in text
    assert number(text, "probability") == pytest.approx(0.1, rel=1e-3)
    assert number(text, "early") > 0


def test_a_red_of_probability_0_has_the_least_that_tc_can_state_and_drops_next_to_nothing(shown):
    text = shown(discipline="red", settings=RED | {"probability": 0})

    assert "qdisc red 11: parent 1:1 limit 1000000b min 10000b max 100000b" in text
    assert number(text, "probability") == pytest.approx(LEAST, rel=1e-3)
    assert 30_000 < number(text, "backlog") < 100_000
    # Of some 1,200 packets, each with at most LEAST: one of them in a tenth of all cells, three in one of 5,000.
    assert (number(text, "dropped"), number(text, "pdrop")) == (number(text, "early"), 0)
    assert number(text, "early") <= 2


def test_codel_has_the_times_of_the_plan(shown):
    text = shown(discipline="codel", settings={"target_ns": 7_000_000, "interval_ns": 200_000_000}, ecn=True)

    assert "qdisc tbf 1: root refcnt 2 rate 2Mbit burst 1600b" in text
    assert "qdisc codel 11: parent 1:1 limit 666p target 7ms interval 200ms ecn \n" in text


def test_the_acknowledgement_filter_is_cakes_and_nothing_else_of_it(shown):
    text = shown(discipline="ack-filter")

    assert "qdisc cake 1: root refcnt 2 bandwidth 2Mbit besteffort flowblind" in text
    assert " ack-filter-aggressive " in text
    assert " memlimit 1000000b" in text


def test_red_s_thresholds_are_possible_for_scpslab_exactly_if_they_are_for_tc(engine, tmp_path):
    """Both sides of every border: thresholds near the average packet and far, burst rounded, small chances."""
    pairs = [(least, most) for least in (1, 999, 1000, 1001) for most in (1999, 2000, 3998, 4000, 30_000)]
    pairs += [(1900, most) for most in (1901, 1999, 2000, 2199, 2200, 5000)] + [
        (6500, most) for most in (6600, 7999, 8000, 9000)
    ]
    pairs += [(least, BORDERS[least] + step) for least in BORDERS for step in (-1, 0, 1, 2)]
    pairs += [(2_000_000, 4_000_000), (2_500_000, 5_000_000), (25_000_000, 50_000_000)]
    slopes = [(10_000, 100_000, 90_000 * SLOPE_LIMIT * factor) for factor in (0.99, 1, 1.01)]
    cases = [(least, most, 0.1) for least, most in pairs] + slopes
    expected = [
        is_possible(least, most) and probability > (most - least) * SLOPE_LIMIT for least, most, probability in cases
    ]
    assert {is_possible(least, most) and not is_possible(least, most + 1) for least, most in BORDERS.items()} == {True}

    words = [f"{least}/{most}/{burst_packets(least, most)}/{probability!r}" for least, most, probability in cases]
    settings = "limit 90000000 min $l max $m avpkt 1000 burst $b probability $p bandwidth 2000000bit"
    loop = (
        f'while IFS=/ read l m b p; do tc qdisc replace dev lo root red {settings}; echo "$l $m $?"; '
        "tc qdisc del dev lo root; done"
    )
    command = f"printf '%s\\n' {' '.join(words)} | bash -c '{loop}'"
    text = printed(engine, tmp_path, schema.write(network_of("point_to_point")), command, 10**9)
    codes = re.findall(r"^\d+ \d+ (\d)$", text, re.MULTILINE)

    assert [(case, code == "0") for case, code in zip(cases, codes, strict=True)] == list(
        zip(cases, expected, strict=True)
    )


def test_marks_are_counted_and_what_nobody_counts_is_left_empty(run):
    """Both mark an upload with ECN and drop nothing; drop-tail has no such column and knows its greatest depth."""
    ran = run(MARKED)
    rows = {row["queue"]: row for row in ran.rows}
    accounts = {queue: cell.account("forward", "trunk") for queue, cell in ran.by("queue").items()}

    for queue in ("red", "codel"):
        assert int(rows[queue]["trunk_data_marked_packets"]) == accounts[queue]["marked_packets"] > 0
        assert rows[queue]["trunk_data_lost_queue_packets"] == "0"
        assert {accounts[queue][depth] for depth in ("most_bytes", "most_packets", "queue_bytes")} == {None}
    assert rows["drop-tail"]["trunk_data_marked_packets"] == ""
    assert "marked_packets" not in accounts["drop-tail"]
    assert 50_000 < accounts["drop-tail"]["most_bytes"] <= 120_000
