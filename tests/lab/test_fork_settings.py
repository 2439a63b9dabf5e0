"""What a cell has of its own is set after the fork: tc, ip, ss, sysctl and maps agree with a guest of its own."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from scpslab.engine.base import LabProcess
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.terminal import SessionConsole
from scpslab.engine.uml import UmlEngine
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import Plan
from scpslab.setup import silent
from tests.lab.forks import is_completed, plans_of_file, run
from tests.lab.ran import whole

READER = Path(__file__).parent / "in_guest" / "read_back.py"
FY97 = """
topology: fy97
hosts: {ws1: {preset: modern}, ws2: {preset: modern}}
links:
  hop:
    return: {rate: 2 Mbit/s}
    forward:
      {rate: 2 Mbit/s, jitter: 1 ms, queue: {discipline: drop-tail, limit: 20 kB}, errors: {model: independent, ber: 1e-5}}
workloads:
  - {kind: bulk, name: transfer, from: ws1, to: ws2, size: 20 kB, segment: 512 B, timeout: 100 s}
limits: {lab_time: 200 s, wall_time: 200 s}
seed: 3
"""
SERIAL = """
topology: sgls
links: {serial: {forward: {errors: {model: independent, ber: 1e-6}}}}
hosts: {satellite: {preset: linux-2.0}, ground: {preset: linux-2.0}}
workloads:
  - {kind: ftp, name: transfer, from: satellite, to: ground, size: 5 kB, timeout: 600 s}
limits: {lab_time: 1000 s, wall_time: 200 s}
seed: 3
"""
WHEN_ASKED_FOR = pytest.mark.skipif("SCPSLAB_FORK_SETTINGS" not in os.environ, reason="minutes: make test-forks")
ERRORS = "links.hop.forward.errors"
TABLE = [{"at": "0 s", "delay": "100 ms"}, {"at": "1 s", "delay": "50 ms"}]
# A setting, and the part of the state in which it must be seen; "" where the network is the same with and without it.
CELLS = {
    "bit error rate": ({f"{ERRORS}.ber": 2e-5}, "maps"),
    "clustered errors": ({ERRORS: {"model": "clustered", "ber": 1e-5}}, "maps"),
    "bursts": (
        {
            ERRORS: {
                "model": "gilbert-elliott",
                "good_to_bad_per_bit": 2e-6,
                "bad_to_good_per_bit": 1e-3,
                "ber_bad": 1e-2,
            }
        },
        "maps",
    ),
    "vector of a file": ({ERRORS: {"model": "vector-file", "file": "gaps.txt"}}, "maps"),
    "no errors": ({ERRORS: {"model": "none"}}, "maps"),
    "flipped bits": ({f"{ERRORS}.action": "flip"}, "maps"),
    "drop list": ({f"{ERRORS}.drop_packets": [4]}, "maps"),
    "drop list's length": ({f"{ERRORS}.drop_min_bytes": "500 B"}, "maps"),
    "outage": ({f"{ERRORS}.outages": [{"from": "1 s", "to": "2 s"}]}, "maps"),
    "duplicates": ({"links.hop.forward.duplicate": 0.02}, "maps"),
    "seed": ({"seed": 4}, "kernel"),  # of the jitter
    "workload": ({"workloads.transfer.size": "30 kB"}, ""),
    "another workload": ({"workloads": [{"kind": "ping", "name": "ping", "from": "ws1", "to": "ws2", "count": 2}]}, ""),
    "probes": (
        {"probes": [{"kind": "capture", "node": "ws2"}, {"kind": "tcp_info", "node": "ws1", "interval": "50 ms"}]},
        "",
    ),
    "limits": ({"limits.lab_time": "300 s", "limits.wall_time": "150 s"}, ""),
}
NETWORKS = {
    "rate": ({"links.hop.forward.rate": "1 Mbit/s"}, "kernel"),
    "delay": ({"links.hop.forward.delay": "100 ms"}, "kernel"),
    "delay table": ({"links.hop.forward": {"delay_table": TABLE}}, "kernel"),
    "jitter": ({"links.hop.forward.jitter": "2 ms"}, "kernel"),
    "queue limit": ({"links.hop.forward.queue.limit": "5 kB"}, "maps"),
    "red": ({"links.hop.forward": {"queue": {"discipline": "red", "limit": "20 kB", "ecn": True}}}, "kernel"),
    "codel": (
        {"links.hop.forward": {"queue": {"discipline": "codel", "limit": "20 kB", "codel_target": "50 ms"}}},
        "kernel",
    ),
    "overhead": ({"links.hop.forward.overhead": "30 B"}, "kernel"),
    "route's options": ({"hosts.ws1.initial_window": 3, "hosts.ws1.rto_min": "300 ms"}, "kernel"),
    "congestion control": ({"hosts.ws1.congestion_control": "vegas"}, "kernel"),
    "sysctl": ({"hosts.ws1.sack": False}, "kernel"),
    "preset": ({"hosts.ws2.preset": "linux-2.0"}, "kernel"),
    "script": ({"events": [{"at": "1 s", "link": "hop", "direction": "forward", "ber": 1e-6}]}, "maps"),
    "verdicts": ({"probes": [{"kind": "losses", "link": "hop", "direction": "forward"}]}, "maps"),
}
LINES = {
    "bit error rate": ({"links.serial.forward.errors.ber": 1e-5}, "serial"),
    "outage": ({"links.serial.forward.errors": {"model": "none", "outages": [{"from": "1 s", "to": "2 s"}]}}, "serial"),
}


class FreshEngine(VirtualEngine):
    """Boots a guest for a cell that has no template: it sets up the cell's own network."""

    def lab(
        self, folder: CellFolder, core: int | None = None, console: SessionConsole | None = None
    ) -> AbstractContextManager[LabProcess]:
        """As engine `live` has it."""
        return UmlEngine.lab(self, folder, core, console)


