"""When cells run in the appliance, and with which words its machine is started; tests/processes starts some."""

import os

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.engine.appliance import machine as machine_module
from scpslab.engine.appliance import native
from scpslab.engine.appliance.machine import Parts, command, find_qemu


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
    monkeypatch.setenv(native.VARIABLE, variable)
    monkeypatch.setattr(native, "may_trace", lambda: errno)
    monkeypatch.setattr(native.platform, "machine", lambda: machine)
    assert trouble in native.trouble()
    assert bool(native.trouble()) == bool(trouble)


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
    for value, is_accelerated in ((native.FORCED, True), (native.EMULATED, False)):
        monkeypatch.setenv(native.VARIABLE, value)
        assert machine_module.is_accelerated() == is_accelerated
