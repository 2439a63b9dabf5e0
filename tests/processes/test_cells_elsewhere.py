"""A cell that runs on another file system than its run is copied there and back, and nothing is left of it."""

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from scpslab.core.scratch import MEMORY
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.uml import no_network
from scpslab.lab.records import Status

PLAN = no_network({"wall_s": 60, "memory_mib": 512})


@pytest.fixture
def elsewhere(tmp_path):
    """A folder of another file system than `tmp_path`."""
    if MEMORY.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip(f"{MEMORY} and {tmp_path} are one file system")
    folder = Path(tempfile.mkdtemp(dir=MEMORY))
    yield folder
    shutil.rmtree(folder)


def test_its_result_comes_into_place(tmp_path, elsewhere):
    with CellFolder.beside(tmp_path / "c0", PLAN) as folder:
        folder.fill()
        (folder.path / "boot").symlink_to("/nowhere")
        folder.move(elsewhere / "cell")
        assert (folder.path / "boot").readlink() == Path("/nowhere")
        folder.out.write_status(Status("completed", ""))
        folder.console.touch()
        assert folder.finish(tmp_path / "c0", "", "lab").status == "completed"
    assert sorted(path.name for path in (tmp_path / "c0").iterdir()) == [
        "captures",
        "logs",
        "plan.json",
        "records",
        "status.json",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["c0"]
    assert list(elsewhere.iterdir()) == []


def test_one_that_breaks_off_leaves_nothing(tmp_path, elsewhere):
    with suppress(KeyboardInterrupt), CellFolder.beside(tmp_path / "c0", PLAN) as folder:
        folder.fill()
        folder.move(elsewhere / "cell")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == list(elsewhere.iterdir()) == []
