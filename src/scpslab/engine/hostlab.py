"""Labs on this machine's own kernel: starts a lab, knows what the lab owns, and removes exactly that.

Standard library only: runs with any Python.

A lab is a process tree in a control group, a network namespace and a mount namespace of its own: its interfaces,
bridges and mounts disappear with its processes. Three things remain to be removed, and each has the lab's id: its
control group, its containers, its folder. The id names the process that started the lab.
"""

import errno
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scpslab.core.scratch import started_ticks
from scpslab.lab import docker
from scpslab.plan import Plan

# One folder per lab, named by its id: the first thing that a lab makes and the last that is removed.
STATE = Path("/run/scpslab-labs")
CGROUPS = Path("/sys/fs/cgroup")
# In a lab's folder: says that it may have containers; and which congestion controls any namespace could choose before.
MAY_HAVE_CONTAINERS, ALLOWED_BEFORE = "containers", "allowed-before"
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
PREFIX = "scpslab"
KILL_LIMIT_S = 20.0
LOOK_AGAIN_S = 0.02
# A container whose maker was killed in the middle of asking for it appears a moment later.
CONTAINERS_QUIET_S, CONTAINERS_LIMIT_S = 0.5, 120.0
_numbers = itertools.count(1)


def new_id() -> str:
    """An id that no other lab has had since this machine started: this process, its start time, and a number."""
    return f"{PREFIX}-{os.getpid()}-{started_ticks(os.getpid())}-{next(_numbers)}"


def is_alive(lab: str) -> bool:
    """Whether the process that started a lab still runs."""
    _, pid, ticks, _ = lab.split("-")
    return started_ticks(int(pid)) == int(ticks)


def labs() -> list[str]:
    """The ids of all labs on this machine."""
    return sorted(folder.name for folder in STATE.iterdir()) if STATE.is_dir() else []


def dead_labs() -> list[str]:
    """The labs whose maker has ended."""
    return [lab for lab in labs() if not is_alive(lab)]


def cgroup(lab: str) -> Path:
    """The control group of a lab."""
    return CGROUPS / lab


