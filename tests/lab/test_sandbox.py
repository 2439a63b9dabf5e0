"""A guest is a sandbox, whatever its root does: kernel's lock and confinement each hold alone (docs/security.md)."""

import json
import shutil
import socket
import subprocess
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from scpslab.core.scratch import scratch
from scpslab.engine.confinement import LAUNCHER, launcher, protections
from scpslab.engine.template import TemplateGuest
from scpslab.engine.uml import ROOT_ARGUMENTS
from scpslab.engine.virtual import VirtualEngine
from scpslab.setup import Images, ensure, silent
from scpslab.setup.images import PROJECT

BUSINESS = "nobody's business"
ESCAPE = Path(__file__).parent / "in_guest" / "escape.py"
TOOLS = PROJECT / "images" / "guest" / "tools"
# What init does to lock the machine's folders.
SEALED = '\tset("/proc/sys/fs/hostfs_sealed", "1\\n");\n'
LIMITS = {"memory_mib": 512, "wall_s": 120}
ATTACK = """
events:
- at: 1 s
  node: h1
  command: >-
    mkdir -p /tmp/x; mount -t hostfs -o hostfs=../../../../../../../../../../../../ none /tmp/x; echo mounted $?;
    echo 1 >/proc/lab_snapshot && echo forked;
    cat /tmp/x{secret}; echo PWNED >/tmp/x{target}; ls /cell; grep CapBnd /proc/self/status;
    python3 -c 'import ctypes, os; os.setgroups([]); os.setgid(65534); os.setuid(65534);
    print("rings", ctypes.CDLL(None, use_errno=True).syscall(425, 8, bytes(120)), os.strerror(ctypes.get_errno()))'
  timeout: 10 s
limits: {{lab_time: 60 s, wall_time: 100 s}}
"""


@pytest.fixture(scope="module")
def images() -> Images:
    return ensure(silent)


@dataclass
class Machine:
    """What is on the machine for a guest to get at, and the guest's own folders."""

    folder: Path
    images: Images

    def __post_init__(self) -> None:
        (self.folder / "home").mkdir()
        self.secret.write_text(BUSINESS)
        (self.folder / "cell").mkdir()
        # As an archive of a Docker image is there: a second name of a file of the cache.
        (self.folder / "lent").write_text("lent")
        (self.folder / "cell" / "lent.txt").hardlink_to(self.folder / "lent")
        (self.folder / "lab").mkdir()
        shutil.copyfile(ESCAPE, self.folder / "lab" / "run_lab.py")
        self.listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._answer, daemon=True).start()
        job = {"secret": str(self.secret), "target": str(self.target), "port": self.listening.getsockname()[1]}
        (self.folder / "cell" / "job.json").write_text(json.dumps(job))
        self.before = self.state()

    @property
    def secret(self) -> Path:
        return self.folder / "home" / "secret"

    @property
    def target(self) -> Path:
        return self.folder / "home" / "target"

    def _answer(self) -> None:
        try:
            self.listening.accept()[0].sendall(BUSINESS.encode())
        except OSError:
            return

    def state(self) -> list[Any]:
        """Everything that no guest may change."""
        files = [path for name in ("home", "lab") for path in sorted((self.folder / name).rglob("*"))]
        boot = [path.stat() for path in sorted(self.images.boot_dir.iterdir())]
        return [
            *(
                (path, path.read_bytes(), path.stat().st_mode, path.stat().st_mtime)
                for path in [*files, self.folder / "lent"]
                if path.is_file()
            ),
            *((path.st_mode, path.st_size, path.st_mtime_ns) for path in boot),
        ]

    def attacked_by_a_guest(self) -> dict[str, Any]:
        """What a guest's root got, by attempt."""
        console = VirtualEngine().boot(self.images, self.folder / "lab", self.folder / "cell", LIMITS)
        self.listening.close()
        return got(self.folder / "cell", console)

    def assert_nothing_was_got(self) -> None:
        """Lets a guest attack: it gets nothing, changes nothing, and leaves nothing but files and folders."""
        assert self.attacked_by_a_guest() == {}
        assert self.state() == self.before
        assert left(self.folder / "cell") == []


def got(cell: Path, console: str) -> dict[str, Any]:
    """What was got, by attempt."""
    assert (cell / "out" / "attempts.json").exists(), console
    attempts: dict[str, Any] = json.loads((cell / "out" / "attempts.json").read_text())
    return {name: result["got"] for name, result in attempts.items() if "got" in result}


GOES_ON = """
import os, runpy
entry = os.open("/proc/lab_snapshot", os.O_WRONLY)
os.write(entry, b"1")
runpy.run_path("/opt/scpslab/escape.py", run_name="__main__")
"""


def attacked_by_a_fork(folder: Path, images: Images) -> dict[str, Any]:
    """What root of a fork got of the cell beside it, by attempt; that cell's files are as before."""
    program, home = folder / "lab", folder / "T" / "home"
    one, other = folder / "T" / "cells" / "one", folder / "T" / "cells" / "other"
    program.mkdir()
    shutil.copyfile(ESCAPE, program / "escape.py")
    (program / "run_lab.py").write_text(GOES_ON)
    for work in (home, one, other):
        (work / "cell" / "out").mkdir(parents=True)
        (work / "lab").symlink_to(program)
        (work / "boot").symlink_to(images.boot_dir)
    (folder / "lent").write_text("lent")
    (one / "cell" / "lent.txt").hardlink_to(folder / "lent")
    out = other / "cell" / "out"
    (out / "secret").write_text(BUSINESS)

    def state() -> list[Any]:
        return [(path, path.stat().st_mode, path.stat().st_mtime) for path in sorted(other.rglob("*"))]

    before = state()
    job = {"secret": str(out / "secret"), "target": str(out / "target"), "port": 9}
    (one / "cell" / "job.json").write_text(json.dumps(job))
    (one / "console.log").touch()
    engine = VirtualEngine()
    with scratch("/dev/shm") as memory:
        words = launcher(images.tools_dir, images.kernel, home, memory, cells=folder / "T")
        words += [str(images.kernel), "mem=512M", *ROOT_ARGUMENTS, "con=null", "con0=null,fd:1", "quiet", "norandmaps"]
        words += [*engine.clock, f"lab_seed={'0d' * 32}"]
        template = TemplateGuest(words, home, {"TMPDIR": str(memory), "HOME": str(memory)}, None)
        try:
            template.boot(LIMITS["wall_s"])
            template.fork(one, None).wait(LIMITS["wall_s"])
        finally:
            template.close()
    attempts = got(one / "cell", (home / "console.log").read_text() + (one / "console.log").read_text())
    assert (out / "secret").read_text() == BUSINESS
    assert state() == before
    return attempts


