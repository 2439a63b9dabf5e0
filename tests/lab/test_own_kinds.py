"""Kinds outside the project: a folder beside a scenario, or an installed package; what is wrong is told in a sentence."""

import os
import shutil
from pathlib import Path

import pytest

from tests.lab import command
from tests.lab.copied_tree import OF_SCENARIOS, NewKind

SORTS = [sort for sort in OF_SCENARIOS if NewKind(sort).sources]
BURST = "kinds/workloads/burst"
COLUMN = 'return {"burst_packets"'
# Of a file of the made-up workload: what is there instead of what, and the words of a refusal.
WRONG = [
    (
        "metrics.py",
        COLUMN,
        'return {"utilization": 1, "burst_packets"',
        "gives utilization; expected the columns that it declares (burst_packets)",
    ),
    ("metrics.py", "subject.line(", "subject.lines[0](", "raises IndexError"),
    ("scenario.py", '"""Datagrams over UDP, counted where they arrive."""', "", "class Burst without a docstring"),
    ("scenario.py", 'kind="burst"', 'kind="burts"', "found no kind burst; expected one with the name of its folder"),
    ("plan.py", "from typing", "from tpying", "found ModuleNotFoundError"),
    ("lab.py", "class Burst", "clas Burst", "expected Python"),
]


def placed(sort: str, folder: Path) -> Path:
    """A made-up kind beside its scenario."""
    shutil.copytree(NewKind(sort).folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "scenario.yaml"


@pytest.mark.parametrize("sort", [sort for sort in SORTS if (NewKind(sort).folder / "kinds").is_dir()])
def test_a_kind_beside_a_scenario_does_what_it_says(sort, engine, tmp_path):
    path = placed(sort, tmp_path / "mine")
    said = command.scpslab("run", path, "--out", tmp_path / "runs")
    run = Path(said.splitlines()[-1])
    assert NewKind(sort).untrue(run) == []
    assert command.scpslab("packets", run, "r1").count("\n") > 1


@pytest.mark.parametrize(("file", "old", "new", "words"), WRONG)
def test_what_is_wrong_with_a_kind_is_told_before_anything_runs(file, old, new, words, tmp_path):
    path = placed("workload", tmp_path / "mine")
    text = (path.parent / BURST / file).read_text()
    assert old in text
    (path.parent / BURST / file).write_text(text.replace(old, new))
    said = command.scpslab("run", path, "--out", tmp_path / "runs", code=2)
    assert words in said
    assert "Traceback" not in said


def test_files_of_others_taken_names_and_other_places_are_refused(tmp_path):
    path = placed("workload", tmp_path / "mine")
    shutil.copytree(path.parent / BURST, path.parent / "kinds" / "workloads" / "bulk")
    shutil.copytree(path.parent / BURST, path.parent / "kinds" / "metrics" / "burst")
    (path.parent / BURST / "plan.py").chmod(0o666)
    said = command.scpslab("validate", path, code=2)
    for words in ("a second kind bulk of workloads", "expected FAMILY/NAME/LAYER.py", "a file that others may write"):
        assert words in said


def test_a_recipe_that_no_scenario_gets_is_warned_of(engine, tmp_path):
    path = placed("workload", tmp_path / "mine")
    (path.parent / "figures").mkdir()
    (path.parent / "figures" / "mine.yaml").write_text("title: Mine\napplies_to: [senario]\n")
    done = command.ended("run", path, "--out", tmp_path / "runs")
    assert "applies_to: found senario, which no scenario is called; expected a name such as scenario" in done.stderr


def test_installed_kinds_are_found_and_others_are_named_by_the_environment(tmp_path, monkeypatch):
    kinds = placed("workload", tmp_path / "mine").parent / "kinds"
    scenario = tmp_path / "burst.yaml"
    shutil.copy(NewKind("workload").scenario, scenario)
    assert 'found "burst"' in command.scpslab("validate", scenario, code=2)
    monkeypatch.setenv("SCPSLAB_KINDS", str(kinds))
    command.scpslab("validate", scenario)
    monkeypatch.delenv("SCPSLAB_KINDS")
    site, package = tmp_path / "site", tmp_path / "site" / "mine-1.dist-info"
    package.mkdir(parents=True)
    (site / "mine").mkdir()
    (site / "mine" / "__init__.py").touch()
    kinds.rename(site / "mine" / "kinds")
    (site / "mine" / "kinds" / "__init__.py").touch()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[scpslab.kinds]\nmine = mine.kinds\n")
    monkeypatch.setenv("PYTHONPATH", f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    command.scpslab("validate", scenario)
