"""The folder of a run has one owner: what is where in it is known in one place."""

import ast
from pathlib import Path

import pytest

from scpslab.core.errors import ResultError
from scpslab.runs import CellFiles, RunFolder
from scpslab.runs.cell import CAPTURES, ENVIRONMENT, LOGS, PLAN, RECORDS, STATUS, check_format
from scpslab.runs.run import CAMPAIGN, MANIFEST, RESOLVED, RESULTS

SOURCE = Path(__file__).parents[3] / "src"
NAMES = {PLAN, STATUS, ENVIRONMENT, MANIFEST, RESOLVED, RESULTS, CAMPAIGN}
FOLDERS = {RECORDS, CAPTURES, LOGS}
# The guest has no such package; docs/plan-format.md is what the lab program keeps to.
OWNERS = ("scpslab/runs/", "scpslab/lab/")


def paths_in(tree: ast.AST) -> list[str]:
    """Words that a file joins to a path with "/"."""
    joined = [node.right for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)]
    return [node.value for node in joined if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def test_no_other_module_spells_the_names_of_a_run_s_files():
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if name.startswith(OWNERS):
            continue
        tree = ast.parse(path.read_text())
        words = {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        wrong += [f"{name}: {word}" for word in sorted(words & NAMES | set(paths_in(tree)) & FOLDERS)]
    assert wrong == []


def test_a_folder_without_a_status_is_of_a_cell_that_did_not_end(tmp_path):
    assert not CellFiles(tmp_path).has_ended
    assert CellFiles(tmp_path).status().status == "failed"


def test_a_name_that_leads_elsewhere_is_no_record(tmp_path):
    with pytest.raises(ResultError, match="expected letters"):
        CellFiles(tmp_path).record("../../secret")


def test_cells_that_are_half_made_are_not_cells_of_the_run(tmp_path):
    run = RunFolder(tmp_path)
    for name in ("r1", "r2.part", "r3"):
        (run.cells / name).mkdir(parents=True)
    run.cell("r1").plan.write_text("{}")

    assert [cell.path.name for cell in run.planned_cells()] == ["r1"]
    assert [path.name for path in run.unfinished_cells()] == ["r2.part"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (3, "expected 2. A newer scpslab wrote the run: use that version"),
        ("x", "expected 2. Run the scenario again"),
        (0, "expected 2. Run the scenario again"),
    ],
)
def test_a_file_of_another_format_is_refused_with_what_to_do(found, said):
    with pytest.raises(ResultError) as refused:
        check_format(Path("manifest.json"), found, newest=2)

    assert str(refused.value).replace('"', "").startswith(f"manifest.json: format: found {found}; {said}")
