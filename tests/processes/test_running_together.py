"""Runs side by side and runs that were killed: one at a time in a folder, nothing lost, nothing left behind."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "data" / "run_with_fake_engine.py"
CELLS = 3


class Place:
    """A cache, a folder of runs and a "memory" of their own, and runs in them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.memory = folder, folder / "memory"
        self.memory.mkdir()

    def start(self, out: str = "runs", hold: int = 0, *options: str) -> subprocess.Popen[str]:
        words = f"{PROGRAM} {self.memory} {hold} run links/transfer --jobs 1 --out {out}".split()
        argv = [sys.executable, *words, *options]
        environment = os.environ | {"SCPSLAB_CACHE": str(self.folder / "cache"), "COLUMNS": "200"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(argv, cwd=self.folder, env=environment, text=True, **pipes)

    def run(self, out: str = "runs", *options: str) -> tuple[int, str]:
        process = self.start(out, 0, *options)
        _, said = process.communicate(timeout=100)
        return process.returncode, said

    def files(self, out: str = "runs") -> dict[str, str]:
        """Digests of what a run has made, by path within its folder."""
        (run,) = (self.folder / out).iterdir()
        found = {path.relative_to(run).as_posix(): path for path in run.rglob("*") if path.is_file()}
        return {
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in found.items()
            if name not in ("manifest.json", ".lock")
        }


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def held(process):
    """Waits until a run holds in the middle of a cell."""
    assert process.stdout.readline() == "holding\n"
    return process


def test_a_second_run_into_the_same_folder_is_refused_and_says_who_is_there(place):
    first = held(place.start(hold=2))

    code, said = place.run()

    assert code == 2
    assert said.count("\n") == 1
    assert f"found process {first.pid}, which has run in it since" in said
    assert f'end it with "kill {first.pid}", or choose another folder with --out' in said
    assert place.run("elsewhere")[0] == 0
    first.communicate("\n", timeout=100)
    assert first.returncode == 0
    assert place.files() == place.files("elsewhere")
    assert len([name for name in place.files() if name.endswith("status.json")]) == CELLS


@pytest.mark.parametrize("cell", range(1, CELLS + 1))
def test_a_killed_run_goes_on_and_leaves_nothing(place, cell):
    process = held(place.start(hold=cell))
    process.kill()
    process.communicate(timeout=100)
    assert len(list(place.memory.iterdir())) == 1

    code, said = place.run()

    assert code == 0
    assert said.count("from the cache") >= cell - 1
    assert list(place.memory.iterdir()) == []
    assert list(place.folder.rglob("*.part")) == []
    assert place.run("undisturbed", "--no-cache")[0] == 0
    assert place.files() == place.files("undisturbed")


def test_two_exports_to_one_file_leave_one_of_them_whole(place):
    assert place.run("one")[0] == 0
    shutil.copytree(place.folder / "one", place.folder / "two")
    runs = [next((place.folder / out).iterdir()) for out in ("one", "two")]
    for run, mib in zip(runs, (24, 32), strict=True):
        # Such sizes take a while to pack.
        with next((run / "cells").iterdir()).joinpath("large").open("wb") as file:
            file.truncate(mib << 20)

    def start(run, name):
        argv = [sys.executable, "-m", "scpslab", "export", run, "--whole", "--out", place.folder / name]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    exports = [start(run, "same.tar.gz") for run in runs] + [start(run, f"{run.parent.name}.tar.gz") for run in runs]
    said = [export.communicate(timeout=100)[1] for export in exports]

    assert [export.returncode for export in exports] == [0] * 4, said
    same, *alone = ((place.folder / f"{name}.tar.gz").read_bytes() for name in ("same", "one", "two"))
    assert same in alone
    assert list(place.folder.glob("*.part")) == []
