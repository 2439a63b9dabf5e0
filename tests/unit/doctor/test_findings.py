"""What doctor says of a machine, and what it knows containers and WSL by; what no test can make is judged by itself. A
cache that others may change, and a mask that makes one: both are told.
"""

import errno
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from scpslab.core import scratch
from scpslab.core.errors import CapabilityError
from scpslab.engine import memory
from scpslab.engine.base import Finding
from scpslab.engine.findings import (
    Surroundings,
    explain,
    judge_appliance,
    judge_memory_folder,
    judge_mounts,
    judge_other_folder,
    judge_system,
    look,
    on_windows_disk,
    rights,
)
from scpslab.engine.virtual import VirtualEngine
from scpslab.setup import silent
from tests import golden

BARE = Surroundings("Debian")
DOCKER, KUBERNETES, LXC, PODMAN = (Surroundings("Debian", one) for one in ("docker", "kubernetes", "lxc", "podman"))
TMP = Path("/tmp")
JUDGED = {
    "room for all cores": judge_memory_folder(2 * 10**9, False, 2, BARE),
    "room for some cores": judge_memory_folder(10**9, False, 2, BARE),
    "docker's 64 MB": judge_memory_folder(64 << 20, False, 4, DOCKER),
    "64 MB in kubernetes": judge_memory_folder(64 << 20, False, 4, KUBERNETES),
    "noexec, whatever room there is": judge_memory_folder(10**12, True, 2, DOCKER),
    "another folder": judge_other_folder(TMP, 10**10, "mounted noexec"),
    "another folder that is small": judge_other_folder(TMP, 10**8, ""),
    "another folder that holds no forks": judge_other_folder(TMP, 10**10, "mounted noexec", can_hold_forks=False),
    "wsl 1": judge_system(Surroundings("Ubuntu", wsl=1), []),
    "a container in wsl 2": judge_system(Surroundings("Ubuntu 24.04", "docker", 2), []),
    "a disk of Windows": judge_system(Surroundings("Ubuntu", wsl=2), [Path("/mnt/c/scpslab")]),
    # 9p and virtiofs are the disks of other virtual machines too.
    "the same file system elsewhere": judge_system(BARE, [Path("/home")]),
    "mounts allowed": judge_mounts(True, False, DOCKER),
    "mounts refused, everything built": judge_mounts(False, True, DOCKER),
    "mounts refused in docker": judge_mounts(False, False, DOCKER),
    "mounts refused in lxc": judge_mounts(False, False, LXC),
    "ptrace allowed": explain(0, 0, True, DOCKER),
    "ptrace refused in docker": explain(errno.EPERM, 0, True, DOCKER),
    "ptrace refused in podman": explain(-signal.SIGSYS, 0, True, PODMAN),
    "ptrace refused to root": explain(errno.EPERM, 0, True, BARE),
    "ptrace refused to a user": explain(errno.EPERM, 0, False, BARE),
    "yama's scope 2": explain(errno.EPERM, 2, False, BARE),
    # It holds until the next boot, whatever root writes.
    "yama's scope 3": explain(errno.EPERM, 3, True, DOCKER),
    "no appliance needed": judge_appliance("", False, False),
    "no appliance": judge_appliance("no ptrace", False, False),
    "an appliance": judge_appliance("no ptrace", True, False),
    "an appliance with KVM": judge_appliance("no ptrace", True, True),
}


@golden.each("what doctor finds")
def test_what_is_found_has_a_state_and_a_way_out(case):
    found = JUDGED[case]
    case.hold(f"{found.state}: {found.found}\n{found.fix}")


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


def test_a_run_is_refused_before_anything_starts_where_no_folder_can(folders, monkeypatch, told):
    places, _, noexec = folders
    noexec |= {"shm", "tmp"}
    monkeypatch.setattr("scpslab.engine.appliance.may_trace", lambda: 0)
    monkeypatch.setattr(memory, "memory_places", lambda: (*places, places[0] / "gone"))
    told("the guests' memory", "no folder", VirtualEngine().prepare, silent, [], error=CapabilityError)