@contextmanager
def reading(
    plans: dict[str, Plan], folder: Path, kind: type[VirtualEngine] = VirtualEngine, *, snapshots: bool = True
) -> Iterator[VirtualEngine]:
    """An engine whose guests also say what their network is."""
    engine = kind(snapshots=snapshots)
    engine.prepare(silent, plans.values())
    for number, (needs, (program, digest)) in enumerate(engine._bundles.items()):
        copied = folder / f"lab-{number}"
        if not copied.exists():
            shutil.copytree(program, copied)
            shutil.copyfile(READER, copied / "run_lab.py")
        engine._bundles[needs] = (copied, digest)
    try:
        yield engine
    finally:
        engine.close()


def plans_with(folder: Path, base: str, settings: dict[str, tuple[dict[str, Any], str]]) -> dict[str, Plan]:
    """The plan of a scenario, "base", and one for each setting."""
    folder.mkdir(exist_ok=True)
    shutil.copyfile(Path(__file__).parents[1] / "same_bytes" / "gaps.txt", folder / "gaps.txt")
    path = folder / "settings.yaml"
    swept = {name: changes for name, (changes, _) in settings.items() if "seed" not in changes}
    cases = {re.sub(r"[^a-z0-9]+", "-", name.lower()): changes for name, changes in {"base": {}, **swept}.items()}
    path.write_text(whole(base) + "sweep: " + json.dumps({"setting": {"cases": cases}}) + "\n")
    by_case = {plan.cell.axes["setting"]: plan for plan in plans_of_file(path).values()}
    plans = {name: by_case[case] for name, case in zip(("base", *swept), cases, strict=True)}
    if "seed" in settings:
        path.write_text(whole(base.replace("seed: 3", "seed: 4")))
        (plans["seed"],) = plans_of_file(path).values()
    return plans


def states_of(engine: VirtualEngine, plans: dict[str, Plan], folder: Path) -> dict[str, dict[str, Any]]:
    """Runs "base", then the other cells; what their guests said."""
    statuses = run(engine, {"base": plans["base"]}, folder)
    statuses.update(run(engine, {name: plan for name, plan in plans.items() if name != "base"}, folder, jobs=2))
    assert is_completed(statuses, plans), statuses
    return {name: json.loads((folder / name / "state.json").read_text()) for name in plans}


def without_chance(state: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """A state without what is drawn at set-up and shapes no packet: MACs of bridges, unused seeds, an order."""
    text = json.dumps({key: value for key, value in state.items() if key != "python"})
    seeds = {
        int(d.disorder.seed[16:28], 16)
        for link in plan.network.links
        for d in link.directions
        if d.disorder and d.disorder.jitter_ns
    }
    text = re.sub(r" seed (\d+)", lambda found: found[0] if int(found[1]) in seeds else "", text)
    macs = {end.mac for link in plan.network.links for end in link.ends} | {"ff:ff:ff:ff:ff:ff"}
    text = re.sub(
        r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b",
        lambda found: found[0] if found[0] in macs or found[0].startswith("02:fe:") else "drawn",
        text,
    )
    found: dict[str, Any] = json.loads(text)
    for seen in found["kernel"].values():
        seen["ip"].sort()
    return found


@pytest.mark.parametrize(
    ("base", "settings", "templates"),
    # No vector, and one of a few errors, need maps of other sizes than the others.
    [
        (SERIAL, LINES, 1),
        pytest.param(FY97, CELLS, 3, marks=WHEN_ASKED_FOR),
        pytest.param(FY97, NETWORKS, 1 + len(NETWORKS), marks=WHEN_ASKED_FOR),
    ],
    ids=["of serial links", "of cells", "of networks"],
)
def test_a_fork_is_set_as_a_guest_of_its_own_is(tmp_path, monkeypatch, base, settings, templates):
    """A fork of a used template, a guest booted for the cell, and a guest that never had a template."""
    monkeypatch.setattr("scpslab.engine.template.MOST_IDLE", 100)
    plans = plans_with(tmp_path / "plans", base, settings)
    with reading(plans, tmp_path) as engine:
        forked = states_of(engine, plans, tmp_path / "forked")
        assert len({template.pid for template in engine.templates()}) == templates
    with reading(plans, tmp_path, snapshots=False) as engine:
        booted = states_of(engine, plans, tmp_path / "booted")
    with reading(plans, tmp_path, FreshEngine) as engine:
        fresh = states_of(engine, plans, tmp_path / "fresh")

    assert booted == forked
    for name, plan in plans.items():
        assert without_chance(fresh[name], plan) == without_chance(forked[name], plan), name
    before = without_chance(forked["base"], plans["base"])
    for name, (_, part) in settings.items():
        now = without_chance(forked[name], plans[name])
        assert {key for key in before if now[key] != before[key]} >= ({part} if part else set()), name
        assert part or now == before, name
