"""Samples of a running cell: they come while it runs, and nothing of a cell depends on who listens."""

import time

import pytest

from scpslab.engine import CellRun, CellSample
from scpslab.engine.appliance import inside
from scpslab.engine.appliance.machine import Job
from scpslab.engine.virtual import Forked
from scpslab.plan import FORMAT, Plan, read, schema, text
from tests.lab.conftest import CELL, capture, datagrams, network_of, typed
from tests.lab.ran import digests

PROBE = {"name": "waiting", "kind": "tcp_info", "node": "h1", "interval_ns": 10**8}
# A connection for the probe to look at.
CONNECTED = """python3 -c 'import socket, time
here = socket.create_server(("127.0.0.1", 9))
there = socket.create_connection(("127.0.0.1", 9))
time.sleep(250)'"""
# What somebody in the lab may write there: another's words, words for the terminal, no JSON, a line without an end.
FORGED = r"""for word in '{"source": "somebody", "t_s": 1}' '{"source": "waiting", "t_s": 1, "bytes": "\u001b[2J"}' '{' '[[['
do printf '\036%s\n' "$word" > /dev/tty0; done; printf '\036{"source": "waiting", ' > /dev/tty0"""


@pytest.fixture
def plan() -> Plan:
    """Datagrams for five minutes, a probe, and a program that writes to the lab's console."""
    own = {"workloads": [datagrams(10**6, 300, 500)], "probes": [PROBE, capture("h2")]}
    own |= {"events": [typed(CONNECTED, 10**9, 300 * 10**9), typed(FORGED, 2 * 10**9, 10**9)]}
    network = schema.write(network_of("point_to_point"))
    return read({"format": FORMAT, "network": network, "cell": {**schema.write(CELL), **own}})


def test_listening_changes_no_byte_and_samples_come_while_the_cell_runs(engine, plan, tmp_path):
    """Also where a program of the cell writes to the lab's console."""
    heard: list[tuple[float, CellSample]] = []

    alone = engine.run(CellRun(plan, tmp_path / "alone"))
    heeded = engine.run(
        CellRun(plan, tmp_path / "heeded", hear=lambda sample: heard.append((time.monotonic(), sample)))
    )
    ended_at = time.monotonic()

    assert alone.status == heeded.status == "completed", alone
    assert digests(tmp_path / "alone") == digests(tmp_path / "heeded")
    assert ended_at - heard[0][0] > 0.2
    samples = [sample for _, sample in heard]
    assert {sample.source for sample in samples} == {"datagrams", "waiting"}
    states = [sample.values["state"] for sample in samples if sample.source == "datagrams"]
    assert states == ["started", "completed"]
    waiting = [sample for sample in samples if sample.source == "waiting"]
    assert len(waiting) > 100
    assert all(sample.values["cwnd_segments"] == 10 for sample in waiting)


def test_the_program_in_the_appliance_tells_the_same_samples_of_a_cell_with_the_same_bytes(
    engine, plan, tmp_path, monkeypatch
):
    """It runs here as it does in its machine, on what the host would share with that."""
    monkeypatch.setattr(inside.machine, "MACHINE", tmp_path / "machine")
    monkeypatch.setattr(inside, "CELLS", tmp_path / "cells")
    guest, given = engine.guest(plan), tmp_path / "machine" / "exchange" / "1"
    for name, target in (
        ("kernel", guest.kernel.parent),
        ("tools", guest.tools),
        ("boot", guest.boot.parent),
        ("lab", guest.program.parent),
    ):
        (tmp_path / "machine").mkdir(exist_ok=True)
        (tmp_path / "machine" / name).symlink_to(target)
    (tmp_path / "cells").mkdir()
    (given / "cell" / "vectors").mkdir(parents=True)
    (given / "cell" / "plan.json").write_text(text(plan))
    job = Job(
        id=1,
        boot=guest.boot.name,
        lab=guest.program.name,
        is_cell=True,
        memory_mib=guest.memory_mib,
        wall_s=120,
        snapshots=True,
    )
    here: list[CellSample] = []
    there: list[CellSample] = []
    forked = Forked()

    status = engine.run(CellRun(plan, tmp_path / "here", hear=here.append))
    answer = inside.Inside(job, forked).carry_out(there.append)
    forked.pool.close()

    assert (status.status, answer.ended, answer.returncode) == ("completed", "", 0)
    assert there == here
    assert b"\x1e{" not in (given / "console.log").read_bytes()
    ran = digests(given / "out")
    assert {name: digest for name, digest in digests(tmp_path / "here").items() if name in ran} == ran
    assert ran
