"""Assignments solved by code that shares nothing with their formulas, and by read-a-trace's reference: all points."""

import math
import re
import subprocess
import sys
from statistics import mean

import pytest

from scpslab.analysis.lost_packets import find_losses, report
from scpslab.analysis.run import open_run
from scpslab.analysis.table import read_results
from scpslab.core.units import parse
from scpslab.running import RunOptions
from scpslab_course.course.answers import expected, read_practice, score_answer
from scpslab_course.course.assignment import find, load_assignment, load_marking
from scpslab_course.course.runs import rows_of, run_variant

HEADERS = 52  # IP 20, TCP 20, timestamps 12


class Results:
    """results.csv of a run, read as a student would."""

    def __init__(self, folder):
        self.rows = read_results(folder).rows

    def __call__(self, column, **where):
        return mean(float(row[column]) for row in self.rows if all(row[axis] == value for axis, value in where.items()))


def corruption_or_congestion(given, runs):
    rate, rtt = parse("rate", given["rate"]), 2 * parse("duration", given["delay"]) / 1e9
    segment = parse("size", given["segment"])
    bits = 8 * (segment + HEADERS)
    noisy, shared = Results(runs["corruption"]), Results(runs["shared"])
    lost = -math.expm1(bits * math.log1p(-1e-6))
    window = rate * segment / (segment + HEADERS) * rtt / (8 * segment)
    neighbour, other = shared("neighbour_goodput_bps", stack="bbr"), shared("transfer_goodput_bps", stack="bbr")
    reno = noisy("goodput_bps", stack="reno", ber="1e-06")
    assert reno == pytest.approx(8 * segment / rtt * math.sqrt(1.5 / lost), rel=0.25), (
        "Mathis' formula must fit for the assignment to make sense"
    )
    return {
        "loss_share": -100 * math.expm1(bits * math.log1p(-1e-5)),
        "mathis": 8 * segment / rtt * math.sqrt(1.5 / lost) / 1000,
        "crossover": 1.5 / window**2 / bits,
        "reno_measured": reno / 1000,
        "formula_ends": "timeouts",
        "bbr_gain": noisy("goodput_bps", stack="bbr", ber="1e-05") / noisy("goodput_bps", stack="reno", ber="1e-05"),
        # Measured, where the formula has the limit of the queue: both must be right.
        "longest_wait": max(row.numbers["rtt_max_ms"] for row in shared.rows) - 1000 * rtt,
        "neighbour_share": 100 * neighbour / (neighbour + other),
    }


def bufferbloat(given, runs):
    rate, delay_ms = parse("rate", given["rate"]), parse("duration", given["delay"]) / 1e6
    found = Results(runs["uplink"])
    deep = {"queue": "tail-512k", "stack": "cubic"}
    assert found("rtt_max_ms", **deep) == pytest.approx(2 * delay_ms + 512e6 * 8 / rate, rel=0.01), (
        "the queue must be full for the assignment to make sense"
    )
    return {
        "bdp": rate * 2 * delay_ms / 8e6,
        "longest_wait": 512 / (rate / 8000),
        "echo_max": found("rtt_max_ms", **deep),
        "tail_limit": rate / 8000 / 5,
        "page_factor": found("page_user_s", **deep) / found("page_user_s", queue="codel-600ms", stack="cubic"),
        "bbr_wait": found("rtt_mean_ms", queue="tail-512k", stack="bbr") - 2 * delay_ms,
        "ecn_saves": found("upload_retransmissions", queue="codel-600ms", stack="cubic")
        - found("upload_retransmissions", queue="codel-ecn", stack="cubic"),
    }


