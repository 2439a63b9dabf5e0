"""Checks, by trying, that this machine's kernel and programs can do what engine `host` needs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from scpslab.engine.base import Finding
from scpslab.engine.hostlab.owned import CGROUPS
from scpslab.engine.hostlab.start import PYTHON
from scpslab.lab import docker

PROGRAMS = (
    "ip",
    "tc",
    "unshare",
    "setpriv",
    "mount",
    "ovsdb-tool",
    "ovsdb-server",
    "ovs-vswitchd",
    "ovs-vsctl",
    "ovs-dpctl",
    "tcpdump",
    "iperf3",
)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OTHER_KERNEL = "use another kernel: the virtual machine that vagrant up makes has one (docs/vagrant.md)"
PLAYBOOK = "ansible-playbook -i localhost, -c local playbooks/site.yml"


def _has(program: str) -> bool:
    return shutil.which(program, path=PATH) is not None


def _in_a_namespace(script: str) -> str:
    """Runs a script in a network namespace of its own. Returns "" if it works, else its last line of output."""
    environment = {"PATH": PATH}
    done = subprocess.run(
        ["unshare", "--net", "sh", "-ec", script], capture_output=True, text=True, env=environment, check=False
    )
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def root() -> Finding | None:
    """Are we root?"""
    return None if os.geteuid() == 0 else Finding("root", "missing", f"user id {os.geteuid()}", "sudo scpslab …")


def programs() -> Finding | None:
    """The lab's programs."""
    missing = [name for name in PROGRAMS if not _has(name)]
    return Finding("programs", "missing", "no " + ", ".join(missing), PLAYBOOK) if missing else None


def mininet() -> Finding | None:
    """Mininet for the system's Python."""
    code = "import sys; sys.path.append('/usr/lib/python3/dist-packages'); import mininet.net"
    done = (
        subprocess.run([PYTHON, "-S", "-E", "-c", code], capture_output=True, check=False)
        if Path(PYTHON).exists()
        else None
    )
    has_it = done is not None and done.returncode == 0
    return None if has_it else Finding("mininet", "missing", f"no Mininet for {PYTHON}", PLAYBOOK)


def control_groups() -> Finding | None:
    """Control groups version 2, which end all processes of a lab at once."""
    if (CGROUPS / "cgroup.controllers").exists():
        return None
    found = f"no control groups of version 2 at {CGROUPS}"
    fix = f"start the machine with systemd.unified_cgroup_hierarchy=1, or {OTHER_KERNEL}"
    return Finding("control groups", "missing", found, fix)


def _try(name: str, script: str) -> Callable[[], Finding | None]:
    def check() -> Finding | None:
        # `programs` reports a missing program.
        said = _in_a_namespace(script) if _has(script.split(maxsplit=1)[0]) else ""
        found, fix = f'"{said}" when it was tried', f"modprobe {name}, or {OTHER_KERNEL}"
        return Finding(name, "missing", found, fix) if said else None

    return check


netem = _try("sch_netem", "tc qdisc add dev lo root netem delay 1ms")
clsact = _try("sch_ingress", "tc qdisc add dev lo clsact")
cls_bpf = _try(
    "cls_bpf", "tc qdisc add dev lo clsact; tc filter add dev lo egress bpf bytecode '1,6 0 0 0' direct-action"
)
veth = _try("veth", "ip link add name v0 type veth peer name v1")
# Without its programs, at least whether there is such a module.
open_vswitch = _try("openvswitch", "ovs-dpctl dump-dps" if _has("ovs-dpctl") else "modprobe --dry-run openvswitch")


def docker_engine() -> Finding | None:
    """A Docker Engine that answers."""
    if docker.answers():
        return None
    found = f"no Docker Engine that answers at {docker.SOCKET}"
    return Finding("docker", "missing", found, f"start it, or: {PLAYBOOK}")


CHECKS: tuple[Callable[[], Finding | None], ...] = (
    root,
    programs,
    mininet,
    control_groups,
    veth,
    netem,
    clsact,
    cls_bpf,
    open_vswitch,
)


def missing(with_docker: bool) -> list[Finding]:
    """All missing capabilities. Without root only root is reported, because the other checks need it."""
    if lack := root():
        return [lack]
    found = [lack for check in CHECKS if (lack := check())]
    if with_docker and (lack := docker_engine()):
        found.append(lack)
    return found
