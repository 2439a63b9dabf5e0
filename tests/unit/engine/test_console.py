"""What is read of a lab's console: samples of a running cell. A program in the lab can write there whatever it likes."""

import io

import pytest
from rich.console import Console

from scpslab.cli.progress import ConsoleProgress
from scpslab.engine.base import CellSample
from scpslab.engine.console import read
from scpslab.lab.loop import Epoch
from scpslab.lab.records import COPIES, LONGEST_LIVE, MOST_LIVE_BYTES, Live
from scpslab.running.events import CellProgress, RunInterrupted, RunStarted

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
        *map(line, ["", "{", "[" * 2000, '["source", "t_s"]', '{"source": "transfer"}', '{"t_s": 1}']),
        *(line(f'{{"source": {source}, "t_s": 1}}') for source in ('"somebody"', '["transfer"]')),
        *(
            line(f'{{"source": "transfer", "t_s": {t_s}}}')
            for t_s in ("true", '"1"', "-1", "1e300", "NaN", '1, "t_s": 2')
        ),
        *(
            line(f'{{"source": "transfer", "t_s": 1, {value}}}')
            for value in (
                *('"bytes": Infinity', f'"bytes": 1{"0" * 1000}', '"bytes": [1]', '"bytes": false', '"by tes": 1'),
                *('"state": "\\u001b[2J"', '"state": "\\u202e"', f'"state": "{"x" * 61}"'),
            )
        ),
        line('{"source": "transfer", "t_s": 1}' + " " * LONGEST_LIVE),
        b'\x1e{"source": "transfer", "t_s": 1, "state": "\xff"}',
    ],
)
def test_a_line_that_the_lab_does_not_write_is_no_sample(said):
    assert read(said, SOURCES) is None


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


def test_the_bar_shows_how_far_a_cell_is(tmp_path):
    console = Console(force_terminal=True, width=200, file=io.StringIO())
    shown = ConsoleProgress(console)
    shown(RunStarted("test", tmp_path, "virtual", ("r1",)))
    shown(CellProgress("r1", CellSample(41.2, "tcp-ws1", {"bytes_acked": 1_200_000})))

    assert shown.bar.tasks[0].description == "r1 at 41 s, 1.2 MB acknowledged"
    shown(RunInterrupted("test", tmp_path))
