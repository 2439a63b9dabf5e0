"""How doctor tells containers and WSL: by fake roots, as each of them looks."""

from pathlib import Path

import pytest

from scpslab.engine.findings import Surroundings, judge_mounts, judge_system, look, on_windows_disk

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
