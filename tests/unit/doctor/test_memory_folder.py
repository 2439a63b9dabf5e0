"""What doctor and the engine say of /dev/shm: too small, or mounted so that no kernel can run from it."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from scpslab.doctor.machine import judge_memory_folder
from scpslab.doctor.surroundings import Surroundings
from scpslab.engine import uml
from scpslab.engine.virtual import VirtualEngine
from scpslab.errors import CapabilityError

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


def test_a_run_is_refused_before_anything_starts(monkeypatch):
    monkeypatch.setattr(uml.os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))
    with pytest.raises(CapabilityError, match=r"/dev/shm: found it mounted noexec; expected .* Run \"scpslab doctor\""):
        VirtualEngine().prepare(print, [])
    monkeypatch.setattr(uml, "MEMORY_FOLDER", "/nowhere")
    with pytest.raises(CapabilityError, match="found no such folder"):
        VirtualEngine().prepare(print, [])
