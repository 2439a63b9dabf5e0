"""Which labs are whose, and that removing one touches no other."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from scpslab.engine.hostlab import owned


@pytest.fixture
def places(monkeypatch, tmp_path):
    """Folders of their own for labs and control groups."""
    monkeypatch.setattr(owned, "STATE", tmp_path / "labs")
    monkeypatch.setattr(owned, "CGROUPS", tmp_path / "groups")
    owned.STATE.mkdir()
    owned.CGROUPS.mkdir()
    return tmp_path


def test_an_id_is_its_maker_s_and_unique():
    first, second = owned.new_id(), owned.new_id()
    assert first != second
    assert owned.is_alive(first)
    assert first.split("-")[1] == str(os.getpid())


def test_a_lab_is_dead_when_its_maker_has_ended_or_another_process_has_its_number(places):
    ended = subprocess.Popen(["true"])
    ticks = owned.started_ticks(os.getpid())
    ended.wait()
    names = {f"scpslab-{ended.pid}-{ticks}-1", f"scpslab-{os.getpid()}-{ticks + 1}-1", mine := owned.new_id()}
    for name in names:
        (owned.STATE / name).mkdir()

    assert set(owned.labs()) == names
    assert set(owned.dead_labs()) == names - {mine}


def test_removing_a_lab_removes_its_own_and_can_be_repeated(places):
    lab, other = owned.new_id(), owned.new_id()
    for name in (lab, other):
        (owned.STATE / name / "work").mkdir(parents=True)
        owned.cgroup(name).mkdir()

    assert owned.remove(lab) == ["its control group"]
    assert owned.remove(lab) == []
    assert owned.labs() == [other]
    assert [group.name for group in owned.CGROUPS.iterdir()] == [other]


def test_the_machine_s_setting_comes_back_with_the_last_lab(places, monkeypatch):
    allowed = places / "allowed"
    monkeypatch.setattr(owned, "ALLOWED", allowed)
    allowed.write_text("reno cubic bbr\n")
    first, second = owned.new_id(), owned.new_id()
    for name in (first, second):
        (owned.STATE / name).mkdir()
    (owned.STATE / first / owned.ALLOWED_BEFORE).write_text("reno cubic\n")

    owned.remove(first)
    assert allowed.read_text() == "reno cubic bbr\n"
    owned.remove(second)
    assert allowed.read_text() == "reno cubic\n"


def test_two_commands_that_remove_the_same_lab_do_not_disturb_each_other(places):
    """As two runs after a kill do: both have found the lab's control group, and one of them removes it first."""
    lab = owned.new_id()
    with ThreadPoolExecutor(2) as commands:
        for _ in range(50):
            (owned.STATE / lab).mkdir()
            for number in range(50):
                (owned.cgroup(lab) / f"container-{number}" / "init").mkdir(parents=True)
            removed = [command.result() for command in [commands.submit(owned.remove, lab) for _ in range(2)]]
            assert sorted(removed) == [[], ["its control group"]]
