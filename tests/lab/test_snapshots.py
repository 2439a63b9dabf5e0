"""A cell's bytes do not depend on what its template did before: alone, after others, beside others, from a new template or after one that was killed."""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scpslab import planning, scenario
from scpslab.engine import CellRun
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import Plan
from scpslab.results.capture import read_packets
from scpslab.running.executors.local import LocalExecutor

pytestmark = pytest.mark.lab
PLANS = Path(__file__).parents[1] / "same_bytes"
KINDS = ("fy97", "congestion", "router", "paths", "others", "script", "serial")
KILLS = int(os.environ.get("SCPSLAB_TEMPLATE_KILLS", "4"))
MEMORY = Path("/dev/shm")


def plans_of(kind: str) -> dict[str, Plan]:
    """The plans of a file of tests/same_bytes."""
    loaded = scenario.load(str(PLANS / f"{kind}.yaml"))
    return {cell.id: planning.plan(cell) for cell in scenario.cells(loaded)}


class Statuses(dict[str, str]):
    """What an executor reports."""

    def started(self, cell_id: str) -> None:
        """Nothing is done."""

    def ended(self, cell_id: str, status: dict[str, Any]) -> None:
        """Notes a status."""
        self[cell_id] = f"{status['status']} {status['reason']}".strip()


@contextmanager
def prepared(plans: Mapping[str, Plan], *, snapshots: bool = True) -> Iterator[VirtualEngine]:
    """An engine without templates; without `snapshots` it makes none."""
    engine = VirtualEngine()
    engine.snapshots = snapshots
    engine.prepare(print, plans.values())
    try:
        yield engine
    finally:
        engine.close()


def run(engine: VirtualEngine, plans: Mapping[str, Plan], folder: Path, jobs: int = 1) -> Statuses:
    """Runs cells in their order."""
    folder.mkdir(exist_ok=True)
    statuses = Statuses()
    LocalExecutor(jobs).run(engine, {cell_id: CellRun(plan, folder / cell_id) for cell_id, plan in plans.items()}, statuses)
    return statuses


def digests(folder: Path) -> dict[str, str]:
    """Digest of every file of the cells in a folder."""
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()}


def is_completed(statuses: Statuses, plans: Mapping[str, Plan]) -> bool:
    return dict(statuses) == dict.fromkeys(plans, "completed")


@pytest.mark.parametrize("kind", KINDS)
def test_order_neighbours_and_forks_do_not_matter(tmp_path, kind):
    """In order; then backwards, two at a time; then each alone, from a template of its own; then each in a guest that was booted for it."""
    plans = plans_of(kind)
    with prepared(plans) as engine:
        statuses = run(engine, plans, tmp_path / "in-order")
    assert is_completed(statuses, plans), statuses
    with prepared(plans) as engine:
        run(engine, dict(reversed(plans.items())), tmp_path / "backwards", jobs=2)
    for cell_id, plan in plans.items():
        with prepared(plans) as engine:
            statuses = run(engine, {cell_id: plan}, tmp_path / "alone")
        assert statuses[cell_id] == "completed", statuses
    with prepared(plans, snapshots=False) as engine:
        run(engine, plans, tmp_path / "booted", jobs=2)
        assert engine.templates() == []
    expected = digests(tmp_path / "in-order")

    assert any(name.endswith(".pcap") for name in expected)
    assert digests(tmp_path / "backwards") == expected
    assert digests(tmp_path / "alone") == expected
    assert digests(tmp_path / "booted") == expected
    assert sorted(path.name for path in (tmp_path / "backwards").iterdir()) == sorted(plans)


def test_a_fork_runs_on_its_own_core(tmp_path):
    """Not on its template's. (By the name of the C library's function for this the linker takes the lab kernel's own, which ended one fork in a hundred.)"""
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


def test_random_numbers_after_the_fork_are_the_cell_s(tmp_path):
    """Two cells that differ in the seed alone have other first sequence numbers; the same cell twice has the same."""
    plan = next(iter(plans_of("fy97").values()))
    other = replace(plan, cell=replace(plan.cell, kernel_seed="17" * 32))
    with prepared({"one": plan}) as engine:
        statuses = run(engine, {"one": plan, "other": other, "again": plan}, tmp_path)
        assert set(statuses.values()) == {"completed"}, statuses
        assert len(engine.templates()) == 1
    first = {name: read_packets(tmp_path / name / "captures" / "ws2.pcap") for name in ("one", "other", "again")}
    numbers = {name: int(packets.seq[0]) for name, packets in first.items()}

    assert numbers["one"] == numbers["again"] != numbers["other"]


def scratch_folders() -> set[Path]:
    """This process's folders in memory: engines of other tests keep theirs."""
    return set(MEMORY.glob(f"scpslab-{os.getpid()}-*"))


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_template_that_is_killed_costs_no_cell(tmp_path, seed):
    """At a moment drawn from a seed, while two of its cells run: they are run again from a new one, with the same bytes, and nothing is left."""
    before = scratch_folders()
    plan = next(iter(plans_of("fy97").values()))
    plans = {f"c{number}": replace(plan, cell=replace(plan.cell, kernel_seed=f"{number:02x}" * 32)) for number in range(4)}
    with prepared(plans) as engine:
        started = time.monotonic()
        statuses = run(engine, plans, tmp_path / "undisturbed", jobs=2)
        took_s = time.monotonic() - started
    assert is_completed(statuses, plans), statuses
    with prepared(plans) as engine:
        runner = threading.Thread(target=run, args=(engine, plans, tmp_path / "killed", 2))
        runner.start()
        time.sleep(random.Random(seed).uniform(0, took_s))  # a moment, no secret
        for template in engine.templates():
            template.kill()
        runner.join()

    assert digests(tmp_path / "killed") == digests(tmp_path / "undisturbed")
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == sorted(plans)
    assert scratch_folders() == before


def test_a_network_that_cannot_be_set_up_fails_its_cell_with_the_reason(tmp_path):
    """The template says why; the next cell of the same template is tried anew."""
    plan = next(iter(plans_of("fy97").values()))
    node = plan.speaking[0]
    broken = replace(plan, nodes=tuple(replace(one, sysctls={"net.ipv4.tcp_sack": "many"}) if one == node else one for one in plan.nodes))
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
        threads = [threading.Thread(target=lambda name=name: statuses.update({name: engine.run(CellRun(plan, tmp_path / name))})) for name in ("one", "two")]
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
