"""One virtual engine for all lab tests, and plans for a link alone: real kernel, virtual time, no root."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import FORMAT, Plan, read, schema
from scpslab.plan.cell import CellPlan, Limits
from scpslab.setup import silent
from tests.lab import forks
from tests.lab.ran import Cell, Lab, digests, run_plan
from tests.networks import network_of

ERRORS = {
    "model": "none",
    "action": "drop",
    "settings": {},
    "seed": "5c" * 32,
    "vector_errors": 65536,
    "drop_packets": [],
    "drop_min_bytes": 0,
    "outages": [],
}
START = {"start_ns": 10**9, "required": True}
HOP = {"from": "h1", "to": "h2", "to_ip": "10.0.0.2"}
CELL = CellPlan(
    id="test",
    scenario="test",
    axes={},
    repeat=1,
    kernel_seed="0d" * 32,
    limits=Limits(virtual_s=3600, wall_s=120),
    packets=True,
)


@pytest.fixture(scope="session")
def engine() -> Iterator[VirtualEngine]:
    """The engine, prepared once."""
    engine = VirtualEngine()
    engine.prepare(silent, [Plan(network=network_of("point_to_point"), cell=CELL)])
    yield engine
    engine.close()


@pytest.fixture
def run(tmp_path: Path) -> Lab:
    """Runs scenarios of one test."""
    return Lab(tmp_path)


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Runs scenarios that the tests of a file share."""
    return Lab(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> forks.Undisturbed:
    """Four cells of one template of the FY97 network."""
    folder = tmp_path_factory.mktemp("undisturbed")
    plans = forks.cells_like(next(iter(forks.plans_of("fy97").values())), 4)
    with forks.prepared(plans) as engine:
        started = time.monotonic()
        assert forks.is_completed(statuses := forks.run(engine, plans, folder, jobs=2), plans), statuses
        took_s = time.monotonic() - started
    return forks.Undisturbed(plans, digests(folder), took_s)


def datagrams(rate_bps: int, seconds: int, packet_bytes: int, name: str = "datagrams", port: int = 5002) -> Any:
    """A workload: datagrams at a constant rate."""
    rates = {"max_rate_bps": rate_bps, "rates_bps": [rate_bps], "redraw_ns": seconds * 10**9}
    return {"name": name, "kind": "background", "packet_bytes": packet_bytes, "port": port} | rates | START | HOP


def capture(node: str, interface: str = "") -> dict[str, Any]:
    """A probe: everything on an interface of a host, that to the hop if none is named."""
    whole = {"snaplen_bytes": 96, "filter": ""}
    return {"name": node, "kind": "capture", "node": node, "interface": interface or f"{node}-hop"} | whole


def typed(command: str, t_ns: int = 10**9, timeout_ns: int = 60 * 10**9) -> dict[str, Any]:
    """An event: a command on h1 that must do its work."""
    step = {"t_ns": t_ns, "do": "run", "node": "h1", "command": command, "timeout_ns": timeout_ns}
    return step | {"required": True, "expect": 0}


@pytest.fixture
def run_link(engine: VirtualEngine, tmp_path: Path) -> Callable[..., Cell]:
    """Runs workloads over the hop of point_to_point with probes; other arguments change its data direction or network."""

    def run(
        workloads: list[dict[str, Any]],
        *probes: dict[str, Any],
        errors: dict[str, Any] | None = None,
        queue: dict[str, Any] | None = None,
        data: dict[str, Any] | None = None,
        disorder: dict[str, Any] | None = None,
        events: list[dict[str, Any]] | None = None,
        services: list[dict[str, Any]] | None = None,
        **given: str,
    ) -> Cell:
        network = schema.write(network_of("point_to_point", **given))
        directions = network["links"][0]["directions"]
        directions[0] |= data or {}
        if queue:
            directions[0]["queue"] |= queue
        impairments = [{"link": "hop", "direction": way["name"], "errors": ERRORS} for way in directions]
        impairments[0] |= {"errors": ERRORS | (errors or {})} | (disorder or {})
        cell = {"workloads": workloads, "probes": list(probes), "impairments": impairments}
        cell |= {"events": events or [], "services": services or []}
        return run_network(engine, tmp_path, network, cell)

    return run


def run_network(engine: VirtualEngine, tmp_path: Path, network: dict[str, Any], cell: dict[str, Any]) -> Cell:
    """Runs what a cell says beside the settings of CELL on a network, both as JSON has them."""
    plan = read({"format": FORMAT, "network": network, "cell": {**schema.write(CELL), **cell}})
    return run_plan(engine, plan, tmp_path / f"cell-{len(list(tmp_path.iterdir()))}")


@pytest.fixture(autouse=True)
def results_of_this_test_only(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keeps the user's cache of results out of tests, and tests out of it."""
    folder = tmp_path_factory.mktemp("results")
    monkeypatch.setattr("scpslab.runs.store.cache_dir", lambda: folder)


@pytest.fixture
def little_memory(tmp_path, monkeypatch) -> Iterator[Callable[[int], Path]]:
    """A folder in memory with as many MiB as a test says, in place of /dev/shm."""
    if os.geteuid():
        pytest.skip("only root can mount a folder of its own")
    folder = tmp_path / "memory"
    folder.mkdir()

    def resize(mib: int) -> Path:
        if not os.path.ismount(folder):
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", folder], check=True)
        subprocess.run(["mount", "-o", f"remount,size={mib}m", folder], check=True)
        return folder

    monkeypatch.setenv("SCPSLAB_MEMORY", str(folder))
    yield resize
    if os.path.ismount(folder):
        subprocess.run(["umount", folder], check=True)
