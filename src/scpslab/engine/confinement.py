"""The protection around a guest besides its kernel: the launcher `confine` (images/guest/tools/confine.c), and a check
of the files a guest leaves.
"""

import errno
import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scpslab.lab.place import OUT

LAUNCHER = "confine"
# The files of the machine that the lab kernel may read besides its own folders: its processor, and an empty console.
MACHINE_FILES = ("/proc/cpuinfo",)
NULL_DEVICE = "/dev/null"
PERMISSIONS = 0o777


@dataclass(frozen=True)
class Protections:
    """The means of this machine's kernel to confine a process: Landlock's version (0: none), and filters of system
    calls.

    `addresses`: whether it lets a program have the same addresses every time, without which guests have more or less
    memory from one boot to the next.
    """

    landlock: int
    seccomp: bool
    addresses: bool


def protections(tools: Path) -> Protections:
    """Asks the launcher which means there are."""
    said = subprocess.run([tools / LAUNCHER, "--state"], capture_output=True, text=True, check=True).stdout
    found = {name: int(value) for name, value in (line.split() for line in said.splitlines())}
    return Protections(found["landlock"], bool(found["seccomp"]), bool(found["addresses"]))


def launcher(tools: Path, kernel: Path, work: Path, memory: Path, cells: Path | None = None) -> list[str]:
    """The words in front of the lab kernel's command line.

    The kernel then sees only its three folders in `work` and the folder of its memory file. One that others are forked
    from sees `cells`, in which theirs are, in place of a cell of its own; a fork keeps only its own of these.
    """
    own = ("boot", "lab") if cells else ("boot", "lab", "cell")
    words = [str(tools / LAUNCHER), "--run", str(kernel)]
    for path in (*MACHINE_FILES, *((work / name).resolve() for name in own)):
        words += ["--read", str(path)]
    for path in (NULL_DEVICE, cells or (work / "cell" / OUT).resolve(), memory):
        words += ["--write", str(path)]
    return [*words, "--"]


def sweep(folder: Path) -> list[str]:
    """Removes everything except files and folders from a guest's folder, and returns the names.

    Whoever looks into the folder would follow a symbolic link or open a pipe. The lab kernel makes neither; this check
    also holds if it does.
    """
    removed = []
    for inside, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(inside, name)
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                path.unlink()
                removed.append(str(path.relative_to(folder)))
            elif stat.S_IMODE(mode) & ~PERMISSIONS:
                path.chmod(stat.S_IMODE(mode) & PERMISSIONS)
    return removed


def take(folder: Path, parts: Mapping[str, Path]) -> None:
    """Copies parts of a folder, by name, to their targets: files and folders, as `sweep` leaves them.

    Whoever may write to the folder may do so meanwhile: each name is opened once, beneath the folder that is open
    already, and no link is followed.
    """
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for name, target in parts.items():
            _take(at, name, target)
    finally:
        os.close(at)


def _take(at: int, name: str, target: Path) -> None:
    try:
        # Nobody may ever write into a pipe, so opening it must not wait.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOENT, errno.ENXIO):
            return
        raise
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            target.mkdir(exist_ok=True)
            for inner in [entry.name for entry in os.scandir(descriptor)]:
                _take(descriptor, inner, target / inner)
        elif stat.S_ISREG(found.st_mode):
            with open(descriptor, "rb", closefd=False) as file, target.open("wb") as copy:
                shutil.copyfileobj(file, copy)
    finally:
        os.close(descriptor)
