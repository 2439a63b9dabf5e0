"""Scratch folders and unfinished files: what a killed process left is removed, and nothing else."""

import os
from pathlib import Path

import pytest

from scpslab.core.scratch import remove_dead, replace_text, scratch


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
