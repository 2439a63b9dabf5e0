"""What doctor says of a machine, and what it knows containers and WSL by; what no test can make is judged by itself."""

import errno
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from scpslab.core import scratch
from scpslab.core.errors import CapabilityError
from scpslab.engine import memory
from scpslab.engine.base import Finding
from scpslab.engine.findings import (
    Surroundings,
    explain,
    judge_memory_folder,
    judge_mounts,
    judge_other_folder,
    judge_system,
    look,
    on_windows_disk,
)
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
    monkeypatch.setattr("scpslab.engine.appliance.native.may_trace", lambda: 0)
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


DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nNAME="Debian GNU/Linux"\n'
NAME = "Debian GNU/Linux 13 (trixie)"
RELEASE = "proc/sys/kernel/osrelease"
# The files by which each is known; a name that ends in / is a folder.
ROOTS = {
    "a machine": ({RELEASE: "6.12.48+deb13-amd64\n", "proc/1/cgroup": "0::/init.scope\n"}, Surroundings(NAME)),
    "no files at all": ({}, Surroundings(NAME)),
    "docker": ({".dockerenv": "", "proc/1/cgroup": "0::/\n"}, Surroundings(NAME, "docker")),
    "docker by its group": ({"proc/1/cgroup": "8:pids:/docker/a39717a882b1\n0::/\n"}, Surroundings(NAME, "docker")),
    "podman": (
        {"run/.containerenv": 'engine="podman-4.3.1"\n', "run/systemd/container": "oci\n"},
        Surroundings(NAME, "podman"),
    ),
    "podman by its group": (
        {"proc/1/cgroup": "0::/machine.slice/libpod-1.scope/container\n"},
        Surroundings(NAME, "podman"),
    ),
    "lxc": ({"run/systemd/container": "lxc\n"}, Surroundings(NAME, "lxc")),
    "lxc by its group": ({"proc/1/cgroup": "0::/lxc/web\n"}, Surroundings(NAME, "lxc")),
    "nspawn": ({"run/systemd/container": "systemd-nspawn\n"}, Surroundings(NAME, "systemd-nspawn")),
    "kubernetes": (
        {".dockerenv": "", "var/run/secrets/kubernetes.io/": "", "proc/1/cgroup": "0::/kubepods/1\n"},
        Surroundings(NAME, "kubernetes"),
    ),
    "wsl 2": ({RELEASE: "5.15.167.4-microsoft-standard-WSL2\n", "run/WSL/": ""}, Surroundings(NAME, "", 2)),
    "wsl 2 with a kernel of one's own": ({RELEASE: "6.6.0-mine\n", "run/WSL/": ""}, Surroundings(NAME, "", 2)),
    "wsl 2 by its version": (
        {"proc/version": "Linux version 5.10.16.3-microsoft-standard-WSL2 (gcc)\n"},
        Surroundings(NAME, "", 2),
    ),
    "wsl 1": ({RELEASE: "4.4.0-19041-Microsoft\n"}, Surroundings(NAME, "", 1)),
    "docker in wsl 2": (
        {RELEASE: "5.15.167.4-microsoft-standard-WSL2\n", ".dockerenv": ""},
        Surroundings(NAME, "docker", 2),
    ),
}


@pytest.mark.parametrize("name", ROOTS)
def test_each_is_known_by_its_files(tmp_path, name):
    files, expected = ROOTS[name]
    for path, text in {"etc/os-release": DEBIAN, **files}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            (tmp_path / path).mkdir()
        else:
            (tmp_path / path).write_text(text)
    assert look(tmp_path) == expected


def test_they_are_said_in_words():
    assert str(Surroundings("Ubuntu 24.04", "docker", 2)) == "Ubuntu 24.04, in WSL 2, in a container (docker)"
    assert str(Surroundings("Ubuntu 24.04")) == "Ubuntu 24.04"


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


def test_wsl_1_is_missing_and_a_windows_disk_a_warning():
    found = judge_system(Surroundings("Ubuntu", wsl=1), [])
    assert (found.state, found.fix) == ("missing", "in PowerShell: wsl --set-version DISTRIBUTION 2")
    found = judge_system(Surroundings("Ubuntu", wsl=2), [Path("/mnt/c/scpslab")])
    assert (found.state, found.found) == ("warning", "Ubuntu, in WSL 2, with /mnt/c/scpslab on a disk of Windows")
    assert judge_system(Surroundings("Ubuntu", wsl=2), []).state == "ok"
    # 9p and virtiofs are the disks of other virtual machines too.
    assert judge_system(Surroundings("Debian"), [Path("/home")]).state == "ok"


def test_mounts_that_are_refused_matter_until_everything_is_built():
    docker = Surroundings("Debian", "docker")
    assert judge_mounts(True, False, docker).state == "ok"
    assert judge_mounts(False, True, docker).state == "warning"
    found = judge_mounts(False, False, docker)
    assert found.state == "missing"
    assert found.fix.startswith("docker run --cap-add SYS_ADMIN, as root, for make setup; or share a cache folder")
    assert "docker" not in judge_mounts(False, False, Surroundings("Debian", "lxc")).fix


def test_the_way_out_fits_what_refuses():
    assert explain(0, 0, True, DOCKER).state == "ok"
    assert explain(errno.EPERM, 0, True, DOCKER).fix.startswith("docker run --security-opt seccomp=unconfined")
    assert explain(-signal.SIGSYS, 0, True, Surroundings("Debian", "podman")).fix.startswith(
        "podman run --security-opt"
    )
    assert "docker" not in explain(errno.EPERM, 0, True, BARE).fix
    assert "security module" in explain(errno.EPERM, 0, False, BARE).fix


def test_yamas_scope_is_named_with_the_command_that_changes_it():
    found = explain(errno.EPERM, 2, False, BARE)
    assert (found.found, found.fix) == (
        "refused (Operation not permitted): kernel.yama.ptrace_scope is 2",
        "sudo sysctl -w kernel.yama.ptrace_scope=1",
    )
    # 3 holds until the next boot, whatever root writes.
    assert "boot again" in explain(errno.EPERM, 3, True, DOCKER).fix


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
