"""A cell's bytes do not depend on what its template did before, or on cells beside it, or on another template."""

import os
import random
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from scpslab.engine import CellRun
from scpslab.engine.memory import can_hold_forks, trouble
from scpslab.plan import Plan
from tests.lab.forks import (
    forks_of,
    is_completed,
    left_after_a_while,
    meanwhile,
    plans_of,
    prepared,
    run,
    scratch_folders,
    seen,
)
from tests.lab.ran import digests
from tests.lab.test_docker import images_can_be_had

KINDS = ("fy97", "congestion", "router", "paths", "others", "script", "serial", "np", "gateway", "policy")
# Ten seconds for every template: `make test-forks` asks for them.
DOCKER_KINDS = ("docker", "own-image")
ALL_KINDS = (*KINDS, *(DOCKER_KINDS if os.environ.get("SCPSLAB_DOCKER_FORKS") else ()))
DISK = Path("/var/tmp")
KILLS = int(os.environ.get("SCPSLAB_TEMPLATE_KILLS", "4"))


def cells_of(kind: str) -> dict[str, Plan]:
    """The cells of a kind. docker.yaml has two: nodes that are containers, and a host that is somebody's image."""
    if kind not in DOCKER_KINDS:
        return plans_of(kind)
    if not images_can_be_had():
        pytest.skip("no Docker Engine here to build the images of nodes with")
    plans = plans_of("docker")

    def is_own(plan: Plan) -> bool:
        return any(node.kind == "host" and node.stack == "image" for node in plan.network.nodes)

    return {cell_id: plan for cell_id, plan in plans.items() if is_own(plan) is (kind == "own-image")}


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_order_neighbours_and_forks_do_not_matter(tmp_path, kind):
    """In order; backwards, two at a time; shuffled after a killed cell; each alone; each in a guest booted for it."""
    plans = cells_of(kind)
    with prepared(plans) as engine:
        statuses = run(engine, plans, tmp_path / "in-order")
    assert is_completed(statuses, plans), statuses
    with prepared(plans) as engine:
        run(engine, dict(reversed(plans.items())), tmp_path / "backwards", jobs=2)
    with prepared(plans) as engine:
        shuffled = random.Random(kind).sample(sorted(plans), len(plans))
        victim = {"victim": plans[shuffled[0]]}
        with meanwhile(engine, victim, tmp_path / "victim", jobs=1) as statuses:
            seen(lambda: forks_of(engine)).kill()
        assert "killed by SIGKILL" in statuses["victim"]
        run(engine, {cell_id: plans[cell_id] for cell_id in shuffled}, tmp_path / "shuffled")
    for cell_id, plan in plans.items():
        with prepared(plans) as engine:
            statuses = run(engine, {cell_id: plan}, tmp_path / "alone")
        assert statuses[cell_id] == "completed", statuses
    with prepared(plans, snapshots=False) as engine:
        run(engine, plans, tmp_path / "booted", jobs=2)
        assert engine.templates() == []
    expected = digests(tmp_path / "in-order")

    assert any("/records/" in name for name in expected)
    for way in ("backwards", "shuffled", "alone", "booted"):
        assert digests(tmp_path / way) == expected, way
    assert sorted(path.name for path in (tmp_path / "backwards").iterdir()) == sorted(plans)


def memory_of(place: str, tmp_path: Path) -> Path:
    """A folder for the guests' memory: of the tests' files, or on a disk (docs/platforms.md)."""
    if place == "disk" and (trouble(DISK) or not can_hold_forks(DISK)):
        pytest.skip(f"no fork can keep its memory in {DISK}")
    return Path(tempfile.mkdtemp(dir=DISK if place == "disk" else tmp_path))


@pytest.mark.parametrize(("place", "holds_forks"), [("files", True), ("files", False), ("disk", True)])
def test_the_folder_of_the_guests_memory_does_not_matter(tmp_path, monkeypatch, undisturbed, place, holds_forks):
    """Also where no file can be without a name, as on overlays, and no fork keeps its memory. Nothing is left."""
    plans = dict(list(undisturbed.plans.items())[:2])
    memory = memory_of(place, tmp_path)
    monkeypatch.setenv("SCPSLAB_MEMORY", str(memory))
    if not holds_forks:
        monkeypatch.setattr("scpslab.engine.virtual.can_hold_forks", lambda _: False)
    with prepared(plans) as engine:
        assert is_completed(statuses := run(engine, plans, tmp_path / "cells"), plans), statuses
        assert bool(engine.templates()) == bool(list(memory.iterdir())) == holds_forks
    assert list(memory.iterdir()) == []
    memory.rmdir()
    assert digests(tmp_path / "cells") == {
        file: digest for file, digest in undisturbed.files.items() if file.partition("/")[0] in plans
    }


def test_a_fork_runs_on_its_own_core(tmp_path):
    """Not on its template's. (The linker took the lab kernel's function of the name: one fork in 100 ended.)"""
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        pytest.skip("this machine has one core")
    plan = next(iter(plans_of("fy97").values()))
    cores: set[frozenset[int]] = set()
    with prepared({"one": plan}) as engine:
        engine.run(CellRun(plan, tmp_path / "first", first))
        runner = threading.Thread(target=engine.run, args=(CellRun(plan, tmp_path / "second", others[-1]),))
        runner.start()
        while runner.is_alive():
            for fork in forks_of(engine):
                with suppress(ProcessLookupError):
                    cores.add(frozenset(os.sched_getaffinity(fork.pid)))
            time.sleep(0.001)
        assert len(engine.templates()) == 1

    assert frozenset({others[-1]}) in cores


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_template_that_is_killed_costs_no_cell(tmp_path, undisturbed, seed):
    """At a seeded moment, while two of its cells run: they run again from a new one, with the same bytes."""
    before = scratch_folders()
    with prepared(undisturbed.plans) as engine, meanwhile(engine, undisturbed.plans, tmp_path / "killed"):
        time.sleep(random.Random(seed).uniform(0, undisturbed.took_s))
        for template in engine.templates():
            template.kill()

    assert digests(tmp_path / "killed") == undisturbed.files
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == sorted(undisturbed.plans)
    assert scratch_folders() == before
    assert left_after_a_while(tmp_path) == {}


def test_a_network_that_cannot_be_set_up_fails_its_cell_with_the_reason(tmp_path):
    """The template says why; the next cell of the same template is tried anew."""
    plan = next(iter(plans_of("fy97").values()))
    wrong = replace(plan.network.speaking[0], sysctls={"net.ipv4.tcp_sack": "many"})
    nodes = tuple(wrong if node.name == wrong.name else node for node in plan.network.nodes)
    plans = {"one": replace(plan, network=replace(plan.network, nodes=nodes)), "two": plan}
    with prepared({"one": plan}) as engine:
        statuses = run(engine, plans, tmp_path)

    assert "tcp_sack" in statuses["one"]
    assert statuses["two"] == "completed"
    assert (tmp_path / "one" / "logs" / "lab-error.log").exists()
