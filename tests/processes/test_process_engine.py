"""What all engines whose lab is a process do alike: a cell's folder, its limits, an interrupt, a session, samples."""

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest

from scpslab.engine import CellRun, CellSample
from scpslab.engine.base import Interrupted
from scpslab.engine.console import READ_BYTES
from scpslab.engine.process import ProcessEngine
from scpslab.engine.uml import no_network
from scpslab.engine.virtual import VirtualEngine
from scpslab.lab.records import Status
from scpslab.plan import write
from scpslab.running.executors import LocalExecutor
from scpslab.runs import CellFiles
from tests import golden

from scpslab.kinds.probes.tcp_info.plan import TcpInfo

PLAN = no_network({"wall_s": 60, "memory_mib": 512})
SHORT = replace(PLAN, cell=replace(PLAN.cell, limits=replace(PLAN.cell.limits, wall_s=0.1)))
WRITES_STATUS = 'open("out/status.json", "w").write(\'{"status": "completed", "reason": ""}\')'
WAITS_FOR_EVER = "import sys; sys.stdin.readline()"


class ScriptEngine(ProcessEngine):
    """A lab that is a Python script in the folder that labs read."""

    name, deterministic, interactive, lab_name = "script", False, True, "the script"

    def __init__(self, script, left=""):
        super().__init__()
        self.script, self.left, self.given_back = script, left, 0

    def prepare(self, say, plans):
        """Nothing is needed."""

    def hash(self, plan):
        return "script"

    def as_carried_out(self, plan):
        return replace(plan, network=replace(plan.network, topology="added"))

    @contextmanager
    def lab(self, folder, core=None, console=None):
        # A pipe that nobody writes into: who reads from it waits.
        with folder.console.open("wb") as log:
            options = {"stdin": subprocess.PIPE, "stdout": log, "stderr": subprocess.STDOUT}
            process = subprocess.Popen([sys.executable, "-c", self.script], cwd=folder.inside, **options)
        yield process
        process.stdin.close()
        self.given_back += 1

    def look_over(self, folder):
        return self.left


def run(engine, tmp_path, plan=PLAN):
    target = tmp_path / "cells" / "r1"
    return engine.run(CellRun(plan, target)), CellFiles(target)


def test_a_cell_that_ends_is_moved_into_place_with_its_plan_and_folders(tmp_path):
    engine = ScriptEngine(WRITES_STATUS)

    status, files = run(engine, tmp_path)

    assert status == files.status() == Status("completed")
    assert json.loads(files.plan.read_text()) == write(replace(PLAN, network=replace(PLAN.network, topology="added")))
    assert [folder.is_dir() for folder in (files.records, files.captures, files.logs)] == [True] * 3
    assert list(files.logs.iterdir()) == []
    assert [path.name for path in files.path.parent.iterdir()] == ["r1"]
    assert engine.given_back == 1


@golden.each("lab without a result", "case script")
def test_a_lab_without_a_result_fails_with_what_it_said(tmp_path, case, script):
    """A kernel for which this machine lacks something says what to do."""
    status, files = run(ScriptEngine(script), tmp_path)

    case.hold(status.reason, tmp_path)
    assert files.status() == status
    assert (files.log("console").read_text() == "one\ntwo\n") == ("one" in script and "two" in script)


@pytest.mark.parametrize("then", ["while True: print('x' * 65536)", f"print('x' * (17 << 20)); {WRITES_STATUS}"])
def test_a_lab_that_floods_its_console_is_ended_and_cut(tmp_path, then):
    status, files = run(ScriptEngine(then), tmp_path)

    assert status.reason.startswith("found more than 16 MiB on the lab's console; expected less")
    assert files.status() == status
    assert files.log("console").stat().st_size == 16 << 20


def test_a_result_that_is_looked_over_and_refused_fails(tmp_path):
    status, _ = run(ScriptEngine(WRITES_STATUS, left="the guest left a pipe"), tmp_path)

    assert (status.status, status.reason) == ("failed", "the guest left a pipe")


