"""A cell's bytes do not depend on what its template did before: alone, after others, beside others, from a new template
or after one that was killed.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scpslab.engine import CellRun
from scpslab.engine.memory import can_hold_forks, trouble
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import Plan
from tests.lab.forks import digests, is_completed, left_after_a_while, plans_of, prepared, run, scratch_folders
from tests.lab.test_docker import images_can_be_had

pytestmark = pytest.mark.lab
KINDS = ("fy97", "congestion", "router", "paths", "others", "script", "serial", "np")
# Ten seconds for every template: `make test-forks` asks for them.
DOCKER_KINDS = ("docker", "own-image")
ALL_KINDS = (*KINDS, *(DOCKER_KINDS if os.environ.get("SCPSLAB_DOCKER_FORKS") else ()))
DISK = Path("/var/tmp")
KILLS = int(os.environ.get("SCPSLAB_TEMPLATE_KILLS", "4"))


def cells_of(kind: str) -> dict[str, Plan]:
    """The cells of a kind.

    Those of docker.yaml are of two kinds: nodes that are containers, and a host that is somebody's image.
    """
    if kind not in DOCKER_KINDS:
        return plans_of(kind)
    if not images_can_be_had():
        pytest.skip("no Docker Engine here to build the images of nodes with")
    plans = plans_of("docker")
    own = {
        cell_id
        for cell_id, plan in plans.items()
        if any(node.kind == "host" and node.stack == "image" for node in plan.network.nodes)
    }
    return {cell_id: plan for cell_id, plan in plans.items() if (cell_id in own) is (kind == "own-image")}


def begin_and_kill(engine: VirtualEngine, plan: Plan, folder: Path) -> str:
    """Begins a cell and kills its fork as soon as there is one; the cell's status."""
    statuses: dict[str, Any] = {}
    runner = threading.Thread(target=lambda: statuses.update(engine.run(CellRun(plan, folder))))
    runner.start()
    while runner.is_alive():
        forks = [fork for template in engine.templates() for fork in template.running()]
        for fork in forks:
            fork.kill()
        time.sleep(0.001)
    runner.join()
    return str(statuses["status"])


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_order_neighbours_and_forks_do_not_matter(tmp_path, kind):
    """In order; backwards, two at a time; shuffled, after a cell that was killed; each alone, from a template of its
    own; each in a guest booted for it.
    """
    plans = cells_of(kind)
    with prepared(plans) as engine:
        statuses = run(engine, plans, tmp_path / "in-order")
    assert is_completed(statuses, plans), statuses
    with prepared(plans) as engine:
        run(engine, dict(reversed(plans.items())), tmp_path / "backwards", jobs=2)
    with prepared(plans) as engine:
        shuffled = random.Random(kind).sample(sorted(plans), len(plans))
        assert begin_and_kill(engine, plans[shuffled[0]], tmp_path / "victim") == "failed"
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


@pytest.mark.parametrize("holds_forks", [True, False])
def test_the_folder_of_the_guests_memory_does_not_matter(tmp_path, monkeypatch, holds_forks):
    """Another folder than /dev/shm; and one whose file system has no files without a name, as overlays of containers,
    where no fork could keep its memory.
    """
    plans = dict(list(plans_of("fy97").items())[:2])
    with prepared(plans) as engine:
        run(engine, plans, tmp_path / "usual")
    (tmp_path / "memory").mkdir()
    monkeypatch.setenv("SCPSLAB_MEMORY", str(tmp_path / "memory"))
    if not holds_forks:
        monkeypatch.setattr("scpslab.engine.virtual.can_hold_forks", lambda _: False)
    with prepared(plans) as engine:
        assert is_completed(statuses := run(engine, plans, tmp_path / "elsewhere"), plans), statuses
        assert bool(engine.templates()) == holds_forks
    assert digests(tmp_path / "elsewhere") == digests(tmp_path / "usual")


