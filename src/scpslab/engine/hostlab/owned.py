"""The things that a lab on this machine owns, and their removal, whatever state the lab was left in."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from scpslab.lab import docker

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


def started_ticks(pid: int) -> int | None:
    """The start time of a process in clock ticks since the machine started (proc(5), field 22); None if there is no
    such process, or it has ended.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


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
    found: list[int] = []
    for procs in cgroup(lab).rglob("cgroup.procs"):
        found += [int(line) for line in procs.read_text().split()]
    return found


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
    if not others:
        ALLOWED.write_text(note.read_text())
    else:
        keeper = STATE / others[0] / ALLOWED_BEFORE
        keeper.write_text(note.read_text())
