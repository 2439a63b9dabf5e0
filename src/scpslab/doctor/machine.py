"""The checks of `scpslab doctor`. Each returns a finding with the command that fixes what is missing."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from scpslab.doctor import sandbox
from scpslab.doctor.finding import Finding
from scpslab.hostlab.capabilities import missing
from scpslab.setup.images import KERNEL, LAB_KERNEL_MACHINE, NEEDED_BYTES, PARTS, cache_dir, find

NEEDED_SHM_BYTES = 700 * 10**6
NEEDED_PROCESSES = 200
BOOT_LIMIT_S = 20
BUILD_PROGRAMS = ("gcc", "make", "flex", "bison", "bc", "patch", "mmdebstrap", "mkfs.erofs", "clang", "apt-get", "xz")


def machine() -> Finding:
    """x86-64 Linux?"""
    found = f"{platform.system()} {platform.machine()}"
    if found == f"Linux {LAB_KERNEL_MACHINE}":
        return Finding("machine", "ok", found)
    return Finding("machine", "missing", found, "use an x86-64 Linux machine: the lab kernel runs on no other")


def python() -> Finding:
    """Python 3.11 or newer?"""
    return Finding("python", "ok" if sys.version_info >= (3, 11) else "missing", platform.python_version(), "make packages")


def programs() -> Finding:
    """Everything that builds kernel and guest?"""
    missing = [name for name in BUILD_PROGRAMS if shutil.which(name) is None and not Path("/usr/sbin", name).exists()]
    if not missing:
        return Finding("build programs", "ok", "all there")
    built = all(find(part, cache_dir()) for part in PARTS)
    return Finding("build programs", "warning" if built else "missing", "not found: " + ", ".join(missing), "make packages")


def images() -> Finding:
    """Kernel, guest image and programs built?"""
    missing = [part.title for part in PARTS if find(part, cache_dir()) is None]
    if not missing:
        return Finding("images", "ok", str(cache_dir()))
    return Finding("images", "missing", "not built: " + ", ".join(missing), "make setup")


def boot() -> Finding:
    """Does the lab kernel start here? It needs ptrace, which some containers forbid."""
    kernel = find(KERNEL, cache_dir())
    if kernel is None:
        return Finding("lab kernel starts", "missing", "no kernel yet", "make setup")
    with tempfile.TemporaryDirectory(prefix="scpslab-") as scratch:
        command = [str(kernel), "mem=64M", "con=null", "con0=null,fd:1", "time-travel=inf-cpu", "root=none", "panic=-1"]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=BOOT_LIMIT_S, env={"HOME": scratch, "TMPDIR": "/dev/shm"}, check=False
            )
        except subprocess.TimeoutExpired:
            return Finding(
                "lab kernel starts", "missing", f"still booting after {BOOT_LIMIT_S} s", "allow ptrace (containers: --security-opt seccomp=unconfined)"
            )
    text = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    # Without a root file system it boots until it looks for one; that far is far enough.
    if "Unable to mount root" in text or "Linux version" in text:
        return Finding("lab kernel starts", "ok", "boots")
    last = (text.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return Finding("lab kernel starts", "missing", last, "allow ptrace (containers: --security-opt seccomp=unconfined)")


def memory_folder() -> Finding:
    """Room in /dev/shm for the guests' memory?"""
    free = shutil.disk_usage("/dev/shm").free if Path("/dev/shm").is_dir() else 0
    needed = NEEDED_SHM_BYTES * len(os.sched_getaffinity(0))
    found = f"{free / 1e9:.1f} GB free in /dev/shm"
    if free >= needed:
        return Finding("memory folder", "ok", found)
    state: Literal["warning", "missing"] = "warning" if free >= NEEDED_SHM_BYTES else "missing"
    return Finding("memory folder", state, found, "scpslab run --jobs 1, or: sudo mount -o remount,size=4G /dev/shm")


def disk() -> Finding:
    """Room to build and to keep results?"""
    place = cache_dir()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    built = all(find(part, cache_dir()) for part in PARTS)
    enough = free >= (NEEDED_BYTES if not built else 10**9)
    return Finding(
        "disk",
        "ok" if enough else "missing",
        f"{free / 1e9:.1f} GB free for {cache_dir()}",
        "free disk space, or set SCPSLAB_CACHE to a folder on another disk",
    )


def processes() -> Finding:
    """May this user start enough processes?"""
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if limit in (-1, resource.RLIM_INFINITY) or limit >= NEEDED_PROCESSES:
        return Finding("processes", "ok", "no limit" if limit < 0 else f"limit {limit}")
    return Finding("processes", "warning", f"limit {limit}", f"ulimit -u {NEEDED_PROCESSES * 4}")


def cores() -> Finding:
    """How many cells run at a time?"""
    return Finding("cores", "ok", f"{len(os.sched_getaffinity(0))}: as many cells at a time")


def host() -> list[Finding]:
    """The needs of engine host: one finding if everything is there, otherwise one for each thing that is missing."""
    lacking = missing(with_docker=True)
    if not lacking:
        return [Finding("engine host", "ok", "kernel, programs and Docker")]
    return [Finding(f"engine host: {lack.name}", "missing", lack.found, lack.fix) for lack in lacking]


CHECKS: tuple[Callable[[], Finding], ...] = (
    *(machine, python, programs, images, boot, sandbox.lock, sandbox.confinement),
    *(memory_folder, disk, processes, cores),
)


def examine(engine: str) -> list[Finding]:
    """Runs every check of an engine."""
    return host() if engine == "host" else [check() for check in CHECKS]