def compile_to(program: Path, source: str) -> None:
    """Compiles a C program as the guest's own are."""
    program.unlink(missing_ok=True)
    command = ["gcc", "-O1", "-std=gnu11", "-static", "-x", "c", "-o", program, "-"]
    subprocess.run(command, input=source, text=True, check=True, capture_output=True)


def unlocked(boot: Path, images: Images) -> Path:
    """A boot folder whose init locks nothing."""
    source = (TOOLS / "init.c").read_text()
    assert source.count(SEALED) == 1
    shutil.copytree(images.boot_dir, boot, copy_function=shutil.copyfile)
    compile_to(boot / "init", source.replace(SEALED, ""))
    return boot


def left(folder: Path) -> list[str]:
    """What is in a guest's folder besides files and folders, and files that run with others' rights."""
    paths = [
        path
        for path in folder.rglob("*")
        if path.is_symlink() or not (path.is_file() or path.is_dir()) or path.stat().st_mode & 0o7000
    ]
    return sorted(path.name for path in paths)


def test_a_script_cannot_mount_the_machine_s_folders(run, tmp_path):
    """Root of a node has no capability for it and sees nothing of the exchange with the machine."""
    secret, target = tmp_path / "secret", tmp_path / "target"
    secret.write_text(BUSINESS)
    log = run(ATTACK.format(secret=secret, target=target)).cell.log("events-1-h1")

    assert not target.exists()
    assert "rings -1 Operation not permitted" in log
    assert [words for words in (BUSINESS, "mounted 0", "plan.json", "forked") if words in log] == []
    capabilities = int(log.split("CapBnd:")[1].split()[0], 16)
    assert not capabilities & (1 << 21 | 1 << 16 | 1 << 17 | 1 << 19 | 1 << 22 | 1 << 25 | 1 << 27)


def without_protections(folder: Path, images: Images) -> Images:
    """A launcher that finds neither Landlock nor seccomp, as on an old kernel."""
    source = (TOOLS / "confine.c").read_text()
    for call, unknown in (("SYS_CREATE_RULESET = 444", "SYS_CREATE_RULESET = 4440"), ("SYS_seccomp", "4450")):
        assert call in source
        source = source.replace(call, unknown)
    shutil.copytree(images.tools_dir, folder / "tools")
    compile_to(folder / "tools" / LAUNCHER, source)
    assert protections(folder / "tools") == replace(protections(images.tools_dir), landlock=0, seccomp=False)
    return replace(images, tools_dir=folder / "tools")


def without_lock(folder: Path, images: Images) -> Images:
    """An init that locks nothing: folders of the machine can be mounted, but no file read or changed."""
    if not protections(images.tools_dir).landlock:
        pytest.skip("this machine's kernel has no Landlock")
    return replace(images, boot_dir=unlocked(folder / "boot", images))


def as_they_are(folder: Path, images: Images) -> Images:
    """Both protections."""
    return images


@pytest.mark.parametrize("images_of", [as_they_are, without_protections, without_lock])
def test_a_guest_gets_nothing(tmp_path, images, images_of):
    """Its root, with every capability."""
    Machine(tmp_path, images_of(tmp_path, images)).assert_nothing_was_got()


@pytest.mark.parametrize("images_of", [as_they_are, without_lock])
def test_a_fork_gets_nothing_of_the_cell_beside_it(tmp_path, images, images_of):
    """Its root, with every capability and the rights of a process forked from one that reaches all cells."""
    assert attacked_by_a_fork(tmp_path, images_of(tmp_path, images)) == {}


def test_the_launcher_confines_a_program_that_is_no_kernel(tmp_path, images):
    """System calls as of somebody who has taken over the kernel's process: only the folder that may be written is."""
    if not protections(images.tools_dir).landlock:
        pytest.skip("this machine's kernel has no Landlock")
    compile_to(tmp_path / "attacker", (Path(__file__).parent / "attacker.c").read_text())
    secret, folder = tmp_path / "secret", tmp_path / "folder"
    secret.write_text(BUSINESS)
    folder.mkdir()
    before = secret.stat()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [tmp_path / "attacker", secret, folder, str(listening.getsockname()[1])]
        words = [images.tools_dir / LAUNCHER, "--run", command[0], "--write", folder, "--", *command]
        said = subprocess.run(
            words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True, timeout=60
        ).stdout.splitlines()

    assert [line for line in said if line.endswith("got it")] == ["write where it may: got it"]
    assert said[-1].startswith("keep a core file")  # it came to its end
    assert (secret.read_text(), secret.stat().st_mode, secret.stat().st_mtime_ns) == (
        BUSINESS,
        before.st_mode,
        before.st_mtime_ns,
    )
    assert [path.name for path in folder.iterdir()] == ["file"]