def remove(lab: str) -> list[str]:
    """Ends and removes a lab; returns what was found, in words.

    Safe to repeat, also after an interrupted removal, and by two commands at once.

    Raises:
        TimeoutError: processes or containers of the lab do not end.
        DockerError: Docker does not answer, and the lab may have containers.
    """
    removed = []
    with _one_at_a_time():
        # Processes first: a process that still runs could make more.
        if count := _end_processes(lab):
            removed.append(f"{count} processes")
        if (STATE / lab / MAY_HAVE_CONTAINERS).exists() and (count := _remove_containers(lab)):
            removed.append(f"{count} containers")
        if _remove_cgroup(lab):
            removed.append("its control group")
        _restore_allowed(lab)
        shutil.rmtree(STATE / lab, ignore_errors=True)
    return removed


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Waits while another command removes a lab: both may have found the same one."""
    STATE.mkdir(exist_ok=True)
    descriptor = os.open(STATE, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _processes(lab: str) -> list[int]:
    return [int(pid) for procs in cgroup(lab).rglob("cgroup.procs") for pid in procs.read_text().split()]


def _end_processes(lab: str) -> int:
    count = len(_processes(lab))
    limit = time.monotonic() + KILL_LIMIT_S
    # A process that has ended stays in the group until its parent reaps it; init reaps the children of a killed parent.
    while _processes(lab):
        (cgroup(lab) / "cgroup.kill").write_text("1\n")
        if time.monotonic() > limit:
            raise TimeoutError(
                f"lab {lab}: found processes {_processes(lab)} still running after {KILL_LIMIT_S:.0f} s; "
                "expected none. Find out with ps what they wait for."
            )
        time.sleep(LOOK_AGAIN_S)
    return count


def _remove_cgroup(lab: str) -> bool:
    group = cgroup(lab)
    if not group.exists():
        return False
    while True:
        folders = sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True)
        try:
            for folder in [*folders, group]:
                folder.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            # A process that the maker started just before it was killed may have joined meanwhile.
            _end_processes(lab)
        else:
            return True


def _containers(lab: str) -> list[str]:
    wanted = quote(json.dumps({"label": [f"{docker.LABEL}={lab}"]}))
    return [entry["Id"] for entry in docker.ask("GET", f"/containers/json?all=1&filters={wanted}") or []]


def _remove_containers(lab: str) -> int:
    found: set[str] = set()
    quiet_since = time.monotonic()
    limit = quiet_since + CONTAINERS_LIMIT_S
    while time.monotonic() - quiet_since < CONTAINERS_QUIET_S:
        for container in _containers(lab):
            docker.remove(container)
            found.add(container)
            quiet_since = time.monotonic()
            if quiet_since > limit:
                raise TimeoutError(
                    f"lab {lab}: found container {container} still there after {CONTAINERS_LIMIT_S:.0f} s; "
                    "expected none. Remove it with docker rm --force."
                )
        time.sleep(LOOK_AGAIN_S)
    return len(found)


def _restore_allowed(lab: str) -> None:
    """Restores the machine's setting when the last lab ends; a lab that began while others ran found the setting of
    those.
    """
    note = STATE / lab / ALLOWED_BEFORE
    if not note.exists():
        return
    others = [other for other in labs() if other != lab]
    keeper = STATE / others[0] / ALLOWED_BEFORE if others else ALLOWED
    keeper.write_text(note.read_text())


PYTHON = "/usr/bin/python3"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MODULES = ("sch_netem", "sch_fq", "sch_ingress", "cls_bpf", "openvswitch")
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
        self.id = new_id()
        self.state = STATE / self.id

    def start(self, terminal: str = "dumb", **options: Any) -> subprocess.Popen[bytes]:
        """Starts the lab program; `terminal` is the kind of its terminal, `options` are Popen's.

        The program ends with the process that started it; `remove` removes the rest.
        """
        STATE.mkdir(exist_ok=True)
        self.state.mkdir()
        if self.plan.network.containers == "docker":
            (self.state / MAY_HAVE_CONTAINERS).touch()
        (self.state / "work").mkdir()
        self._allow_congestion_controls()
        cgroup(self.id).mkdir()
        environment = {
            "PATH": PATH,
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "TERM": terminal,
            "SCPSLAB_LAB": self.id,
            "SCPSLAB_PROGRAMS": str(self.programs),
            "SCPSLAB_CELL": "/run/cell",
            "SCPSLAB_WORK": str(self.state / "work"),
            "SCPSLAB_CGROUP": str(cgroup(self.id)),
        }
        join = f'echo $$ >"{cgroup(self.id)}/cgroup.procs" && exec "$@"'
        command = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", join, "sh", "unshare", "--net", "--mount"]
        command += ["sh", "-c", ENTER, "sh", str(self.state / "work"), str(self.cell)]
        # A terminal that nobody sits at is the lab's alone: only then does Ctrl-C come from it.
        command += ["setsid", "--ctty", "--wait"] if options.get("stdin", -1) > 2 else []
        command += [PYTHON, "-S", "-E", "-B", str(self.programs / "run_lab.py")]
        return subprocess.Popen(command, env=environment, cwd="/", **options)

    def _allow_congestion_controls(self) -> None:
        """Loads the congestion controls of the plan, and lets the lab's namespaces choose them.

        The old setting is kept for `remove`.
        """
        wanted = {node.sysctls.get("net.ipv4.tcp_congestion_control") for node in self.plan.network.speaking}
        wanted |= {workload.own_control for workload in self.plan.cell.workloads}
        modules = [
            *MODULES,
            *(f"tcp_{name}" for name in sorted(filter(None, wanted)) if name not in AVAILABLE.read_text().split()),
        ]
        for module in modules:
            if shutil.which("modprobe"):
                # Whether a control is built in or missing shows when it is used.
                subprocess.run(["modprobe", "--quiet", module], check=False)
        allowed = ALLOWED.read_text()
        missing = set(AVAILABLE.read_text().split()) - set(allowed.split())
        if missing:
            (self.state / ALLOWED_BEFORE).write_text(allowed)
            ALLOWED.write_text(AVAILABLE.read_text())
