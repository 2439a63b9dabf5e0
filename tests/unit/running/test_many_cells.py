"""What a run does besides its cells grows with their number, not with its square; no plan stays in memory."""

import weakref
from itertools import pairwise

import pytest

from scpslab.analysis.collect import row_of, rows_as_csv
from scpslab.analysis.run import cell_folders, open_cell, open_run
from scpslab.running.events import CellDone
from scpslab.runs import RunFolder

CELLS = 240
MANY = ["repeats=80"]


@pytest.fixture
def written(monkeypatch):
    """The number of cells in each manifest that is written."""
    sizes = []
    write = RunFolder.write_manifest

    def counted(folder, progress):
        sizes.append(len(progress.cells))
        write(folder, progress)

    monkeypatch.setattr(RunFolder, "write_manifest", counted)
    return sizes


def test_manifests_of_a_long_run_are_not_most_of_its_work(run_fake, written):
    run_fake(overrides=MANY)

    assert written[:21] == list(range(21))
    assert written[-1] == CELLS
    assert sum(written) < 25 * CELLS
    assert max(after - before for before, after in pairwise(written)) <= CELLS / 19


def test_measurements_that_nobody_repeats_are_in_the_manifest_at_once(run_fake, written):
    run_fake(overrides=["repeats=12"], repeats=False)

    assert set(range(37)) <= set(written)


def test_a_run_that_breaks_has_its_cells_in_the_manifest(run_fake, tmp_path):
    done = []

    def broken(event):
        if isinstance(event, CellDone):
            done.append(event.cell)
            if len(done) == CELLS - 1:
                raise OSError

    with pytest.raises(OSError, match="^$"):
        run_fake(overrides=MANY, listeners=[broken])

    (folder,) = RunFolder.all_in(tmp_path / "runs")
    assert set(folder.manifest().cells) == set(done)


def test_a_table_is_made_of_one_plan_after_the_other(run_fake):
    folder = run_fake(overrides=MANY).folder
    plans, most = [], 0

    def watched():
        nonlocal most
        for cell in map(open_cell, cell_folders(folder)):
            plans.append(weakref.ref(cell))
            most = max(most, sum(plan() is not None for plan in plans))
            yield cell

    text = rows_as_csv(map(row_of, watched()))

    assert most <= 2
    assert text == rows_as_csv(map(row_of, open_run(folder).cells[::-1])) == (folder / "results.csv").read_text()
