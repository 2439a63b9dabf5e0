"""`scpslab new` copies scenarios with comments; test_odd_options.py has what it refuses."""

import re

import pytest

from scpslab import scenario
from scpslab.core.project import ROOT
from scpslab.scenario import planning
from scpslab.scenario.load import FOLDER

STARTS = sorted(f"start/{file.stem}" for file in (FOLDER / "start").glob("*.yaml"))


@pytest.mark.parametrize("name", STARTS)
def test_a_copy_is_planned_as_its_source_without_a_warning(tmp_path, scpslab, name):
    path = tmp_path / "mine.yaml"
    code, said, explained = scpslab("new", str(path), "--from", name)

    assert (code, said) == (0, f"{path}\n")
    for command in ("validate", "run", "results", "plot"):
        assert f"scpslab {command} " in explained
    source = scenario.cells(scenario.load(name))
    cells = scenario.cells(scenario.load(str(path)))
    assert [cell.id for cell in cells] == [cell.id for cell in source]
    plans = planning.plans(cells)
    assert [*planning.warnings(plans, ""), *planning.doubts(cells, plans)] == []


def test_the_first_lines_are_a_person_s_to_read(tmp_path, scpslab):
    """The schema for editors is not beside the copy."""
    path = tmp_path / "mine.yaml"
    scpslab("new", str(path))
    assert path.read_text().startswith("kind: scenario\n")


def test_columns_of_comments_exist():
    columns = (ROOT / "docs" / "columns.md").read_text()
    for name in STARTS:
        for named in re.findall(r"--metric ([\w,]+)", (FOLDER / f"{name}.yaml").read_text()):
            assert all(f"`{column}`" in columns for column in named.split(","))


def test_the_help_names_all_commented_ones(scpslab):
    _, said, _ = scpslab("new", "--help")
    assert all(name in said for name in STARTS)
