"""Users of a wheel are told its file, never a name that a stranger may take, and no `make`, which they lack. Unit
tests start no process (conftest.py). Scratch folders and unfinished files: what a killed process left is removed,
and nothing else.
"""

import multiprocessing
import os
import pty
import re
import subprocess
from importlib import metadata, util
from pathlib import Path
from types import SimpleNamespace

import pytest

from scpslab.core import installation
from scpslab.core.scratch import remove_dead, replace_text, scratch
from scpslab.engine import findings as machine

ROOT = Path(__file__).parents[2]
# A command that asks an index for scpslab: the name, without a folder, a version or an ending.
BY_NAME = re.compile(r"""pip install(?! [^`\n]*--no-index)[^`\n|#]*[ "']scpslab(?:\[[a-z,]+\])?["'`.\s]""")


@pytest.mark.parametrize("found", [True, False])
def test_an_extra_is_added_to_the_wheel_that_was_installed(monkeypatch, tmp_path, found):
    wheel = tmp_path / "with blanks" / "scpslab-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    if found:
        wheel.touch()
    noted = f'{{"url": "{wheel.as_uri()}", "archive_info": {{}}}}'
    monkeypatch.setattr(metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda file: noted))
    monkeypatch.setattr(installation, "IS_INSTALLED", True)
    said = installation.add_extra("dask")
    assert said.endswith(f'-m pip install "{wheel}[dask]"' if found else '….whl[dask]"')


def test_no_page_and_no_message_asks_an_index_for_the_name():
    assert BY_NAME.search('pip install "scpslab[dask]"')
    files = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "assignments").rglob("*.md"),
        ROOT / "README.md",
    ]
    assert [f"{file}: {found[0]}" for file in files if (found := BY_NAME.search(file.read_text()))] == []


def test_doctor_says_where_nobody_may_write(monkeypatch, tmp_path):
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "home" / ".cache"))
    assert machine.disk().state == "ok"
    monkeypatch.setattr(machine.os, "access", lambda path, mode: path != tmp_path)
    found = machine.disk()
    assert (found.state, found.fix) == ("missing", "set SCPSLAB_CACHE to a folder that you may write to")
    assert str(tmp_path) in found.found


def test_modules_that_users_are_told_to_run_are_installed():
    files = (path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".sh"))
    named = {name for path in files for name in re.findall(r"-m (scpslab[\w.]*)", path.read_text())}
    assert "scpslab.setup" in named
    assert [name for name in named if util.find_spec(f"{name}.__main__") is None] == []


WAYS = {
    "fork": os.fork,
    "forkpty": pty.fork,
    "Popen": lambda: subprocess.Popen(["true"]),
    "system": lambda: os.system("true"),  # noqa: S605 (refused before a shell starts)
    "posix_spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    **{way: multiprocessing.get_context(way).Process().start for way in ("forkserver", "spawn")},
}


@pytest.mark.parametrize("start", WAYS.values(), ids=WAYS)
def test_every_way_to_start_one_is_refused(start):
    with pytest.raises(pytest.fail.Exception, match=r"found a process; expected none in tests/unit\. Move the test"):
        start()


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
