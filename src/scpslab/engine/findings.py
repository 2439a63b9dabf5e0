"""What engines of the lab kernel find of this machine, each thing with the command that fixes what is missing."""

import math
import os
import platform
import re
import resource
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from scpslab.core.errors import CapabilityError, ScpslabError
from scpslab.core.folders import somebody_elses
from scpslab.core.installation import PACKAGES, SETUP
from scpslab.engine import appliance as machines
from scpslab.engine import memory
from scpslab.engine.appliance.machine import QEMU, in_a_machine, is_accelerated
from scpslab.engine.base import Finding
from scpslab.engine.confinement import protections
from scpslab.setup import Images, cache_dir, ensure, silent
from scpslab.setup import images as parts

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
    """WSL 1 answers system calls itself and says so by the name of a kernel that it is not; WSL 2 is a Linux kernel,
    which people may build themselves.
    """
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
    """Whether a path is on a disk of Windows, by the lines of /proc/mounts: the mount with the longest matching name
    counts.
    """
    best, kind = "", ""
    for line in mounts.splitlines():
        _, place, type_, *_ = [*line.split(), "", "", ""]
        if len(place) >= len(best) and (path.is_relative_to(place) if place else False):
            best, kind = place, type_
    return kind in WINDOWS_DISKS


MEMORY_FOLDER = Path("/dev/shm")
NEEDED_PROCESSES = 200
BOOT_LIMIT_S = 20
BUILD_PROGRAMS = ("gcc", "make", "flex", "bison", "bc", "patch", "mmdebstrap", "mkfs.erofs", "clang", "apt-get", "xz")
SCOPE_FILE = Path("/proc/sys/kernel/yama/ptrace_scope")
# From this scope on, children may not ask to be traced: 2 only root, 3 nobody until the next boot.
SCOPE_REFUSES, SCOPE_FOR_GOOD = 2, 3
LOCK_LIMITS = {"memory_mib": 256, "wall_s": 60}
# Run as root of a guest: a mount that no script may make.
TRY = """
import subprocess
tried = subprocess.run(["mount", "-t", "hostfs", "-o", "hostfs=../../..", "none", "/mnt"], capture_output=True)
open("/cell/out/found", "w").write("refused" if tried.returncode else "mounted")
"""
# Runs a folder's program in a guest, with a cell's folder and limits; returns the last lines of its console.
RunInGuest = Callable[[Images, Path, Path, dict[str, int]], str]


def machine() -> Finding:
    """x86-64 Linux?"""
    found = f"{platform.system()} {platform.machine()}"
    if found == f"Linux {parts.LAB_KERNEL_MACHINE}":
        return Finding("machine", "ok", found)
    return Finding("machine", "missing", found, "use an x86-64 Linux machine: the lab kernel runs on no other")


def system() -> Finding:
    """Which system is this, and is it inside something else?"""
    places = [parts.cache_dir(), parts.PROJECT]
    return judge_system(
        look(), [path for path in places if on_windows_disk(path.resolve(), Path("/proc/mounts").read_text())]
    )


def judge_system(where: Surroundings, on_windows: list[Path]) -> Finding:
    """The finding for such surroundings. `on_windows`: our folders that are on disks of Windows."""
    if where.wsl == 1:
        fix = "in PowerShell: wsl --set-version DISTRIBUTION 2"
        return Finding("system", "missing", f"{where}, which has no Linux kernel", fix)
    if where.wsl and on_windows:
        found = f"{where}, with {' and '.join(map(str, on_windows))} on a disk of Windows"
        fix = "move the clone and SCPSLAB_CACHE into the Linux file system, such as ~: Windows disks are slow there"
        return Finding("system", "warning", found, fix)
    return Finding("system", "ok", str(where))


def _unbuilt() -> list[str]:
    """The parts that are not built."""
    return [part.title for part in parts.PARTS if parts.find(part, parts.cache_dir()) is None]


