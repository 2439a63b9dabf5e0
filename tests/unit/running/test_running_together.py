"""Runs side by side and runs that were killed: one at a time in a folder, nothing lost, nothing left behind."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scpslab.core.scratch import remove_dead, replace_text, scratch

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[2] / "data" / "run_with_fake_engine.py"
CELLS = 3


class Place:
    """A cache, a folder of runs and a "memory" of their own, and runs in them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.memory = folder, folder / "memory"
        self.memory.mkdir()

    def start(self, out: str = "runs", hold: int = 0, *options: str) -> subprocess.Popen[str]:
        argv = [
            sys.executable,
            str(PROGRAM),
            str(self.memory),
            str(hold),
            "run",
            "links/transfer",
            "--jobs",
            "1",
            "--out",
            out,
            *options,
        ]
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


def test_scratch_folders_of_living_processes_and_of_others_stay(tmp_path):
    stat = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    dead = tmp_path / "scpslab-4194305-7-abcdefgh"
    reused = tmp_path / f"scpslab-{os.getpid()}-{int(stat) - 1}-abcdefgh"
    kept = [
        tmp_path / name
        for name in ("scpslab-abcdefgh", "scpslab-4194305-7-abc", "other", f"scpslab-{os.getpid()}-{stat}-abcdefgh")
    ]
    for folder in (dead, reused, *kept):
        folder.mkdir()
        (folder / "socket").write_text("")
    link = tmp_path / "scpslab-4194305-8-abcdefgh"
    link.symlink_to(tmp_path / "other")
    file = tmp_path / "scpslab-4194305-9-abcdefgh"
    file.write_text("")

    with scratch(tmp_path) as own:
        assert remove_dead(tmp_path, tmp_path / "none") == sorted([dead, reused])
        assert own.is_dir()

    assert not own.exists()
    assert sorted(tmp_path.iterdir()) == sorted([*kept, link, file])
    assert (tmp_path / "other" / "socket").exists()


def test_a_scratch_folder_that_is_locked_stays_whoever_made_it(tmp_path):
    """As in a container that shares /dev/shm: its process ids are none here."""
    with scratch(tmp_path) as own:
        stranger = own.rename(tmp_path / "scpslab-4194305-7-abcdefgh")
        assert remove_dead(tmp_path) == []
        assert stranger.is_dir()
    assert remove_dead(tmp_path) == [stranger]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder another user's")
def test_a_scratch_folder_of_another_user_stays(tmp_path):
    folder = tmp_path / "scpslab-4194305-7-abcdefgh"
    folder.mkdir()
    os.chown(folder, 65534, 65534)

    assert remove_dead(tmp_path) == []


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    (tmp_path / ".a.csv.4194305-7.part").write_text("half")
    (tmp_path / ".a.csv.mine.part").write_text("somebody's")

    replace_text(tmp_path / "a.csv", "whole")

    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.csv.mine.part", "a.csv"]
    assert (tmp_path / "a.csv").read_text() == "whole"
