"""Forks and templates that end or hang, and no memory: a cell fails with its logs or is run again, the others go on."""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from scpslab.engine import template as templates
from scpslab.plan import Plan
from scpslab.plan.cell import LONGEST_S
from scpslab.plan.events import RunStep
from tests.lab.forks import (
    forks_of,
    is_completed,
    left_after_a_while,
    meanwhile,
    prepared,
    run,
    scratch_folders,
    seen,
)
from tests.lab.ran import digests

KILLS = int(os.environ.get("SCPSLAB_FORK_KILLS", "4"))
SHORT_S = 5


@pytest.fixture
def plans(undisturbed) -> dict[str, Plan]:
    """Four cells of one template."""
    return dict(undisturbed.plans)


@pytest.fixture
def cells(tmp_path) -> Iterator[Path]:
    """The cells' folder; after the engine there is nothing else: no process, no scratch folder, no memory."""
    folder = tmp_path / "cells"
    folder.mkdir()
    before = scratch_folders()
    yield folder
    assert left_after_a_while(tmp_path) == {}
    assert [
        path.name for path in folder.iterdir() if path.name.startswith("scpslab-") or path.name.endswith(".part")
    ] == []
    assert scratch_folders() == before


def limited(plan: Plan, wall_s: int) -> Plan:
    """A plan with another limit of real time."""
    return replace(plan, cell=replace(plan.cell, limits=replace(plan.cell.limits, wall_s=wall_s)))


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_fork_that_is_killed_fails_alone(cells, plans, undisturbed, seed):
    """At a moment drawn from a seed, by somebody else's signal: the others have the bytes of an undisturbed run."""
    expected, took_s = undisturbed.files, undisturbed.took_s
    with prepared(plans) as engine:
        with meanwhile(engine, plans, cells) as statuses:
            time.sleep(random.Random(seed).uniform(0, 0.8) * took_s)
            # All may have ended by then.
            with suppress(TimeoutError, ProcessLookupError):
                os.kill(seen(lambda: forks_of(engine), took_s).pid, signal.SIGKILL)
        assert len(engine.templates()) == 1
    failed = [name for name, status in statuses.items() if status != "completed"]
    # One that was killed when its status had been written has its result.
    assert len(failed) <= 1
    assert all(
        "killed by SIGKILL" in statuses[name] and (cells / name / "logs" / "console.log").exists() for name in failed
    )
    completed = [name for name in plans if name not in failed]
    assert digests(cells, completed) == {
        name: digest for name, digest in expected.items() if name.split("/")[0] in completed
    }


def test_a_fork_that_is_stopped_ends_at_its_limit(cells, plans):
    """With its logs; the cells beside it and after it go on, from the same template."""
    plans["c1"] = limited(plans["c1"], SHORT_S)
    with prepared(plans) as engine:
        assert is_completed(run(engine, {"c0": plans["c0"]}, cells), ["c0"])
        with meanwhile(engine, {"c1": plans["c1"]}, cells) as stopped:
            os.kill(seen(lambda: forks_of(engine)).pid, signal.SIGSTOP)
            assert is_completed(run(engine, {name: plans[name] for name in ("c2", "c3")}, cells), ["c2", "c3"])
        assert len(engine.templates()) == 1
    assert stopped["c1"].startswith(f"failed the cell did not end within its wall limit of {SHORT_S} s")
    assert (cells / "c1" / "logs" / "console.log").exists()


def test_a_guest_that_computes_for_ever_ends_at_its_limit(cells, plans):
    """It lets no virtual time pass; the message names the program, and cells of the same template go on."""
    events = (RunStep(t_ns=0, node="ws1", command="true", required=True, timeout_ns=10**9),)
    plans = {name: replace(plan, cell=replace(plan.cell, events=events)) for name, plan in plans.items()}
    busy = replace(events[0], command="while :; do :; done")
    plans["c1"] = limited(replace(plans["c1"], cell=replace(plans["c1"].cell, events=(busy,))), SHORT_S)
    with prepared(plans) as engine:
        statuses = run(engine, plans, cells)
        assert len(engine.templates()) == 1
    assert f"wall limit of {SHORT_S} s; virtual time stood still, because" in statuses.pop("c1")
    assert is_completed(statuses, ["c0", "c2", "c3"])
    assert (cells / "c1" / "logs" / "console.log").exists()


def test_a_template_that_is_stopped_is_replaced(cells, plans, undisturbed, monkeypatch):
    """Its cells are run again from a new one."""
    monkeypatch.setattr(templates, "ANSWER_LIMIT_S", 2.0)
    with prepared(plans) as engine:
        run(engine, {"c0": plans["c0"]}, cells)
        (first,) = engine.templates()
        os.kill(first.pid, signal.SIGSTOP)
        statuses = run(engine, plans, cells, jobs=2)
        (second,) = engine.templates()
    assert is_completed(statuses, plans), statuses
    assert second.pid != first.pid
    assert digests(cells) == undisturbed.files


def test_a_template_that_hangs_before_its_network_is_up_fails_its_cell(cells, plans):
    """At the cell's limit; the next cell gets another one."""
    plans = {"c0": limited(plans["c0"], SHORT_S), "c1": plans["c1"]}
    with prepared(plans) as engine:
        with meanwhile(engine, {"c0": plans["c0"]}, cells) as statuses:
            os.kill(seen(lambda: [one for one in engine.templates() if one.pid]).pid, signal.SIGSTOP)
        after = run(engine, {"c1": plans["c1"]}, cells)
    assert f"failed the wall limit of {SHORT_S} s came before the network was up" in statuses["c0"]
    assert is_completed(after, ["c1"])


@pytest.mark.parametrize("mib", [30, 120, 180], ids=["for a template", "for a fork", "for what a fork uses"])
def test_memory_that_runs_out_fails_the_cell_and_no_other(cells, plans, little_memory, mib):
    """The message says what to do; when there is room again the next cells run, and nothing is left in the folder."""
    folder = little_memory(mib)
    with prepared(plans) as engine:
        first = run(engine, {"c0": plans["c0"]}, cells)
        little_memory(1000)
        after = run(engine, {name: plans[name] for name in ("c1", "c2", "c3")}, cells, jobs=2)
    if mib < 150:
        assert first["c0"].startswith("failed"), first
    assert first["c0"] == "completed" or "set SCPSLAB_MEMORY to a larger folder" in first["c0"]
    assert is_completed(after, ["c1", "c2", "c3"]), after
    assert list(folder.iterdir()) == []


def test_the_longest_wall_limit_that_a_plan_may_have_can_be_waited_for(cells, plans):
    with prepared(plans) as engine:
        assert is_completed(run(engine, {"c0": limited(plans["c0"], LONGEST_S)}, cells), ["c0"])


def test_where_the_cache_has_no_room_for_templates_they_are_beside_their_cells(cells, plans, tmp_path):
    """A file is in the way of their folder."""
    (tmp_path / "file").write_text("")
    with prepared(plans) as engine:
        engine._forked.place = tmp_path / "file"
        assert is_completed(run(engine, {"c0": plans["c0"]}, cells), ["c0"])
        assert len(list(cells.glob("scpslab-*/home"))) == 1