def programs() -> Finding:
    """Everything that builds kernel and guest?"""
    if parts.carried():
        return Finding("build programs", "ok", "not needed: this installation carries all parts")
    missing = [name for name in BUILD_PROGRAMS if shutil.which(name) is None and not Path("/usr/sbin", name).exists()]
    if not missing:
        return Finding("build programs", "ok", "all there")
    return Finding(
        "build programs", "missing" if _unbuilt() else "warning", "not found: " + ", ".join(missing), PACKAGES
    )


def mounts() -> Finding:
    """May the guest image be built here? mmdebstrap mounts /dev and /proc for the programs that it installs."""
    if parts.carried():
        return Finding("mounts for building", "ok", "not needed: this installation carries all parts")
    where, is_root = look(), os.geteuid() == 0
    if not (is_root or where.container):
        # A plain user's mmdebstrap makes a user namespace; what may do so differs from program to program (AppArmor),
        # so nobody else can try.
        return judge_mounts(True, True, where)
    words = ["unshare", *([] if is_root else ["--user", "--map-root-user"]), "--mount", "true"]
    try:
        allowed = subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        allowed = True
    return judge_mounts(allowed, not _unbuilt(), where)


def judge_mounts(allowed: bool, built: bool, where: Surroundings) -> Finding:
    """The finding for a machine on which mounts are allowed or not, and everything is built or not."""
    name = "mounts for building"
    if allowed:
        return Finding(name, "ok", "allowed")
    share = "share a cache folder that was built elsewhere (docs/platforms.md)"
    allow = f"{where.run_command} --cap-add SYS_ADMIN, as root," if where.run_command else "allow mounts"
    fix = f"{allow} for {SETUP}; or {share}"
    return Finding(name, "warning" if built else "missing", "refused: the guest image cannot be built here", fix)


def images() -> Finding:
    """Kernel, guest image and programs built?"""
    if missing := _unbuilt():
        return Finding("images", "missing", "not built: " + ", ".join(missing), SETUP)
    caches = dict.fromkeys(
        str(path.parents[2]) for part in parts.PARTS if (path := parts.find(part, parts.cache_dir()))
    )
    return Finding("images", "ok", ", ".join(caches))


def published() -> Finding:
    """Have kernel, guest image and programs the bytes that results were published with?"""
    verdicts = [verdict for part in (*parts.PARTS, parts.STACK) if (verdict := parts.compare(part, parts.cache_dir()))]
    found = "; ".join(verdict.text for verdict in verdicts) or "nothing to compare yet"
    if all(verdict.same is not False for verdict in verdicts):
        return Finding("published bytes", "ok", found)
    fix = "good for results of your own; to repeat published bytes see docs/platforms.md"
    return Finding("published bytes", "warning", found, fix)


