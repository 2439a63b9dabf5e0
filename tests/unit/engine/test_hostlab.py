"""Which labs are whose, and that removing one touches no other."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from scpslab.core.scratch import started_ticks
from scpslab.engine import hostlab


@pytest.fixture
def places(monkeypatch, tmp_path):
    """Folders of their own for labs and control groups."""
    monkeypatch.setattr(hostlab, "STATE", tmp_path / "labs")
    monkeypatch.setattr(hostlab, "CGROUPS", tmp_path / "groups")
    hostlab.STATE.mkdir()
    hostlab.CGROUPS.mkdir()
    return tmp_path


def test_an_id_is_its_maker_s_and_unique():
    first, second = hostlab.new_id(), hostlab.new_id()
    assert first != second
    assert hostlab.is_alive(first)
    assert first.split("-")[1] == str(os.getpid())


def test_a_lab_is_dead_when_its_maker_has_ended_or_another_process_has_its_number(places):
    ticks, no_process = started_ticks(os.getpid()), 4_194_305  # more than Linux gives
    names = {f"scpslab-{no_process}-{ticks}-1", f"scpslab-{os.getpid()}-{ticks + 1}-1", mine := hostlab.new_id()}
    for name in names:
        (hostlab.STATE / name).mkdir()

    assert set(hostlab.labs()) == names
    assert set(hostlab.dead_labs()) == names - {mine}


def test_removing_a_lab_removes_its_own_and_can_be_repeated(places):
    lab, other = hostlab.new_id(), hostlab.new_id()
    for name in (lab, other):
        (hostlab.STATE / name / "work").mkdir(parents=True)
        hostlab.cgroup(name).mkdir()

    assert hostlab.remove(lab) == ["its control group"]
    assert hostlab.remove(lab) == []
    assert hostlab.labs() == [other]
    assert [group.name for group in hostlab.CGROUPS.iterdir()] == [other]


def test_the_machine_s_setting_comes_back_with_the_last_lab(places, monkeypatch):
    allowed = places / "allowed"
    monkeypatch.setattr(hostlab, "ALLOWED", allowed)
    allowed.write_text("reno cubic bbr\n")
    first, second = hostlab.new_id(), hostlab.new_id()
    for name in (first, second):
        (hostlab.STATE / name).mkdir()
    (hostlab.STATE / first / hostlab.ALLOWED_BEFORE).write_text("reno cubic\n")

    hostlab.remove(first)
    assert allowed.read_text() == "reno cubic bbr\n"
    hostlab.remove(second)
    assert allowed.read_text() == "reno cubic\n"


def test_two_commands_that_remove_the_same_lab_do_not_disturb_each_other(places):
    """As two runs after a kill do: both have found the lab's control group, and one of them removes it first."""
    lab = hostlab.new_id()
    with ThreadPoolExecutor(2) as commands:
        for _ in range(50):
            (hostlab.STATE / lab).mkdir()
            for number in range(50):
                (hostlab.cgroup(lab) / f"container-{number}" / "init").mkdir(parents=True)
            removed = [command.result() for command in [commands.submit(hostlab.remove, lab) for _ in range(2)]]
            assert sorted(removed) == [[], ["its control group"]]
