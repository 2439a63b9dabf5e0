"""A run under other conditions than its scenario's decides no claim, and says which they are."""

import json
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.analysis.claims import Evidence
from scpslab.analysis.claims.model import Series
from scpslab.analysis.collect import BEFORE_AXES
from scpslab.scenario.altered import altered


def run_of(folder: Path, name: str, *overrides: str) -> Path:
    """A run folder of a scenario: its resolved scenario, manifest and one row."""
    folder.mkdir()
    loaded = scenario.load(name, overrides)
    (folder / "scenario.resolved.yaml").write_text(scenario.resolved_yaml(loaded))
    (folder / "manifest.json").write_text(json.dumps({"format": 1, "scenario": loaded.name, "status": "completed"}))
    row = dict.fromkeys((*BEFORE_AXES, "repeat", "seed", "status", "reason", "transfer_s"), "")
    row |= {"scenario": loaded.base_name, "repeat": "1", "seed": "1", "status": "completed", "transfer_s": "20"}
    (folder / "results.csv").write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    return folder


# What no claim depends on.
UNCHANGED = (
    "repeats=7",
    "seed=3",
    "sweep.level=[100, 130]",
    "sweep.stack=[cubic]",
    "limits.wall_time=10 s",
    "probes=[]",
)
UNCHANGED += ("title=Mine",)
RATE = "links.hop.forward.rate=1 Mbit/s"
SEGMENT = "sweep.segment={set: [workloads.transfer.segment], values: [512 B]}"


@pytest.mark.parametrize(
    ("name", "overrides", "changes"),
    [
        ("fy97/fig14", (), ()),
        ("fy97/fig14:demo", (), ()),
        ("fy97/fig14", UNCHANGED, ()),
        ("fy97/fig14", ("workloads.transfer.size=4 MB",), ()),
        ("fy97/fig14", ("workloads.transfer.size=200 kB",), ("workloads.transfer.size: 200 kB instead of 4000000 B",)),
        ("fy97/fig14:demo", (RATE,), ("links.hop.forward.rate: 1 Mbit/s instead of 2 Mbit/s",)),
        ("fy97/fig14", ("links.hop.forward.errors={model: independent, ber: 1e-6}",), None),
        ("fy97/fig14", (SEGMENT,), ("sweep.segment: new",)),
        # Its cases have names that are numbers to a reader of YAML, unless they are written in quotes.
        ("np/signals", (), ()),
        ("np/signals", ("workloads.transfer.size=1 kB",), ("workloads.transfer.size: 1 kB instead of 1000000 B",)),
    ],
)
def test_what_a_run_changed_in_its_scenario_is_named(tmp_path, name, overrides, changes):
    run = run_of(tmp_path / "run", name, *overrides)
    found = altered(name, run / "scenario.resolved.yaml")
    assert found == changes if changes is not None else found
    rows = Evidence.of_runs([run]).select(Series(scenarios=(name.partition(":")[0],)), {})
    assert len(rows) == (0 if found else 1)


def test_a_small_variant_decides_nothing_although_its_cells_carry_the_scenario_s_name(tmp_path):
    """Plans name the scenario without the variant."""
    runs = [run_of(tmp_path / variant, f"fy97/fig14:{variant}") for variant in ("test", "demo")]
    rows = Evidence.of_runs(runs).select(Series(scenarios=("fy97/fig14",)), {})
    assert [row.run.name for row in rows] == ["demo"]


def test_a_run_of_a_stranger_s_is_compared_without_running_its_topology(tmp_path):
    run = run_of(tmp_path / "run", "fy97/fig14")
    (run / "mine.py").write_text("raise SystemExit('ran')\n")
    file = run / "scenario.resolved.yaml"
    file.write_text(file.read_text().replace("topology: fy97", "topology: ./mine.py"))
    assert "topology: ./mine.py instead of fy97" in altered("fy97/fig14", file)


def test_a_scenario_of_the_user_s_own_is_compared_with_nothing(tmp_path):
    assert altered("mine", tmp_path / "scenario.resolved.yaml") == ()


@pytest.mark.parametrize("text", ["title: x\n", "title: [", None])
def test_a_run_whose_scenario_cannot_be_read_is_no_evidence_either(tmp_path, text):
    file = run_of(tmp_path / "run", "fy97/fig14") / "scenario.resolved.yaml"
    file.unlink() if text is None else file.write_text(text)
    assert altered("fy97/fig14", file) == ("scenario.resolved.yaml: cannot be read",)
    assert Evidence.of_runs([tmp_path / "run"]).select(Series(scenarios=("fy97/fig14",)), {}) == ()