def ack_path(given, runs):
    segment = parse("size", given["segment"])
    acks_per_s = parse("rate", given["ack_rate"]) / (8 * HEADERS)
    asymmetry = parse("rate", given["rate"]) / (8 * (segment + HEADERS)) / acks_per_s
    counted, strategies = Results(runs["counted"]), Results(runs["strategies"])
    goodput = {row["strategy"]: float(row["goodput_bps"]) for row in strategies.rows}
    assert strategies("final_rate_bps", strategy="scps-2") == pytest.approx(2 * segment * 8 * acks_per_s, rel=0.01), (
        "the formula must hold for SCPS-TP, too"
    )
    return {
        "asymmetry": asymmetry,
        # Measured, where the formula has the rate of the return channel: both must be right.
        "bound": counted("final_rate_bps", acks="every-2") / 1000,
        "fewest": math.ceil(asymmetry),
        "short_gain": counted("final_rate_bps", acks="every-2-short") / counted("final_rate_bps", acks="every-2"),
        "twice": "slow_start",
        "filtered": 100
        * strategies("hop_ack_lost_queue_packets", strategy="tcp-filter")
        / strategies("hop_ack_offered_packets", strategy="tcp-filter"),
        "filter_measured": goodput["tcp-filter"] / goodput["tcp-long"],
        "fewer_measured": goodput["scps-16"] / goodput["scps-2"],
        "compressed_measured": goodput["scps-compressed"] / goodput["scps-2"],
    }


def split_tcp(given, runs):
    rate, rtt = parse("rate", given["rate"]), 2 * parse("duration", given["delay"]) / 1e9
    page, file, short = (Results(runs[name]) for name in ("page", "file", "short"))
    slowest = {
        path: max(page(f"{prefix}user_s", path=path) for prefix in ("object1_", "object2_", "object3_", "object4_"))
        for path in ("cubic", "split")
    }
    left, windows = math.ceil(parse("size", given["object"]) / 1400), []
    while left > 0:
        windows.append(10 * 2 ** len(windows))
        left -= windows[-1]
    stopped, killed = (
        next(cell for cell in open_run(runs["loss"]).cells if cell.id == f"end={end},r1") for end in ("stop", "kill")
    )
    account = next(line for line in stopped.records("near") if line["event"] == "counters")["from_lan"]
    arrived = next(line for line in stopped.records("transfer") if line["event"] == "receiver")["bytes"]
    lost = account["acknowledged"] - arrived
    assert lost == pytest.approx(4 * rate * rtt / 8, rel=0.02), "both buffers of the near gateway must be full"
    (sender,) = killed.records("transfer")
    assert sender["close_t_s"] > 30, "the end of the cell alone may tell the sender"
    return {
        "bdp": rate * rtt / 8000,
        "object_floor": (1 + len(windows)) * rtt,
        # Measured, where the formula has the buffer: both must be right.
        "small_limit": file("goodput_bps", path="split-small") / 1e6,
        "page_measured": slowest["cubic"] / slowest["split"],
        "noise_measured": file("user_s", way="noisy", path="cubic") / file("user_s", way="noisy", path="split"),
        "short_measured": short("user_s", path="cubic") / short("user_s", path="split"),
        "acknowledged": account["acknowledged"] / 1000,
        "lost": lost / 1000,
        "told": "nothing",
    }


