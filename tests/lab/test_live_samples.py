"""Samples of a running cell: they come while it runs, and nothing of a cell depends on who listens."""

import time

from scpslab.engine import CellRun, CellSample
from scpslab.plan import FORMAT, read, schema
from tests.lab.conftest import CELL, capture, datagrams, network_of
from tests.lab.ran import digests

PROBE = {"name": "waiting", "kind": "queue", "link": "hop", "direction": "data", "stage": "queue", "interval_ns": 10**8}
# What somebody in the lab may write there: another's words, words for the terminal, no JSON, a line without an end.
FORGED = r"""for word in '{"source": "somebody", "t_s": 1}' '{"source": "waiting", "t_s": 1, "bytes": "\u001b[2J"}' '{' '[[['
do printf '\036%s\n' "$word" > /dev/tty0; done; printf '\036{"source": "waiting", ' > /dev/tty0"""


def test_listening_changes_no_byte_and_samples_come_while_the_cell_runs(engine, tmp_path):
    """Also where a program of the cell writes to the lab's console."""
    script = [{"do": "run", "t_ns": 2 * 10**9, "node": "h1", "command": FORGED, "required": True, "patience_ns": 10**9}]
    own = {"workloads": [datagrams(10**6, 300, 500)], "probes": [PROBE, capture("h2")], "script": script}
    network = schema.write(network_of("point_to_point"))
    plan = read({"format": FORMAT, "network": network, "cell": {**schema.write(CELL), **own}})
    heard: list[tuple[float, CellSample]] = []

    alone = engine.run(CellRun(plan, tmp_path / "alone"))
    heeded = engine.run(
        CellRun(plan, tmp_path / "heeded", hear=lambda sample: heard.append((time.monotonic(), sample)))
    )
    ended_at = time.monotonic()

    assert alone["status"] == heeded["status"] == "completed", alone
    assert digests(tmp_path / "alone") == digests(tmp_path / "heeded")
    assert ended_at - heard[0][0] > 0.2
    samples = [sample for _, sample in heard]
    assert {sample.source for sample in samples} == {"datagrams", "waiting"}
    states = [sample.values["state"] for sample in samples if sample.source == "datagrams"]
    assert states == ["started", "completed"]
    waiting = [sample for sample in samples if sample.source == "waiting"]
    assert len(waiting) > 100
    assert all(set(sample.values) == {"packets", "bytes", "drops"} for sample in waiting)
