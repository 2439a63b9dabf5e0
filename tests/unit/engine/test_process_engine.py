"""What all engines whose lab is a process do alike: a cell's folder before and after, its limit, an interrupt, a
session at the terminal.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest

from scpslab.core.errors import UsageError
from scpslab.engine import CellRun
from scpslab.engine.base import Interrupted
from scpslab.engine.process import ProcessEngine
from scpslab.engine.uml import no_network
from scpslab.engine.virtual import VirtualEngine
from scpslab.lab.records import Status
from scpslab.plan import write
from scpslab.runs import CellFiles

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


def test_a_lab_without_a_result_fails_with_what_it_said(tmp_path):
    status, files = run(ScriptEngine("print('one'); print('two')"), tmp_path)

    assert status.reason == "the script ended without a result: one | two"
    assert files.status() == status
    assert files.log("console").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("says", "advice"),
    [
        (
            "Bus error - the host /dev/shm or /tmp mount likely just ran out of space",
            "set SCPSLAB_MEMORY to a larger folder; scpslab doctor shows how",
        ),
        (
            "check_ptrace : expected SIGSTOP, got status = 9",
            "ptrace is forbidden here; scpslab doctor shows what to do",
        ),
    ],
)
def test_a_kernel_for_which_this_machine_lacks_something_says_what_to_do(tmp_path, says, advice):
    status, _ = run(ScriptEngine(f"print({says!r})"), tmp_path)

    assert says in status.reason
    assert status.reason.endswith(advice)


def test_a_lab_that_was_killed_says_by_which_signal(tmp_path):
    status, _ = run(ScriptEngine("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), tmp_path)

    assert status.reason == "the script, killed by SIGKILL, ended without a result: nothing on its console"


@pytest.mark.parametrize("then", ["while True: print('x' * 65536)", f"print('x' * (17 << 20)); {WRITES_STATUS}"])
def test_a_lab_that_floods_its_console_is_ended_and_cut(tmp_path, then):
    status, files = run(ScriptEngine(then), tmp_path)

    assert status.reason.startswith("found more than 16 MiB on the lab's console; expected less")
    assert files.status() == status
    assert files.log("console").stat().st_size == 16 << 20


def test_a_result_that_is_looked_over_and_refused_fails(tmp_path):
    status, _ = run(ScriptEngine(WRITES_STATUS, left="the guest left a pipe"), tmp_path)

    assert (status.status, status.reason) == ("failed", "the guest left a pipe")


def test_a_lab_that_hangs_is_ended_at_its_limit(tmp_path):
    status, _ = run(ScriptEngine(WAITS_FOR_EVER), tmp_path, SHORT)

    assert status.reason == "the cell did not end within its wall limit of 0.1 s"


def test_an_engine_says_what_hangs_at_the_limit(tmp_path, monkeypatch):
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


def test_nobody_can_be_in_a_lab_in_virtual_time(tmp_path):
    with pytest.raises(
        UsageError, match="engine virtual: found an engine without a prompt; expected an engine on the wall clock"
    ):
        VirtualEngine().interact(PLAN, tmp_path, lambda _out: None)