def test_a_fork_runs_on_its_own_core(tmp_path):
    """Not on its template's. (By the name of the C library's function for this the linker takes the lab kernel's own,
    which ended one fork in a hundred.)
    """
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        pytest.skip("this machine has one core")
    plan = next(iter(plans_of("fy97").values()))
    seen: set[frozenset[int]] = set()
    with prepared({"one": plan}) as engine:
        engine.run(CellRun(plan, tmp_path / "first", first))
        runner = threading.Thread(target=engine.run, args=(CellRun(plan, tmp_path / "second", others[-1]),))
        runner.start()
        while runner.is_alive():
            for fork in (fork for template in engine.templates() for fork in template.running()):
                with suppress(ProcessLookupError):
                    seen.add(frozenset(os.sched_getaffinity(fork.pid)))
            time.sleep(0.001)
        assert len(engine.templates()) == 1

    assert frozenset({others[-1]}) in seen


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_template_that_is_killed_costs_no_cell(tmp_path, undisturbed, seed):
    """At a moment drawn from a seed, while two of its cells run: they are run again from a new one, with the same
    bytes, and nothing is left.
    """
    before = scratch_folders()
    with prepared(undisturbed.plans) as engine:
        runner = threading.Thread(target=run, args=(engine, undisturbed.plans, tmp_path / "killed", 2))
        runner.start()
        time.sleep(random.Random(seed).uniform(0, undisturbed.took_s))  # a moment, no secret
        for template in engine.templates():
            template.kill()
        runner.join()

    assert digests(tmp_path / "killed") == undisturbed.files
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == sorted(undisturbed.plans)
    assert scratch_folders() == before
    assert left_after_a_while(tmp_path) == {}


def test_memory_on_a_disk_gives_the_same_bytes(tmp_path, monkeypatch, undisturbed):
    """In /var/tmp, as where nothing can run from /dev/shm (docs/platforms.md)."""
    if trouble(DISK) or not can_hold_forks(DISK):
        pytest.skip(f"no fork can keep its memory in {DISK}")
    name = next(iter(undisturbed.plans))
    plans = {name: undisturbed.plans[name]}
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        monkeypatch.setenv("SCPSLAB_MEMORY", folder)
        with prepared(plans) as engine:
            statuses = run(engine, plans, tmp_path)
            assert list(Path(folder).iterdir()) != []
        assert list(Path(folder).iterdir()) == []

    assert is_completed(statuses, plans), statuses
    assert digests(tmp_path) == {
        file: digest for file, digest in undisturbed.files.items() if file.startswith(f"{name}/")
    }


def test_a_network_that_cannot_be_set_up_fails_its_cell_with_the_reason(tmp_path):
    """The template says why; the next cell of the same template is tried anew."""
    plan = next(iter(plans_of("fy97").values()))
    node = plan.network.speaking[0]
    broken = replace(
        plan,
        network=replace(
            plan.network,
            nodes=tuple(
                replace(one, sysctls={"net.ipv4.tcp_sack": "many"}) if one == node else one
                for one in plan.network.nodes
            ),
        ),
    )
    with prepared({"one": plan}) as engine:
        statuses = run(engine, {"one": broken, "two": plan}, tmp_path)

    assert "tcp_sack" in statuses["one"]
    assert statuses["two"] == "completed"
    assert (tmp_path / "one" / "logs" / "lab-error.log").exists()


def test_a_cell_that_is_killed_fails_alone(tmp_path):
    """Another one that runs beside it from the same template ends well."""
    plan = next(iter(plans_of("fy97").values()))
    with prepared({"one": plan}) as engine:
        engine.run(CellRun(plan, tmp_path / "warm"))
        statuses: dict[str, dict[str, Any]] = {}
        threads = [
            threading.Thread(
                target=lambda name=name: statuses.update({name: engine.run(CellRun(plan, tmp_path / name))})
            )
            for name in ("one", "two")
        ]
        for thread in threads:
            thread.start()
        (template,) = engine.templates()
        while not template.running() and threads[0].is_alive():
            time.sleep(0.001)
        template.running()[0].kill()
        for thread in threads:
            thread.join()

    assert sorted(status["status"] for status in statuses.values()) == ["completed", "failed"]
    failed = next(status for status in statuses.values() if status["status"] == "failed")
    assert "killed by SIGKILL" in failed["reason"]