def hand_over(given, runs):
    rate, fibre_s = parse("rate", given["rate"]), given["fibre"] / 200_000
    radius, elevation = 6371, math.radians(10)
    orbit = radius + given["altitude"]
    # By the law of sines, where the handout solves a quadratic equation.
    centre = math.acos(radius * math.cos(elevation) / orbit) - elevation
    far_km = orbit * math.sin(centre) / math.cos(elevation)
    far_s, near_s = (2 * km / 299_792 + 0.001 for km in (far_km, given["altitude"]))
    steps, gaps = Results(runs["steps"]), Results(runs["gaps"])

    def cost(outage, stack):
        return gaps("user_s", outage=outage, stack=stack) - gaps("user_s", outage="none", stack=stack)

    run = open_run(runs["steps"])
    assert all(find_losses(cell, run.id).lost == () for cell in run.cells)
    assert steps("retransmissions", stack="reno-1997") == 0 < steps("retransmissions", stack="cubic")
    assert cost("150-ms", "reno-1997") < cost("50-ms", "reno-1997")
    assert cost("100-ms", "cubic") == pytest.approx(cost("150-ms", "cubic"), abs=0.005)
    quiet = [
        outage for outage in ("50", "100", "150", "400") if gaps("rtos", outage=f"{outage}-ms", stack="cubic") == 0
    ]
    return {
        "far_range": far_km,
        "overtaken": (far_s - near_s) * rate / (8 * 1452),
        "timeout": 1000 * (2 * (far_s + fibre_s) + 0.2),
        "old_repair": math.ceil(0.05 * rate / (8 * 1452)) * 2 * (near_s + fibre_s),
        "resends": steps("retransmissions", stack="cubic"),
        "superfluous": steps("retransmissions", stack="cubic"),
        "cubic_cost": 1000 * cost("400-ms", "cubic"),
        "old_cost": cost("50-ms", "reno-1997"),
        "harmless": f"up-to-{quiet[-1]}",
    }


class Solved:
    """An assignment's practice variant: its runs, and what is right in it."""

    def __init__(self, name, folder):
        self.assignment = load_assignment(find(name))
        self.practice = read_practice(self.assignment)
        self.parameters = self.practice.variant.parameters
        options = RunOptions(out=folder / "runs", use_cache=False)
        self.folders = run_variant(self.assignment, self.parameters, options)
        marking = load_marking(self.assignment)
        self.right = expected(self.assignment, marking, self.parameters, rows_of(self.folders))

    def share(self, name, value):
        """The share of the points that an answer has."""
        return score_answer(self.assignment.file.answers[name], self.right.answers[name], value).share

    def assert_all_points(self, given):
        """Every answer is given, and right."""
        assert {name: self.share(name, value) for name, value in given.items()} == dict.fromkeys(self.right.answers, 1)


@pytest.mark.parametrize("solve", [corruption_or_congestion, bufferbloat, ack_path, split_tcp, hand_over])
def test_a_solution_of_ones_own_has_all_points(solve, tmp_path):
    solved = Solved(solve.__name__.replace("_", "-"), tmp_path)

    solved.assert_all_points(solve(solved.parameters, solved.folders))
    for name, one in solved.right.answers.items():
        mistakes = [mistake.value for mistake in one.wrong if mistake.value != one.value]
        assert all(solved.share(name, value) < 1 for value in mistakes), f"{name}: a common mistake has all points"


CAUSES = {"by_queue": "queue", "by_corrupt": "corrupt", "by_outage": "outage", "superfluous": "superfluous"}
PICKS = {"cause_1": "pick_1", "cause_2": "pick_2", "cause_3": "pick_3"}


def test_the_reference_solution_of_a_trace_has_all_points(tmp_path):
    """The marking computes the answers in another way."""
    solved = Solved("read-a-trace", tmp_path)
    run = open_run(solved.folders["trace"])
    (losses := tmp_path / "losses.csv").write_text(report(find_losses(run.cells[0], run.id)).csv)
    program = solved.assignment.folder / "instructor" / "solution" / "solve.py"
    words = [sys.executable, program, run.cells[0].folder / "captures" / "ws1.pcap", losses]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    assert ended.stdout == program.with_name("causes.csv").read_text()
    causes = [line.split(",")[3] for line in ended.stdout.splitlines()[1:]]
    repair = re.search(r"first repair ([\d.]+) ms", ended.stderr)
    assert repair is not None
    given = {
        "resends": len(causes),
        **{name: causes.count(cause) for name, cause in CAUSES.items()},
        **{name: causes[int(solved.parameters[pick]) - 1] for name, pick in PICKS.items()},
        "first_repair": f"{repair[1]} ms",
    }

    solved.assert_all_points(given)
    assert solved.right == solved.practice.expected
