"""The time that a run takes, with a clock that the tests turn."""

import io
from dataclasses import replace
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.cli.progress import ConsoleProgress
from scpslab.cli.tables import plain_console
from scpslab.lab.records import Status
from scpslab.running.events import CellDone, CellStarted, RunDone, RunStarted
from scpslab.scenario import planning
from scpslab.scenario.planning.estimate import PACKET_S, START_S, Expected, expected, forecast, in_words, least_packets

TEN_S = Expected(virtual_s=100.0, wall_s=10.0)
FOLDER = Path("runs/slow-1234")
DONE = Status("completed", virtual_s=120.0)


class Clock:
    """A clock that stands until somebody turns it."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(
    ("seconds", "words"), [(3.4, "3 s"), (119, "119 s"), (150, "2 min"), (7000, "117 min"), (9000, "2.5 h")]
)
def test_times_are_said_as_people_say_them(seconds, words):
    assert in_words(seconds) == words


@pytest.fixture
def shown():
    """Progress on a console of a run of some cells that are expected to take so long; a clock, and what was printed."""
    console, clock = plain_console(width=150), Clock()
    console.file = io.StringIO()

    def begin(wall_s, cells, *, jobs=1, engine="virtual"):
        show = ConsoleProgress(console, jobs, clock)
        show(RunStarted("slow", FOLDER, engine, cells, dict.fromkeys(cells, replace(TEN_S, wall_s=wall_s))))
        return show, clock, console

    return begin


def test_a_long_run_says_before_its_first_cell_how_fast_virtual_time_goes(shown):
    show, _, console = shown(400.0, ("r1", "r2", "r3", "r4"), jobs=2)
    show(CellDone("r1", DONE, cached=True))
    assert "about" not in console.file.getvalue()
    show(CellStarted("r2"))
    show(CellStarted("r3"))

    guess = "5 min of virtual time at least, some 0.5 virtual s per s (a guess by the plans)"
    first = [line for line in console.file.getvalue().splitlines() if line.startswith("about")]
    assert first == [f"about 10 min for 3 cells, 2 at a time: {guess}"]


GUESS = "about 10 min for 1 cell (a guess by the plans)"
RATE = "1 cell in 5.0 s; 120 virtual s, 24 virtual s per s"


@pytest.mark.parametrize(
    ("engine", "expected_s", "took_s", "lines"),
    [
        ("virtual", 10.0, 5.0, ["[1/1] r1: completed, 120.0 virtual s", RATE]),
        ("live", 600.0, 120.0, [GUESS, "[1/1] r1: completed, 120.0 s", "1 cell in 120.0 s"]),
    ],
    ids=["a short run says nothing of it", "where time is real no second is called virtual"],
)
def test_a_run_of_one_cell_says(shown, engine, expected_s, took_s, lines):
    show, clock, console = shown(expected_s, ("r1",), engine=engine)
    show(CellStarted("r1"))
    clock.now_s += took_s
    show(CellDone("r1", DONE, cached=False))
    show(RunDone("slow", FOLDER, took_s))
    assert console.file.getvalue().splitlines() == lines


def test_packets_are_those_of_the_sizes_and_times():
    def packets(*settings):
        (cell, *_) = scenario.cells(scenario.load("fy97/fig04:kernel", list(settings)))
        return planning.plan(cell)

    plan = packets("workloads.transfer.size=1400 kB", "workloads.transfer.segment=1400 B")
    assert least_packets(plan) == 1000
    assert expected(plan).wall_s == pytest.approx(START_S + 1000 * PACKET_S)
    assert expected(plan, in_virtual_time=False).wall_s == pytest.approx(START_S + expected(plan).virtual_s)
    ten_s = packets("workloads=[{kind: iperf3, name: transfer, from: ws1, to: ws2, duration: 12 s}]")
    # 12 s at 2 Mbit/s in packets of 1500 bytes.
    assert least_packets(ten_s) == 2000
    assert least_packets(packets("workloads=[{kind: ftp, name: transfer, from: ws1, to: ws2, size: 1448 kB}]")) == 1000
    assert least_packets(packets("workloads=[{kind: ping, name: transfer, from: ws1, to: ws2}]")) == 0


def test_a_hundred_megabits_for_an_hour_are_a_long_run():
    """45 GB are 31 million segments: 40 min of a core; 20 of them on 2 cores 7 h."""
    assert forecast([Expected(3600.0, 31e6 * PACKET_S)] * 20, 2) == (
        "about 6.9 h for 20 cells, 2 at a time: 20.0 h of virtual time at least, some 2.9 virtual s per s"
    )
