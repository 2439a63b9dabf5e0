"""Cells in a machine of QEMU's have the bytes of those on this machine itself; a machine that is killed is replaced."""

import os
import shutil
import signal
import threading
import time
from contextlib import contextmanager

import pytest

from scpslab.engine import CellRun, CellSample, appliance
from scpslab.engine.appliance.machine import QEMU, Machines
from scpslab.engine.virtual import VirtualEngine
from scpslab.lab.records import Status
from tests.lab.forks import cells_like, is_completed, plans_of, prepared, run
from tests.lab.ran import digests

pytestmark = [
    pytest.mark.skipif(
        "SCPSLAB_APPLIANCE_TESTS" not in os.environ, reason="boots machines in software emulation: make test-appliance"
    ),
    pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"no {QEMU} here"),
]
# One with kernel TCP and Open vSwitch, one with the SCPS stack on a serial line, which has processes of its own.
KINDS = ("fy97", "serial")


@contextmanager
def in_appliance(plans, monkeypatch):
    """An engine whose cells run in the appliance."""
    with monkeypatch.context() as patch:
        patch.setenv(appliance.VARIABLE, appliance.EMULATED)
        with prepared(plans) as engine:
            yield engine


def machines(engine: VirtualEngine) -> Machines:
    """The machines of an engine that has run cells in some."""
    assert engine.appliance is not None
    return engine.appliance.machines


@pytest.mark.parametrize("kind", KINDS)
def test_cells_have_the_bytes_of_those_that_run_on_this_machine_itself(tmp_path, monkeypatch, kind):
    plans = dict(list(plans_of(kind).items())[:2])
    with prepared(plans) as engine:
        assert is_completed(statuses := run(engine, plans, tmp_path / "native"), plans), statuses
        hashes = {name: engine.hash(plan) for name, plan in plans.items()}

    with in_appliance(plans, monkeypatch) as engine:
        assert is_completed(statuses := run(engine, plans, tmp_path / "appliance"), plans), statuses
        assert {name: engine.hash(plan) for name, plan in plans.items()} == hashes
        assert machines(engine).processes

    assert digests(tmp_path / "appliance") == digests(tmp_path / "native")
    assert digests(tmp_path / "native")


def test_a_machine_that_is_killed_is_replaced_and_none_is_left(tmp_path, monkeypatch):
    plans = cells_like(next(iter(plans_of("fy97").values())), 2)
    with in_appliance(plans, monkeypatch) as engine:
        first, second = plans.items()
        assert engine.run(CellRun(first[1], tmp_path / first[0])).status == "completed"
        (before,) = machines(engine).processes
        statuses: list[Status] = []
        runner = threading.Thread(target=lambda: statuses.append(engine.run(CellRun(second[1], tmp_path / second[0]))))
        runner.start()
        time.sleep(0.5)
        os.kill(before, signal.SIGKILL)
        runner.join()
        (after,) = machines(engine).processes

    assert statuses[0].status == "completed"
    assert after != before
    with pytest.raises(ProcessLookupError):
        os.kill(after, 0)


def test_a_cell_that_passes_its_limit_fails_and_its_machine_takes_the_next_one(tmp_path, monkeypatch):
    plans = cells_like(next(iter(plans_of("fy97").values())), 1)
    with in_appliance(plans, monkeypatch) as engine:
        (plan,) = plans.values()
        monkeypatch.setattr("scpslab.engine.virtual.SLOWER", 0.001)
        failed = engine.run(CellRun(plan, tmp_path / "short"))
        (before,) = machines(engine).processes
        monkeypatch.setattr("scpslab.engine.virtual.SLOWER", 20)
        heard: list[CellSample] = []
        completed = engine.run(CellRun(plan, tmp_path / "long", hear=heard.append))
        (after,) = machines(engine).processes

    assert failed.status == "failed"
    assert "wall limit" in failed.reason
    assert (completed.status, after) == ("completed", before)
    assert heard
