"""One virtual engine for all lab tests, and plans for a link alone: real kernel, virtual time, no root."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scpslab.analysis.capture import read_packets
from scpslab.engine import CellRun
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import FORMAT, Plan, read, schema
from scpslab.plan.cell import CellPlan, Limits
from scpslab.plan.network import NetworkPlan
from scpslab.plan.topology import catalogue
from scpslab.running import RunOptions, run_scenario
from scpslab.running.runner import RunResult
from scpslab.setup import silent
from tests.lab import forks

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


CELL = CellPlan(
    id="test", scenario="test", axes={}, repeat=1, kernel_seed="0d" * 32, limits=Limits(virtual_s=3600, wall_s=120)
)


def point_to_point(**parameters: str) -> NetworkPlan:
    """The network of two hosts and a hop."""
    module = catalogue.module("point_to_point")
    return module.describe(module.PARAMETERS.read(parameters)).plan()


@pytest.fixture(scope="session")
def engine() -> Iterator[VirtualEngine]:
    """The engine, prepared once."""
    engine = VirtualEngine()
    engine.prepare(silent, [Plan(network=point_to_point(), cell=CELL)])
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> forks.Undisturbed:
    """Four cells of one template of the FY97 network."""
    folder = tmp_path_factory.mktemp("undisturbed")
    plans = forks.cells_like(next(iter(forks.plans_of("fy97").values())), 4)
    with forks.prepared(plans) as engine:
        started = time.monotonic()
        assert forks.is_completed(statuses := forks.run(engine, plans, folder, jobs=2), plans), statuses
        took_s = time.monotonic() - started
    return forks.Undisturbed(plans, forks.digests(folder), took_s)


def run_text(folder: Path, text: str, out: str = "runs") -> RunResult:
    """Runs the cells of a scenario's text one after the other, without the cache; the run's folder is in `folder /
    out`.
    """
    (path := folder / "scenario.yaml").write_text(text)
    return run_scenario(str(path), RunOptions(out=folder / out, jobs=1, use_cache=False))


@dataclass(frozen=True)
class Outcome:
    """What a cell left."""

    folder: Path
    status: dict[str, Any]

    def account(self, direction: str) -> dict[str, Any]:
        """The account of a direction of the hop."""
        lines = [json.loads(line) for line in (self.folder / "records" / "accounting.jsonl").read_text().splitlines()]
        return next(line for line in lines if line["link"] == "hop" and line["direction"] == direction)

    def records(self, name: str) -> list[dict[str, Any]]:
        """The lines of a record."""
        return [json.loads(line) for line in (self.folder / "records" / f"{name}.jsonl").read_text().splitlines()]

    def packets(self, name: str) -> Any:
        """The packets of a capture."""
        return read_packets(self.folder / "captures" / f"{name}.pcap")

    def arrival_s(self, name: str) -> Any:
        """Times of a capture's packets since the epoch, s."""
        return (self.packets(name).t_ns - self.status["epoch_realtime_ns"]) / 1e9


def datagrams(rate_bps: int, seconds: int, packet_bytes: int, name: str = "datagrams") -> dict[str, Any]:
    """A workload: datagrams at a constant rate."""
    common = {
        "name": name,
        "kind": "congestion",
        "from": "h1",
        "to": "h2",
        "to_ip": "10.0.0.2",
        "start_ns": 10**9,
        "required": True,
    }
    return common | {
        "max_rate_bps": rate_bps,
        "redraw_ns": seconds * 10**9,
        "packet_bytes": packet_bytes,
        "rates_bps": [rate_bps],
        "port": 5002,
    }


def capture(node: str) -> dict[str, Any]:
    """A probe: everything on a host's interface to the hop."""
    return {
        "name": node,
        "kind": "capture",
        "node": node,
        "interface": f"{node}-hop",
        "snaplen_bytes": 96,
        "filter": "",
    }


@pytest.fixture
def run_link(engine: VirtualEngine, tmp_path: Path) -> Callable[..., Outcome]:
    """Runs workloads over the hop of point_to_point; `change(data, ack)` alters the planned directions, and their
    `errors` and `disorder`.
    """

    def run(
        workloads: list[dict[str, Any]],
        probes: tuple[dict[str, Any], ...] = (),
        change: Callable[[dict[str, Any], dict[str, Any]], None] = lambda data, ack: None,
        **parameters: str,
    ) -> Outcome:
        network = schema.write(point_to_point(**parameters))
        data, ack = network["links"][0]["directions"]
        data["errors"], ack["errors"] = dict(ERRORS), dict(ERRORS)
        change(data, ack)
        impairments = [
            impairment("hop", direction, direction.pop("errors"), direction.pop("disorder", {}))
            for direction in (data, ack)
        ]
        return run_network(
            engine, tmp_path, network, {"workloads": workloads, "probes": list(probes), "impairments": impairments}
        )

    return run


def impairment(
    link: str, direction: dict[str, Any], errors: dict[str, Any], disorder: dict[str, Any]
) -> dict[str, Any]:
    """What goes wrong in a direction; `disorder` has jitter_ns, which is the network's, duplicate and seed."""
    direction["jitter_ns"] = disorder.get("jitter_ns", 0)
    return {"link": link, "direction": direction["name"], "errors": errors} | {
        key: disorder[key] for key in ("duplicate", "seed") if key in disorder
    }


def run_network(engine: VirtualEngine, tmp_path: Path, network: dict[str, Any], cell: dict[str, Any]) -> Outcome:
    """Runs what a cell says beside the settings of CELL on a network, both as JSON has them."""
    plan = read({"format": FORMAT, "network": network, "cell": {**schema.write(CELL), **cell}})
    folder = tmp_path / f"cell-{len(list(tmp_path.iterdir()))}"
    return Outcome(folder, engine.run(CellRun(plan, folder)))


@pytest.fixture(autouse=True)
def results_of_this_test_only(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keeps the user's cache of results out of tests, and tests out of it."""
    folder = tmp_path_factory.mktemp("results")
    monkeypatch.setattr("scpslab.runs.store.cache_dir", lambda: folder)