def test_the_user_s_folder_is_the_only_one_and_is_cleaned_like_the_others(monkeypatch, tmp_path):
    monkeypatch.setenv("SCPSLAB_MEMORY", str(tmp_path))
    assert scratch.memory_places() == (tmp_path,)
    assert tmp_path in scratch.places()
    monkeypatch.delenv("SCPSLAB_MEMORY")
    assert scratch.memory_places()[0] == scratch.MEMORY


def test_what_holds_forks_is_tried(tmp_path):
    assert memory.can_hold_forks(scratch.MEMORY)
    assert not memory.can_hold_forks(tmp_path / "missing")


DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nNAME="Debian GNU/Linux"\n'


@golden.each("what a machine is known by")
def test_each_is_known_by_its_files(case, tmp_path):
    """A name that ends in / is a folder."""
    files = yaml.safe_load(case.partition(" | ")[2])
    for path, text in {"etc/os-release": DEBIAN, **files}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            (tmp_path / path).mkdir()
        else:
            (tmp_path / path).write_text(text)
    case.hold(look(tmp_path))


MOUNTS = """\
/dev/sdc / ext4 rw,relatime 0 0
none /mnt/wslg tmpfs rw,relatime 0 0
C:\\134 /mnt/c 9p rw,noatime,aname=drvfs;path=C:\\;uid=1000 0 0
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/home/ann/scpslab", False), ("/mnt/c", True), ("/mnt/c/Users/ann", True), ("/mnt/cd", False)],
)
def test_disks_of_windows_are_known_by_their_mounts(path, expected):
    assert on_windows_disk(Path(path), MOUNTS) is expected


KERNEL = (
    "start the machine with systemd.unified_cgroup_hierarchy=1, or use another kernel: "
    "the virtual machine that vagrant up makes has one (docs/vagrant.md)"
)


def test_what_to_do_can_be_copied_from_a_narrow_terminal(scpslab, monkeypatch):
    """Whole, in a line of its own; what is well needs nothing to be done."""
    found = [Finding("control groups", "missing", "none", KERNEL), Finding("ptrace", "ok", "allowed", "nothing")]
    monkeypatch.setattr(VirtualEngine, "findings", lambda self: found)
    monkeypatch.setenv("COLUMNS", "80")

    code, out, _ = scpslab("doctor")

    assert code == 3
    assert out.splitlines()[-2:] == [
        "control groups: what to do:",
        f"  {KERNEL.replace('docs/vagrant.md', 'scpslab docs vagrant')}",
    ]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    (folder / "lab").mkdir(parents=True, mode=0o755)
    folder.chmod(0o755)
    monkeypatch.setenv("SCPSLAB_CACHE", str(folder))
    return folder


@pytest.mark.parametrize("place", [".", "lab"])
@pytest.mark.parametrize(("mode", "state"), [(0o755, "ok"), (0o700, "ok"), (0o757, "warning"), (0o777, "warning")])
def test_what_others_may_write_is_told(cache, place, mode, state):
    (cache / place).chmod(mode)
    found = rights()
    assert (found.state, str(cache) in found.found) == (state, True)
    assert ("chmod -R go-w" in found.fix) == (state == "warning")


@pytest.mark.parametrize(("mask", "state"), [(0o000, "warning"), (0o022, "ok"), (0o020, "warning"), (0o077, "ok")])
def test_the_mask_of_new_files_is_told(cache, mask, state):
    before = os.umask(mask)
    try:
        found = rights()
    finally:
        os.umask(before)
    assert (found.state, f"umask {mask:03o}" in found.found) == (state, state == "warning")


def test_no_cache_is_one_that_nobody_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "none"))
    assert rights().state == "ok"
