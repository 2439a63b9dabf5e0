"""A run under other conditions than its scenario's decides no claim, and says which they are."""

from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.analysis.claims import Evidence
from scpslab.analysis.claims.model import Series
from scpslab.analysis.collect import BEFORE_AXES
from tests.runs import write_manifest


def run_of(folder: Path, name: str, *overrides: str) -> Path:
    """A run folder of a scenario: its resolved scenario, manifest and one row."""
    folder.mkdir()
    loaded = scenario.load(name, overrides)
    (folder / "scenario.resolved.yaml").write_text(scenario.resolved_yaml(loaded))
    write_manifest(folder, loaded.name, settings=overrides)
    row = dict.fromkeys((*BEFORE_AXES, "repeat", "seed", "status", "reason", "transfer_s"), "")
    row |= {"scenario": loaded.base_name, "repeat": "1", "seed": "1", "status": "completed", "transfer_s": "20"}
    (folder / "results.csv").write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    return folder


@pytest.mark.parametrize(
    ("name", "free", "changing"),
    [
        ("fy97/fig14", (), ()),
        ("fy97/fig14:demo", (), ()),
        ("fy97/fig14", ("repeats=7", "seed=3", "sweep.level=[100, 130]", "sweep.stack=[cubic]", "title=Mine"), ()),
        ("fy97/fig14", ("limits.wall_time=10 s", "probes=[]"), ()),
        ("fy97/fig14", ("repeats=7",), ("workloads.transfer.size=200 kB",)),
        ("fy97/fig14:demo", (), ("links.hop.forward.rate=1 Mbit/s",)),
        ("fy97/fig14", (), ("links.hop.forward.errors={model: independent, ber: 1e-6}",)),
        ("fy97/fig14", (), ("sweep.segment={set: [workloads.transfer.segment], values: [512 B]}",)),
    ],
)
def test_settings_that_change_conditions_are_named(tmp_path, name, free, changing):
    run = run_of(tmp_path / "run", name, *free, *changing)
    evidence = Evidence.of_runs([run])
    assert evidence.changed == ({run: changing} if changing else {})
    assert len(evidence.select(Series(scenarios=(name.partition(":")[0],)), {})) == (0 if changing else 1)


def test_a_small_variant_decides_nothing_although_its_cells_carry_the_scenario_s_name(tmp_path):
    """Plans name the scenario without the variant."""
    runs = [run_of(tmp_path / variant, f"fy97/fig14:{variant}") for variant in ("test", "demo")]
    rows = Evidence.of_runs(runs).select(Series(scenarios=("fy97/fig14",)), {})
    assert [row.run.name for row in rows] == ["demo"]
