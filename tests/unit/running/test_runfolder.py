"""The folder of a run has one owner: what is where in it is known in one place."""

from pathlib import Path

import pytest

from scpslab.runs import CellFiles, RunFolder
from scpslab.runs.cell import check_format


def test_a_folder_without_a_status_is_of_a_cell_that_did_not_end(tmp_path):
    assert not CellFiles(tmp_path).has_ended
    assert CellFiles(tmp_path).status().status == "failed"


def test_a_name_that_leads_elsewhere_is_no_record(tmp_path, told):
    told("name of a record", "../../secret", CellFiles(tmp_path).record, "../../secret")


def test_cells_that_are_half_made_are_not_cells_of_the_run(tmp_path):
    run = RunFolder(tmp_path)
    for name in ("r1", "r2.part", "r3"):
        (run.cells / name).mkdir(parents=True)
    run.cell("r1").plan.write_text("{}")

    assert [cell.path.name for cell in run.planned_cells()] == ["r1"]
    assert [path.name for path in run.unfinished_cells()] == ["r2.part"]


@pytest.mark.parametrize("found", [3, "x", 0])
def test_a_file_of_another_format_is_refused_with_what_to_do(found, told):
    told("format of a file", str(found), check_format, Path("manifest.json"), found, newest=2)
