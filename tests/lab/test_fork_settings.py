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
import yaml

from scpslab.engine.base import LabProcess
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.console import SessionConsole
from scpslab.engine.uml import UmlEngine
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import Plan
from scpslab.setup import silent
from tests.lab.forks import is_completed, plans_of_file, run
from tests.lab.ran import whole

READER, DATA = Path(__file__).parent / "in_guest" / "read_back.py", Path(__file__).parents[1] / "data"
WHEN_ASKED_FOR = pytest.mark.skipif("SCPSLAB_FORK_SETTINGS" not in os.environ, reason="minutes: make test-forks")
FY97, SERIAL = (yaml.safe_load((DATA / "fork_settings" / f"{name}.yaml").read_text()) for name in ("fy97", "serial"))


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


def plans_with(folder: Path, base: str, settings: dict[str, dict[str, Any]]) -> dict[str, Plan]:
    """The plan of a scenario, "base", and one for each setting."""
    folder.mkdir(exist_ok=True)
    shutil.copyfile(DATA.parent / "same_bytes" / "gaps.txt", folder / "gaps.txt")
    path = folder / "settings.yaml"
    swept = {name: one["set"] for name, one in settings.items() if "seed" not in one["set"]}
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
    ("whole", "part", "templates"),
    # No vector, and one of a few errors, need maps of other sizes than the others.
    [
        (SERIAL, "lines", 1),
        pytest.param(FY97, "cells", 3, marks=WHEN_ASKED_FOR),
        pytest.param(FY97, "networks", 1 + len(FY97["networks"]), marks=WHEN_ASKED_FOR),
    ],
    ids=["of serial links", "of cells", "of networks"],
)
def test_a_fork_is_set_as_a_guest_of_its_own_is(tmp_path, monkeypatch, whole, part, templates):
    """A fork of a used template, a guest booted for the cell, and a guest that never had a template."""
    monkeypatch.setattr("scpslab.engine.template.MOST_IDLE", 100)
    settings = whole[part]
    plans = plans_with(tmp_path / "plans", whole["base"], settings)
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
    for name, one in settings.items():
        now = without_chance(forked[name], plans[name])
        assert {key for key in before if now[key] != before[key]} >= ({one["seen"]} if one["seen"] else set()), name
        assert one["seen"] or now == before, name
