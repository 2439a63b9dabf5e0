"""Where this program runs, as far as it changes what helps: inside a container, inside WSL, or on a machine of its own."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from pathlib import Path

# What a control group's path says of whoever made it.
GROUPS = (("kubepods", "kubernetes"), ("libpod", "podman"), ("docker", "docker"), ("lxc", "lxc"))
# How the disks of Windows are mounted in WSL 2 and WSL 1.
WINDOWS_DISKS = {"9p", "drvfs", "virtiofs"}


@dataclass(frozen=True)
class Surroundings:
    """The name of the system; the kind of container ("" for none); the version of WSL (0 for none)."""

    system: str
    container: str = ""
    wsl: int = 0

    def __str__(self) -> str:
        """As people say it."""
        places = [f"WSL {self.wsl}"] if self.wsl else []
        places += [f"a container ({self.container})"] if self.container else []
        return ", in ".join([self.system, *places])

    @property
    def run_command(self) -> str:
        """The command that starts such a container, if there is one."""
        return {"docker": "docker run", "podman": "podman run"}.get(self.container, "")


def look(root: Path = Path("/")) -> Surroundings:
    """Looks at the files by which WSL and containers can be told. Reads below `root` only."""
    return Surroundings(_system(root), _container(root), _wsl(root))


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _system(root: Path) -> str:
    named = re.search(r'^PRETTY_NAME="?([^"\n]+)', _text(root / "etc/os-release"), re.MULTILINE)
    return named[1] if named else platform.system()


def _wsl(root: Path) -> int:
    """WSL 1 answers system calls itself and says so by the name of a kernel that it is not; WSL 2 is a Linux kernel, which people may build themselves."""
    release = _text(root / "proc/sys/kernel/osrelease") or _text(root / "proc/version")
    if (root / "run/WSL").exists() or re.search("microsoft-standard|wsl2", release, re.IGNORECASE):
        return 2
    return 1 if "microsoft" in release.lower() else 0


def _container(root: Path) -> str:
    if (root / "var/run/secrets/kubernetes.io").exists():
        return "kubernetes"
    # systemd's way, which podman, lxc and nspawn follow.
    told = _text(root / "run/systemd/container").strip()
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    if told:
        return told
    group = _text(root / "proc/1/cgroup")
    return next((name for part, name in GROUPS if f"/{part}" in group), "")


def on_windows_disk(path: Path, mounts: str) -> bool:
    """Whether a path is on a disk of Windows, by the lines of /proc/mounts: the mount with the longest matching name counts."""
    best, kind = "", ""
    for line in mounts.splitlines():
        _, place, type_, *_ = [*line.split(), "", "", ""]
        if len(place) >= len(best) and (path.is_relative_to(place) if place else False):
            best, kind = place, type_
    return kind in WINDOWS_DISKS
