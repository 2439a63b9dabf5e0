"""What is read of a lab's console: samples of a running cell. A program in the lab can write there whatever it likes."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from scpslab.cli.progress import ConsoleProgress
from scpslab.engine import CellRun
from scpslab.engine.base import CellSample
from scpslab.engine.console import READ_BYTES, read
from scpslab.lab.loop import Epoch
from scpslab.lab.records import COPIES, LONGEST_LIVE, MOST_LIVE_BYTES, Live
from scpslab.running.events import CellProgress, RunInterrupted, RunStarted
from scpslab.running.executors import LocalExecutor
from tests.unit.engine.test_process_engine import PLAN, ScriptEngine

from scpslab.kinds.probes.queue.plan import QueueDepth

SOURCES = frozenset({"transfer", "queue-hop"})


def line(text: str) -> bytes:
    return f"\x1e{text}".encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"source": "transfer", "t_s": 1.5, "state": "started"}', CellSample(1.5, "transfer", {"state": "started"})),
        (
            '{"source": "queue-hop", "t_s": 0, "bytes": 7, "rate": null}\r',
            CellSample(0, "queue-hop", {"bytes": 7, "rate": None}),
        ),
    ],
)
def test_a_line_of_the_live_stream_is_a_sample(text, expected):
    assert read(line(text), SOURCES) == expected


@pytest.mark.parametrize(
    "said",
    [
        b'{"source": "transfer", "t_s": 1}',
        b'x\x1e{"source": "transfer", "t_s": 1}',
        line(""),
        line("{"),
        line("[" * 2000),
        line('["source", "t_s"]'),
        line('{"source": "transfer"}'),
        line('{"t_s": 1}'),
        line('{"source": "somebody", "t_s": 1}'),
        line('{"source": ["transfer"], "t_s": 1}'),
        line('{"source": "transfer", "t_s": true}'),
        line('{"source": "transfer", "t_s": "1"}'),
        line('{"source": "transfer", "t_s": -1}'),
        line('{"source": "transfer", "t_s": 1e300}'),
        line('{"source": "transfer", "t_s": NaN}'),
        line('{"source": "transfer", "t_s": 1, "t_s": 2}'),
        line('{"source": "transfer", "t_s": 1, "bytes": Infinity}'),
        line(f'{{"source": "transfer", "t_s": 1, "bytes": 1{"0" * 1000}}}'),
        line('{"source": "transfer", "t_s": 1, "bytes": [1]}'),
        line('{"source": "transfer", "t_s": 1, "bytes": false}'),
        line('{"source": "transfer", "t_s": 1, "by tes": 1}'),
        line('{"source": "transfer", "t_s": 1, "state": "\\u001b[2J"}'),
        line('{"source": "transfer", "t_s": 1, "state": "\\u202e"}'),
        line(f'{{"source": "transfer", "t_s": 1, "state": "{"x" * 61}"}}'),
        line('{"source": "transfer", "t_s": 1}' + " " * LONGEST_LIVE),
        b'\x1e{"source": "transfer", "t_s": 1, "state": "\xff"}',
    ],
)
def test_a_line_that_the_lab_does_not_write_is_no_sample(said):
    assert read(said, SOURCES) is None


PROBE = QueueDepth(name="queue-hop", link="hop", direction="data", stage="queue", interval_ns=10**9)
WATCHED = replace(PLAN, cell=replace(PLAN.cell, probes=(PROBE,)))
SAMPLE = '\x1e{{"source": "queue-hop", "t_s": {}}}\n'


def test_samples_are_told_in_order_and_left_out_of_what_is_kept_of_the_console(tmp_path):
    """A piece of the console without a line feed is passed over."""
    before, after = "one\n" + SAMPLE.format(1), "\n" + SAMPLE.format(2) + "two\n" + SAMPLE.format(3)
    script = f"print({before!r} + 'x' * {3 * READ_BYTES} + {after!r}, end='')"
    heard: list[CellSample] = []

    status = ScriptEngine(script).run(CellRun(WATCHED, tmp_path / "r1", hear=heard.append))

    assert [sample.t_s for sample in heard] == [1, 2, 3]
    assert status.reason.endswith("xx | two")
    assert (tmp_path / "r1" / "logs" / "console.log").read_text() == "one\n" + "x" * 3 * READ_BYTES + "\ntwo\n"


def test_a_line_without_an_end_waits_for_it(tmp_path):
    """The lab ends only after its first sample was heard."""
    begin, end = SAMPLE.format(1)[:9], SAMPLE.format(1)[9:] + SAMPLE.format(2)
    go_on = tmp_path / "go-on"
    script = (
        "import pathlib, sys, time\n"
        f"print({SAMPLE.format(0) + begin!r}, end='', flush=True)\n"
        f"while not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.01)\n"
        f"print({end!r}, end='')"
    )
    heard: list[CellSample] = []

    def hear(sample: CellSample) -> None:
        heard.append(sample)
        go_on.touch()

    ScriptEngine(script).run(CellRun(WATCHED, tmp_path / "r1", hear=hear))

    assert [sample.t_s for sample in heard] == [0, 1, 2]


class Awake:
    """A loop that sleeps when it is told to."""

    def __init__(self):
        self.calls = []

    def before_sleep(self, call):
        self.calls.append(call)

    def sleep(self):
        while self.calls:
            self.calls.pop()(10**9)


def test_the_stream_has_an_end_and_grows_thin(capsys):
    """At most a record a second; each further 128 of a source are twice as far apart; 1 MiB in all."""
    live = Live(loop := Awake(), Epoch())
    for t_s in range(10 * COPIES):
        for _ in range(2):
            live.copy("queue-hop", {"t_s": t_s, "bytes": 1})
        live.copy("queue-hop", {"t_s": t_s + 0.5, "bytes": 1})
        if t_s % 2:
            loop.sleep()
    told = [read(said.encode(), SOURCES).t_s for said in capsys.readouterr().out.split("\n")[:-1]]
    assert told[: 2 * COPIES : 2] == list(range(COPIES))
    assert told[1 : 2 * COPIES : 2] == list(range(COPIES))
    assert len(told) == 2 * (COPIES + COPIES + COPIES + COPIES // 8 * 3)

    live = Live(loop, Epoch())
    live.copy("transfer", {"t_s": 1, "state": "x" * LONGEST_LIVE})
    for number in range(2 * MOST_LIVE_BYTES // 1000):
        live.copy(str(number), {"t_s": 1, "state": "x" * 1000})
        loop.sleep()
    assert MOST_LIVE_BYTES - 1100 < len(capsys.readouterr().out) <= MOST_LIVE_BYTES


class Told:
    """What an executor reports, in its order."""

    def __init__(self):
        self.reports: list[tuple[object, ...]] = []

    def started(self, cell_id):
        self.reports.append(("started", cell_id))

    def progress(self, cell_id, sample):
        self.reports.append((cell_id, sample.t_s))

    def ended(self, cell_id, status, _took_s):
        self.reports.append(("ended", cell_id))


def test_an_executor_tells_the_samples_of_a_cell_before_its_end(tmp_path):
    told = Told()
    engine = ScriptEngine(f"print({SAMPLE.format(1) + SAMPLE.format(2)!r}, end='')")

    LocalExecutor(1).run(engine, {"r1": CellRun(WATCHED, tmp_path / "r1")}, told)

    assert told.reports == [("started", "r1"), ("r1", 1), ("r1", 2), ("ended", "r1")]


def test_the_bar_shows_how_far_a_cell_is(tmp_path):
    console = Console(force_terminal=True, width=200, file=io.StringIO())
    shown = ConsoleProgress(console)
    shown(RunStarted("test", tmp_path, "virtual", ("r1",)))
    shown(CellProgress("r1", CellSample(41.2, "tcp-ws1", {"bytes_acked": 1_200_000})))

    assert shown.bar.tasks[0].description == "r1 at 41 s, 1.2 MB acknowledged"
    shown(RunInterrupted("test", tmp_path))
