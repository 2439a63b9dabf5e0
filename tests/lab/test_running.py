"""Runs: what a folder holds, cache, resume, limits, cells whose workloads give up, and the same bytes again."""

import json
import os
import subprocess
import sys

import pytest

from scpslab.engine.base import Interrupted
from scpslab.engine.uml import UmlEngine
from scpslab.running import RunOptions
from scpslab.running.verify import verify
from scpslab.runs.archive import write_archive
from tests import archives
from tests.lab.command import ended

NAME = "fy97/fig04:kernel-test"
ONE_CELL = ("repeats=1", "sweep.ber.values=[0]", "workloads.transfer.size=20 kB")
BUSY = "while True: pass"


@pytest.fixture(scope="module")
def one(run_once):
    """A run of one cell."""
    return run_once(NAME, *ONE_CELL)


def test_a_run_folder_explains_itself(one):
    """Manifest, resolved scenario, plan, status, environment, records, captures, logs, results: all there."""
    files = {"plan.json", "status.json", "environment.json", "records", "captures", "logs"}
    assert one.ended == (1, 0, 0)
    assert files <= {entry.name for entry in one.cell.folder.iterdir()}
    assert json.loads((one.folder / "manifest.json").read_text())["status"] == "completed"
    assert (one.folder / "results.csv").read_text().count("\n") == 2
    assert "TCP" in (one.folder / "scenario.resolved.yaml").read_text()


def test_asking_again_runs_nothing(run, tmp_path, monkeypatch):
    """The second run takes the folder's own result, a third elsewhere the cache's; both leave the same bytes."""
    first = run(NAME, *ONE_CELL, use_cache=True, out=tmp_path / "a")
    monkeypatch.setattr("scpslab.engine.uml.UmlEngine.run", lambda self, cell: pytest.fail("a cell was run again"))

    again = run(NAME, *ONE_CELL, use_cache=True, out=tmp_path / "a")
    elsewhere = run(NAME, *ONE_CELL, use_cache=True, out=tmp_path / "b")

    assert again.ended == elsewhere.ended == (1, 0, 0)
    assert elsewhere.digests == first.digests


def test_an_interrupted_run_keeps_what_is_finished(run, tmp_path, monkeypatch):
    """The second cell is interrupted: the first one's result is there and is not run again."""
    original = UmlEngine.run
    ran: list[str] = []

    def interrupt_second(self, cell):
        ran.append(cell.plan.cell.id)
        if len(ran) == 2:
            raise Interrupted
        return original(self, cell)

    is_drawn = "workloads.transfer.start={random: 0 s..1 s}"
    words, options = ("repeats=2", is_drawn, *ONE_CELL[1:], "seed=77"), {"use_cache": True, "out": tmp_path}
    monkeypatch.setattr(UmlEngine, "run", interrupt_second)
    with pytest.raises(KeyboardInterrupt):
        run(NAME, *words, **options)
    result = run(NAME, *words, **options)

    assert result.ended == (2, 0, 0)
    assert len(ran) == 3
    assert ran[1] == ran[2] != ran[0]


@pytest.mark.parametrize(
    ("override", "engine", "status", "words"),
    [
        # No machine keeps its ticks to a nanosecond.
        (
            "limits.lateness=1 ns",
            "live",
            "failed",
            ("real time was not kept", "as root: chrt -f 10 scpslab run", ".latene"),
        ),
        ("limits.lab_time=3 s", "virtual", "failed", ("virtual limit of 3 s",)),
        ("limits.wall_time=1 s", "live", "failed", ("wall limit of 1 s",)),
        # Nothing arrives for ever, and the sender's timeout ends the cell.
        ("links.hop.forward.errors.outages=[{from: 0 s, to: 1 h}]", "virtual", "incomplete", ("the timeout ran out",)),
    ],
)
def test_a_cell_that_passes_a_limit_says_which_and_leaves_its_logs(run, override, engine, status, words):
    transfer = ("workloads.transfer.size=100 kB", "workloads.transfer.timeout=20 s")
    ran = run(NAME, *ONE_CELL, *transfer, override, engine=engine)

    assert ran.row["status"] == ran.cell.status == status
    assert [word for word in words if word not in ran.row["reason"]] == []
    assert list((ran.cell.folder / "logs").iterdir()) != []
    assert not list(ran.folder.rglob("*.part"))


CONGESTIONS = ["reno", "cubic", "bbr", "vegas", "hybla", "westwood", "highspeed", "illinois", "veno", "yeah"]


def test_every_congestion_control_is_in_the_kernel(run):
    """Each one carries a transfer, and the environment names it."""
    cases = {f"modern-{name}": {"hosts.*.preset": "modern", "hosts.*.congestion_control": name} for name in CONGESTIONS}
    ran = run(NAME, *ONE_CELL, f"sweep.stack.cases={json.dumps(cases)}")

    assert ran.ended == (len(CONGESTIONS), 0, 0)
    for label, cell in ran.by("stack").items():
        assert f"modern-{cell.environment['ws1']['sysctls']['tcp_congestion_control']}" == label


@pytest.mark.smoke
def test_two_runs_give_the_same_bytes(run):
    """Once alone and once with every core busy with other work."""
    first = run(NAME).digests
    load = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in os.sched_getaffinity(0)]
    try:
        second = run(NAME).digests
    finally:
        for process in load:
            process.kill()
            process.wait()

    assert any(name.endswith(".pcap") for name in first)
    assert first == second


@pytest.fixture(scope="module")
def archive(one, tmp_path_factory):
    """The archive of the run of one cell."""
    return write_archive([one.folder], tmp_path_factory.mktemp("archive") / "one.scpslab.tar.gz")


def test_an_exported_run_gives_the_same_bytes_again(archive):
    (found,) = verify(archive, RunOptions())

    assert found.is_same
    assert found.has_same_engine
    assert any(name.endswith(".pcap") for name in found.same)
    assert "results.csv" in found.same


def test_the_command_says_so_and_names_what_differs(archive, tmp_path):
    """The archive claims another capture than the run gives: exit code 1 and the file's name."""
    files = archives.members(archive)
    contents = json.loads(files["archive.json"])
    name = next(name for name in contents["runs"][0]["files"] if name.endswith(".pcap"))
    contents["runs"][0]["files"][name] = "0" * 64
    forged = archives.pack(files | {"archive.json": json.dumps(contents).encode()}, tmp_path / "forged.tar.gz")
    command = ended("verify", forged, "--keep", tmp_path / "again")

    assert command.returncode == 1
    assert f"differs: {name}" in command.stdout
    assert "kernel, guest image and lab program are the same as in the archived run" in command.stdout