def boot() -> Finding:
    """Does the lab kernel start here?"""
    name = "lab kernel starts"
    kernel = parts.find(parts.KERNEL, parts.cache_dir())
    if kernel is None:
        return Finding(name, "missing", "no kernel yet", SETUP)
    with tempfile.TemporaryDirectory(prefix="scpslab-") as scratch:
        command = [str(kernel), "mem=64M", "con=null", "con0=null,fd:1", "time-travel=inf-cpu", "root=none", "panic=-1"]
        try:
            environment = {"HOME": scratch, "TMPDIR": str(memory.choose())}
        except CapabilityError:
            return Finding(name, "missing", "no folder for its memory", "fix the check 'memory folder' first")
        try:
            done = subprocess.run(
                command, input=b"", capture_output=True, timeout=BOOT_LIMIT_S, env=environment, check=False
            )
        except subprocess.TimeoutExpired:
            return Finding(name, "missing", f"still booting after {BOOT_LIMIT_S} s", _way_to_boot())
    text = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    # Without a root file system it boots until it looks for one; that far is far enough.
    if "Unable to mount root" in text or "Linux version" in text:
        return Finding(name, "ok", "boots")
    last = (text.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return Finding(name, "missing", last, _way_to_boot())


def _way_to_boot() -> str:
    """The checks that say why the kernel does not start, if one does."""
    causes = [finding.name for finding in (ptrace(), memory_folder()) if finding.state == "missing"]
    return f"fix the check '{causes[0]}' first" if causes else "see docs/platforms.md"


def ptrace() -> Finding:
    """Tries it."""
    try:
        scope = int(SCOPE_FILE.read_text())
    except (OSError, ValueError):
        scope = 0
    filtered = re.search(r"^Seccomp:\s*2$", Path("/proc/self/status").read_text(), re.MULTILINE) is not None
    return explain(machines.may_trace(), scope, filtered, look())


def explain(answer: int, scope: int, filtered: bool, where: Surroundings) -> Finding:
    """The finding for an answer (0, an error's number, or minus a signal's), with what probably refuses, and the way
    out.
    """
    if answer == 0:
        return Finding("ptrace", "ok", "allowed")
    said = machines.words(answer)
    if scope >= SCOPE_REFUSES:
        until = "write kernel.yama.ptrace_scope=1 into /etc/sysctl.d/10-ptrace.conf and boot again"
        fix = until if scope >= SCOPE_FOR_GOOD else "sudo sysctl -w kernel.yama.ptrace_scope=1"
        return Finding("ptrace", "missing", f"refused ({said}): kernel.yama.ptrace_scope is {scope}", fix)
    if not filtered:
        fix = "allow ptrace in the security module or sandbox that this program runs in"
        return Finding("ptrace", "missing", f"refused ({said})", fix)
    if where.run_command:
        fix = f"{where.run_command} --security-opt seccomp=unconfined, or a seccomp profile that allows ptrace"
    else:
        fix = "allow ptrace in the seccomp profile that this program runs with"
    return Finding("ptrace", "missing", f"refused ({said}) by a seccomp filter", fix)


def memory_folder() -> Finding:
    """Room for the guests' memory, and may they run from there?"""
    try:
        chosen = memory.choose()
    except CapabilityError:
        chosen = MEMORY_FOLDER
    if chosen != MEMORY_FOLDER:
        return judge_other_folder(
            chosen, memory.room(chosen), memory.trouble(MEMORY_FOLDER), can_hold_forks=memory.can_hold_forks(chosen)
        )
    if not MEMORY_FOLDER.is_dir():
        return Finding("memory folder", "missing", f"no {MEMORY_FOLDER}", f"sudo mount -t tmpfs tmpfs {MEMORY_FOLDER}")
    facts = os.statvfs(MEMORY_FOLDER)
    is_noexec = bool(facts.f_flag & os.ST_NOEXEC)
    return judge_memory_folder(facts.f_bavail * facts.f_frsize, is_noexec, len(os.sched_getaffinity(0)), look())


def judge_other_folder(folder: Path, free_bytes: int, trouble: str, *, can_hold_forks: bool = True) -> Finding:
    """The finding for guests whose memory is not in /dev/shm.

    `trouble`: why it is not; "" where that has too little room, or another folder is asked for.
    """
    is_named = os.environ.get("SCPSLAB_MEMORY")
    why = "SCPSLAB_MEMORY names it" if is_named else f"{MEMORY_FOLDER} {trouble or 'has too little room'}"
    found = f"{free_bytes / 1e9:.1f} GB free in {folder}: {why}"
    if free_bytes < memory.NEEDED_BYTES:
        fix = "small cells run; scpslab run --jobs 1"
        return Finding("memory folder", "warning", f"{found}; a cell may need {memory.NEEDED_BYTES / 1e6:.0f} MB", fix)
    if not can_hold_forks:
        text = (
            f"{found}; no files without a name there (O_TMPFILE), so every cell boots: "
            "the same bytes, in twice the time"
        )
        return Finding("memory folder", "warning", text, "name a folder of another file system: SCPSLAB_MEMORY=/FOLDER")
    return Finding("memory folder", "ok", found)


def judge_memory_folder(free_bytes: int, is_noexec: bool, cores: int, where: Surroundings) -> Finding:
    """The finding for so much room, with as many cells at a time as there are cores."""
    name, size = "memory folder", f"{math.ceil(memory.NEEDED_BYTES * cores / 1e9)}g"
    free = f"{free_bytes / 1e9:.1f} GB" if free_bytes >= 10**9 else f"{free_bytes / 1e6:.0f} MB"
    if where.run_command:
        fix = f"{where.run_command} --tmpfs {MEMORY_FOLDER}:exec,size={size}"
    elif where.container == "kubernetes":
        fix = f"mount a volume emptyDir with medium: Memory at {MEMORY_FOLDER}"
    else:
        fix = f"sudo mount -o remount,exec,size={size} {MEMORY_FOLDER}"
    if is_noexec:
        return Finding(name, "missing", f"{MEMORY_FOLDER} is mounted noexec: the lab kernel cannot run from there", fix)
    found, fits = f"{free} free in {MEMORY_FOLDER}", free_bytes // memory.NEEDED_BYTES
    if fits >= cores:
        return Finding(name, "ok", found)
    if fits:
        fix = f"scpslab run --jobs {fits}, or: {fix}"
        return Finding(name, "warning", f"{found}: enough for {fits} of {cores} cells at a time", fix)
    return Finding(name, "missing", f"{found}; a cell needs {memory.NEEDED_BYTES / 1e6:.0f} MB", fix)


def disk() -> Finding:
    """Room to build and to keep results?"""
    place = next(folder for folder in (parts.cache_dir(), *parts.cache_dir().parents) if folder.exists())
    if not os.access(place, os.W_OK):
        fix = "set SCPSLAB_CACHE to a folder that you may write to"
        return Finding("disk", "missing", f"{place} cannot be written to, and {parts.cache_dir()} is there", fix)
    free = shutil.disk_usage(place).free
    enough = free >= (parts.NEEDED_BYTES if _unbuilt() else 10**9)
    fix = "free disk space, or set SCPSLAB_CACHE to a folder on another disk"
    return Finding("disk", "ok" if enough else "missing", f"{free / 1e9:.1f} GB free for {parts.cache_dir()}", fix)


def lock(run: RunInGuest) -> Finding:
    """Does a guest's kernel refuse folders of this machine?"""
    name = "sandbox: kernel's lock"
    if _unbuilt():
        return Finding(name, "missing", "kernel, guest image or programs not built", SETUP)
    with tempfile.TemporaryDirectory(prefix="scpslab-") as folder:
        lab, cell = Path(folder, "lab"), Path(folder, "cell")
        lab.mkdir()
        cell.mkdir()
        (lab / "run_lab.py").write_text(TRY)
        try:
            console = run(ensure(silent), lab, cell, LOCK_LIMITS)
        except (ScpslabError, OSError) as error:
            return Finding(name, "missing", str(error), SETUP)
        found = cell / "out" / "found"
        if not found.exists():
            return Finding(
                name, "missing", f"the guest gave no answer: {console}", "fix the check 'lab kernel starts' first"
            )
        if found.read_text() != "refused":
            fix = f"scpslab clean --images, then {SETUP}"
            return Finding(name, "missing", "a guest's root can mount this machine's folders", fix)
    return Finding(name, "ok", "a guest's root cannot mount this machine's folders")


def confinement() -> Finding:
    """Which means does this machine's kernel have to confine the lab kernel?"""
    name = "sandbox: around it"
    tools = parts.find(parts.TOOLS, parts.cache_dir())
    if tools is None:
        return Finding(name, "missing", "no launcher yet", SETUP)
    means = protections(tools)
    if means.landlock and means.seccomp:
        return Finding(name, "ok", f"Landlock {means.landlock} and seccomp")
    lacking = " and ".join(
        what for what, there in (("Landlock", means.landlock), ("seccomp", means.seccomp)) if not there
    )
    fix = "use Linux 5.13 or newer, booted with landlock in lsm=…"
    return Finding(name, "warning", f"no {lacking}; the kernel's lock holds alone", fix)


def addresses() -> Finding:
    """Does this machine start the lab kernel at the same addresses every time?"""
    name = "same memory in every guest"
    tools = parts.find(parts.TOOLS, parts.cache_dir())
    if tools is None:
        return Finding(name, "missing", "no launcher yet", SETUP)
    if protections(tools).addresses:
        return Finding(name, "ok", "the lab kernel starts at the same addresses every time")
    fix = "in a container, docker run --security-opt seccomp=unconfined, or a profile that allows personality(2)"
    found = "personality(2) is refused: guests differ by up to 16 MiB of memory, and results may differ with it"
    return Finding(name, "warning", found, fix)


def processes() -> Finding:
    """May this user start enough processes?"""
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if limit in (-1, resource.RLIM_INFINITY) or limit >= NEEDED_PROCESSES:
        return Finding("processes", "ok", "no limit" if limit < 0 else f"limit {limit}")
    return Finding("processes", "warning", f"limit {limit}", f"ulimit -u {NEEDED_PROCESSES * 4}")


def cores() -> Finding:
    """How many cells run at a time?"""
    return Finding("cores", "ok", f"{len(os.sched_getaffinity(0))}: as many cells at a time")


def appliance() -> Finding:
    """Do cells run in a machine of QEMU's here, and why?"""
    return judge_appliance(machines.trouble(), shutil.which(QEMU) is not None, is_accelerated())


def judge_appliance(why: str, has_qemu: bool, accelerated: bool) -> Finding:
    """The finding where the lab kernel cannot run for a reason ("" if it can), with or without QEMU, whose machines may
    use the processor itself.
    """
    name = "appliance"
    if not why:
        return Finding(name, "ok", "not needed: the lab kernel runs on this machine itself")
    if not has_qemu:
        fix = "sudo apt-get install qemu-system-x86; or an x86-64 Linux machine that allows ptrace"
        return Finding(name, "missing", f"{why}, and there is no {QEMU}", fix)
    fix = "faster: an x86-64 Linux machine that allows ptrace"
    return Finding(name, "warning", f"{why}: {in_a_machine(is_accelerated=accelerated)}", fix)


def shared_parts() -> Finding:
    """Does this machine have parts and results that all users read?"""
    name = "system cache"
    try:
        cache = parts.system_cache()
    except CapabilityError as error:
        return Finding(name, "missing", str(error), "")
    if cache is None:
        return Finding(name, "ok", "none")
    there = [part.title for part in (*parts.PARTS, parts.STACK) if (parts.place(part, cache) / part.product).exists()]
    results = " and results" if (cache / "results").is_dir() else ""
    return Finding(name, "ok", f"{cache} with {', '.join(there) or 'no part of this version'}{results}")


def of_lab_kernel(run: RunInGuest) -> list[Finding]:
    """What the lab kernel needs as a process of this machine."""

    def sandbox() -> Finding:
        return lock(run)

    checks = (machine, system, programs, mounts, images, published, ptrace, memory_folder, boot, sandbox)
    return _made((*checks, confinement, addresses, disk, rights, processes, cores, appliance, shared_parts))


def of_appliance() -> list[Finding]:
    """What a machine needs on which cells run in the appliance."""
    return _made((appliance, system, images, published, disk, rights, cores, shared_parts))


def _made(checks: Iterable[Callable[[], Finding]]) -> list[Finding]:
    findings = []
    for check in checks:
        try:
            findings.append(check())
        except CapabilityError as error:
            # A part that cannot be unpacked concerns several; the message says what to do.
            findings.append(Finding(check.__name__, "missing", str(error)))
    return findings


STATUS = Path("/proc/self/status")


def rights() -> Finding:
    """May others change what this user runs?"""
    name, cache = "cache's rights", cache_dir()
    for path in (cache, *(sorted(cache.iterdir()) if cache.is_dir() else ())):
        if why := _changeable(path):
            fix = f"chmod -R go-w {cache}, or remove it if you do not know what is in it: it is built again"
            return Finding(name, "warning", f"{path} is {why}: others may change programs that you run", fix)
    mask = _umask()
    if mask is not None and not mask & stat.S_IWOTH:
        found = f"umask {mask:03o}: others may write to every file that you make, the cache's too"
        return Finding(name, "warning", found, "umask 022, also in your shell's start file")
    return Finding(name, "ok", f"only you may change {cache}")


def _changeable(path: Path) -> str:
    try:
        why = somebody_elses(path)
        return why.replace("a file", "a folder") if path.is_dir() else why
    except OSError:
        return ""


def _umask() -> int | None:
    """The mask of new files. Asking the system for it would change it."""
    try:
        found = re.search(r"^Umask:\s*([0-7]+)", STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1], 8) if found else None
