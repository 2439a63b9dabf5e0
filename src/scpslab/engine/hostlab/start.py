"""Starts a lab on this machine's own kernel."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from scpslab.engine.hostlab import owned
from scpslab.plan import Plan

PYTHON = "/usr/bin/python3"
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MODULES = ("sch_netem", "sch_ingress", "cls_bpf", "openvswitch")
# In a mount namespace of its own, the lab gets a /run with only what it needs, and an Open vSwitch database of its own.
ENTER = """set -eu
make_places() {
	mount -t tmpfs tmpfs /mnt &&
		mkdir -p /mnt/scpslab /mnt/cell /mnt/bpf /mnt/netns /mnt/openvswitch /mnt/lock &&
		mount --bind "$1" /mnt/scpslab &&
		mount --rbind "$2" /mnt/cell &&
		mount -t bpf bpf /mnt/bpf || return
	if [ -S /run/docker.sock ]; then
		touch /mnt/docker.sock && mount --bind /run/docker.sock /mnt/docker.sock || return
	fi
	# The table of mounts that mount(8) keeps is in the folder that is about to be covered.
	mount --no-mtab --move /mnt /run && mount -t tmpfs tmpfs /var/lib/openvswitch && ip link set lo up
}
# mount(8) has hints for people at a terminal, which mean nothing here.
said=$(make_places "$1" "$2" 2>&1) || {
	echo "$said" >&2
	exit 1
}
shift 2
exec "$@"
"""


class HostLab:
    """One lab.

    `cell` holds its input (plan.json, vectors), `cell`/out will hold its output. `programs`: the lab program's folder.
    """

    def __init__(self, plan: Plan, programs: Path, cell: Path) -> None:
        self.plan, self.programs, self.cell = plan, programs, cell
        self.id = owned.new_id()
        self.state = owned.STATE / self.id

    def start(self, terminal: str = "dumb", **options: Any) -> subprocess.Popen[bytes]:
        """Starts the lab program; `terminal` is the kind of its terminal, `options` are Popen's.

        The program ends with the process that started it; `owned.remove` removes the rest.
        """
        owned.STATE.mkdir(exist_ok=True)
        self.state.mkdir()
        if self.plan.network.containers == "docker":
            (self.state / owned.MAY_HAVE_CONTAINERS).touch()
        (self.state / "work").mkdir()
        self._allow_congestion_controls()
        owned.cgroup(self.id).mkdir()
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "TERM": terminal,
            "SCPSLAB_LAB": self.id,
            "SCPSLAB_PROGRAMS": str(self.programs),
            "SCPSLAB_CELL": "/run/cell",
            "SCPSLAB_WORK": str(self.state / "work"),
            "SCPSLAB_CGROUP": str(owned.cgroup(self.id)),
        }
        join = f'echo $$ >"{owned.cgroup(self.id)}/cgroup.procs" && exec "$@"'
        command = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", join, "sh", "unshare", "--net", "--mount"]
        command += ["sh", "-c", ENTER, "sh", str(self.state / "work"), str(self.cell)]
        command += [PYTHON, "-S", "-E", "-B", str(self.programs / "run_lab.py")]
        return subprocess.Popen(command, env=environment, cwd="/", **options)

    def remove(self) -> None:
        """Removes the lab; see `owned.remove`."""
        owned.remove(self.id)

    def _allow_congestion_controls(self) -> None:
        """Loads the congestion controls of the plan, and lets the lab's namespaces choose them.

        The old setting is kept for `owned.remove`.
        """
        wanted = {node.sysctls.get("net.ipv4.tcp_congestion_control") for node in self.plan.network.speaking}
        wanted |= {workload.congestion_control for workload in self.plan.cell.workloads}
        modules = [
            *MODULES,
            *(f"tcp_{name}" for name in sorted(filter(None, wanted)) if name not in AVAILABLE.read_text().split()),
        ]
        for module in modules:
            if shutil.which("modprobe"):
                # Whether a control is built in or missing shows when it is used.
                subprocess.run(["modprobe", "--quiet", module], check=False)
        allowed = owned.ALLOWED.read_text()
        missing = set(AVAILABLE.read_text().split()) - set(allowed.split())
        if missing:
            (self.state / owned.ALLOWED_BEFORE).write_text(allowed)
            owned.ALLOWED.write_text(AVAILABLE.read_text())
