"""Which labs are whose, and that removing one touches no other. When cells run in the appliance, and with which words
its machine is started; tests/processes starts some.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.core.scratch import started_ticks
from scpslab.engine import appliance, hostlab
from scpslab.engine.appliance import machine as machine_module
from scpslab.engine.appliance.machine import Parts, command, find_qemu


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


def test_the_machine_gets_nothing_of_the_host_but_named_folders(tmp_path, monkeypatch):
    """A comma in a folder's name is doubled for QEMU."""
    (program := tmp_path / machine_module.QEMU).touch(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    at = tmp_path / "a,b"
    parts = Parts(at / "bzImage", at / "kernel" / "linux", at / "tools", at / "boot", "first", at / "lab")
    words = command(parts, at, 512, False)
    shares = [word for word in words if "mount_tag=" in word]

    names = [word.split("mount_tag=")[1].split(",")[0] for word in shares]
    assert names == ["boot", "lab", "kernel", "tools", "program", "exchange"]
    assert [word for word in shares if "readonly=on" not in word] == [shares[-1]]
    assert all("a,,b" in word for word in shares if "mount_tag=program" not in word)
    assert not {"-netdev", "-drive", "-hda", "-nic"} & set(words)


def test_no_qemu_is_an_error_that_says_what_to_install(monkeypatch, told):
    monkeypatch.setenv("PATH", "/nowhere")
    told("no QEMU", "nowhere", find_qemu, error=CapabilityError)


@pytest.mark.parametrize(
    ("errno", "machine", "variable", "trouble"),
    [
        (1, "x86_64", "", "ptrace is refused (Operation not permitted)"),
        (0, "x86_64", "", ""),
        (0, "x86_64", "1", "asks for it"),
        (0, "aarch64", "", "Linux aarch64"),
    ],
)
def test_the_appliance_is_for_other_machines_and_for_those_that_forbid_ptrace(
    errno, machine, variable, trouble, monkeypatch
):
    monkeypatch.setenv(appliance.VARIABLE, variable)
    monkeypatch.setattr(appliance, "may_trace", lambda: errno)
    monkeypatch.setattr(appliance.platform, "machine", lambda: machine)
    assert trouble in appliance.trouble()
    assert bool(appliance.trouble()) == bool(trouble)


def test_kvm_is_used_only_where_it_makes_a_machine(tmp_path, monkeypatch):
    device = tmp_path / "kvm"
    assert not machine_module.can_virtualise(device)
    device.write_bytes(b"no device")
    machine_module.can_virtualise.cache_clear()
    assert not machine_module.can_virtualise(device)
    machine_module.can_virtualise.cache_clear()
    monkeypatch.setattr(machine_module.fcntl, "ioctl", lambda *_: os.dup(0))
    assert machine_module.can_virtualise(device)
    monkeypatch.setattr(machine_module, "KVM", device)
    monkeypatch.setattr(machine_module.platform, "machine", lambda: "x86_64")
    for value, is_accelerated in ((appliance.FORCED, True), (appliance.EMULATED, False)):
        monkeypatch.setenv(appliance.VARIABLE, value)
        assert machine_module.is_accelerated() == is_accelerated
