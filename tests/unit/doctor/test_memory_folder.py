"""What doctor and the engine say of /dev/shm: too small, or mounted so that no kernel can run from it."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from scpslab.core import scratch
from scpslab.core.errors import CapabilityError
from scpslab.engine import memory
from scpslab.engine.findings import Surroundings, judge_memory_folder, judge_other_folder
from scpslab.engine.virtual import VirtualEngine
from scpslab.setup import silent

BARE = Surroundings("Debian")
DOCKER = Surroundings("Debian", "docker")


def test_room_for_all_cores_is_enough_and_for_some_a_warning():
    assert judge_memory_folder(2 * 10**9, False, 2, BARE).state == "ok"
    found = judge_memory_folder(10**9, False, 2, BARE)
    assert (found.state, found.found) == ("warning", "1.0 GB free in /dev/shm: enough for 1 of 2 cells at a time")
    assert found.fix == "scpslab run --jobs 1, or: sudo mount -o remount,exec,size=2g /dev/shm"


def test_dockers_64_megabytes_are_too_few_and_the_command_that_gives_more_is_named():
    found = judge_memory_folder(64 << 20, False, 4, DOCKER)
    assert (found.state, found.found) == ("missing", "67 MB free in /dev/shm; a cell needs 700 MB")
    assert found.fix == "docker run --tmpfs /dev/shm:exec,size=3g"
    assert "emptyDir" in judge_memory_folder(64 << 20, False, 4, Surroundings("Debian", "kubernetes")).fix


def test_noexec_is_missing_whatever_room_there_is():
    found = judge_memory_folder(10**12, True, 2, DOCKER)
    assert (found.state, found.fix) == ("missing", "docker run --tmpfs /dev/shm:exec,size=2g")
    assert "noexec" in found.found


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders; `rooms` and `noexec` say what each is like."""
    rooms, noexec = {"shm": 10**9, "tmp": 10**12}, set[str]()
    for name in rooms:
        (tmp_path / name).mkdir()
    monkeypatch.setattr(memory, "room", lambda place: rooms[place.name])
    monkeypatch.setattr(
        memory.os, "statvfs", lambda place: SimpleNamespace(f_flag=os.ST_NOEXEC if place.name in noexec else 0)
    )
    return (tmp_path / "shm", tmp_path / "tmp"), rooms, noexec


def test_the_guests_memory_is_in_the_first_folder_that_can_hold_it(folders):
    places, rooms, noexec = folders
    assert memory.choose(places).name == "shm"
    rooms["shm"] = 64 << 20
    assert memory.choose(places).name == "tmp"
    rooms["tmp"] = 32 << 20
    assert memory.choose(places).name == "shm"
    noexec.add("shm")
    assert memory.choose(places).name == "tmp"


def test_a_run_is_refused_before_anything_starts_where_no_folder_can(folders, monkeypatch):
    places, _, noexec = folders
    noexec |= {"shm", "tmp"}
    monkeypatch.setattr(memory, "memory_places", lambda: (*places, places[0] / "gone"))
    with pytest.raises(
        CapabilityError,
        match=r"shm mounted noexec, .*tmp mounted noexec, .*gone missing; expected .* Run \"scpslab doctor\".*SCPSLAB_MEMORY",
    ):
        VirtualEngine().prepare(silent, [])


def test_the_user_s_folder_is_the_only_one_and_is_cleaned_like_the_others(monkeypatch, tmp_path):
    monkeypatch.setenv("SCPSLAB_MEMORY", str(tmp_path))
    assert scratch.memory_places() == (tmp_path,)
    assert tmp_path in scratch.places()
    monkeypatch.delenv("SCPSLAB_MEMORY")
    assert scratch.memory_places()[0] == scratch.MEMORY


def test_another_folder_is_told_with_the_reason():
    found = judge_other_folder(Path("/tmp"), 10**10, "mounted noexec")
    assert (found.state, found.found) == ("ok", "10.0 GB free in /tmp: /dev/shm mounted noexec")
    assert judge_other_folder(Path("/tmp"), 10**8, "").state == "warning"


def test_a_folder_that_holds_no_forks_is_told(tmp_path):
    assert memory.can_hold_forks(scratch.MEMORY)
    assert not memory.can_hold_forks(tmp_path / "missing")
    found = judge_other_folder(Path("/tmp"), 10**10, "mounted noexec", can_hold_forks=False)
    assert found.state == "warning"
    assert "every cell boots" in found.found