@pytest.mark.parametrize("written", ["{", "[]", "{}", '{"status": "well"}', '{"status": 1}'])
def test_a_status_that_no_lab_writes_fails_its_cell_alone(tmp_path, written):
    """Who breaks out of a guest's kernel can write it."""
    status, files = run(ScriptEngine(f'open("out/status.json", "w").write({written!r})'), tmp_path)

    assert status == files.status() == Status("failed", status.reason)
    assert ("status.json" in status.reason, "expected" in status.reason) == (True, True)


@pytest.mark.parametrize("name", ["logs", "records", "captures", "status.json", "plan.json", "logs/console.log"])
def test_what_a_lab_leaves_in_the_place_of_something_else_costs_its_cell_alone(tmp_path, name):
    """A Mininet script, which is a stranger's, can make folders where files belong, and files where folders do."""
    makes = f'os.makedirs("out/{name}/inside")' if "." in name else f'open("out/{name}", "w").close()'
    script = f'import os; {makes}; "{name}" == "status.json" or {WRITES_STATUS}'
    status, files = run(ScriptEngine(script), tmp_path)
    assert status == files.status()
    assert (status.status, status.reason.rpartition(": ")[2]) == ("failed", name.rpartition("/")[2])
    assert "left files where folders belong, or folders where files do" in status.reason
    assert files.plan.is_file()
    assert files.log("console").is_file()


def test_a_lab_that_hangs_is_ended_at_its_limit_and_the_engine_says_what_hangs(tmp_path, monkeypatch):
    status, _ = run(ScriptEngine(WAITS_FOR_EVER), tmp_path, SHORT)
    assert status.reason == "the cell did not end within its wall limit of 0.1 s"

    monkeypatch.setattr("scpslab.engine.uml.standstill", lambda kernel: f"; process {kernel} hangs")
    monkeypatch.setattr(ScriptEngine, "hanging", lambda self, process: VirtualEngine().hanging(process))

    status, _ = run(ScriptEngine(WAITS_FOR_EVER), tmp_path, SHORT)

    assert "within its wall limit of 0.1 s; process " in status.reason


def test_a_cell_that_begins_after_an_interrupt_is_ended_and_leaves_nothing(tmp_path):
    engine = ScriptEngine(WAITS_FOR_EVER)
    engine.stop()

    with pytest.raises(Interrupted):
        run(engine, tmp_path)
    assert list(tmp_path.rglob("*r1*")) == []


def test_a_session_leaves_its_files_in_the_folder_and_gives_its_exit_code(tmp_path):
    assert ScriptEngine(WRITES_STATUS + "; raise SystemExit(7)").interact(PLAN, tmp_path, lambda _out: None) == 7
    assert CellFiles(tmp_path / "cell" / "out").has_ended


PROBE = TcpInfo(name="tcp-h1", node="h1", interval_ns=10**9)
WATCHED = replace(PLAN, cell=replace(PLAN.cell, probes=(PROBE,)))
SAMPLE = '\x1e{{"source": "tcp-h1", "t_s": {}}}\n'


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
        f"import pathlib, sys, time\nprint({SAMPLE.format(0) + begin!r}, end='', flush=True)\nwhile not "
        f"pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.01)\nprint({end!r}, end='')"
    )
    heard: list[CellSample] = []

    def hear(sample: CellSample) -> None:
        heard.append(sample)
        go_on.touch()

    ScriptEngine(script).run(CellRun(WATCHED, tmp_path / "r1", hear=hear))

    assert [sample.t_s for sample in heard] == [0, 1, 2]


class Told:
    """What an executor reports, in its order."""

    def __init__(self):
        self.reports: list[tuple[object, ...]] = []

    def started(self, cell_id):
        self.reports.append(("started", cell_id))

    def progress(self, cell_id, sample):
        self.reports.append((cell_id, sample.t_s))

    def complete(self, folder):
        """In a thread of its own: between which others is left open."""

    def ended(self, cell_id, status, _took_s):
        self.reports.append(("ended", cell_id))


def test_an_executor_tells_the_samples_of_a_cell_before_its_end(tmp_path):
    told = Told()
    engine = ScriptEngine(f"print({SAMPLE.format(1) + SAMPLE.format(2)!r}, end='')")

    LocalExecutor(1).run(engine, {"r1": CellRun(WATCHED, tmp_path / "r1")}, told)

    assert told.reports == [("started", "r1"), ("r1", 1), ("r1", 2), ("ended", "r1")]
