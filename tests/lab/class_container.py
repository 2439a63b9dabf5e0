"""A container of one processor and 2 GB, without network, that has this machine's programs and this tree to read, and a
folder to write: what grades a class.
"""

import io
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scpslab.setup import cache_dir
from tests.lab.pages import ROOT

IMAGE = "scpslab/class-test:1"
LIMITS = ("--network", "none", "--memory", "2g", "--memory-swap", "2g", "--read-only")
PLACES = ("--tmpfs", "/dev/shm:exec,size=1g")
# A kernel may have either version of control groups: most memory with and without files' cache, and processor time.
PEAK = "cat /sys/fs/cgroup/memory/memory.max_usage_in_bytes /sys/fs/cgroup/memory.peak 2>/dev/null || true"
CPU = "cat /sys/fs/cgroup/cpuacct/cpuacct.usage /sys/fs/cgroup/cpu.stat 2>/dev/null || true"
PARTS, RESULTS = "/parts", "results"


@dataclass(frozen=True)
class Cost:
    """What a command took: on the wall clock, of the processor, and the most memory, the files' cache included."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


class Container:
    """One that runs."""

    def __init__(self, name: str, environment: dict[str, str]) -> None:
        self._name, self._environment = name, environment

    def run(self, words: Sequence[str]) -> tuple[subprocess.CompletedProcess[str], Cost]:
        """Runs a command to its end."""
        given = [word for key, value in self._environment.items() for word in ("--env", f"{key}={value}")]
        begun, before = time.monotonic(), self._cpu_s()
        ended = subprocess.run(
            ["docker", "exec", *given, self._name, *words], capture_output=True, text=True, check=False
        )
        peak = _docker("exec", self._name, "sh", "-c", PEAK).split()
        return ended, Cost(time.monotonic() - begun, self._cpu_s() - before, int(peak[0]))

    def _cpu_s(self) -> float:
        said = _docker("exec", self._name, "sh", "-c", CPU).split()
        return int(said[0]) / 1e9 if said[0].isdigit() else int(said[said.index("usage_usec") + 1]) / 1e6


@contextmanager
def container(folder: Path) -> Iterator[Container]:
    """A container that may write into a folder, which is at its own path there. Of results that this machine keeps it
    has none.
    """
    _image()
    read = dict.fromkeys(("/usr", "/etc", str(ROOT), *_of_python()))
    places = [word for path in read for word in ("--volume", f"{path}:{path}:ro")]
    for path in sorted(cache_dir().iterdir()):
        if path.is_dir() and path.name != RESULTS:
            places += ["--volume", f"{path}:{PARTS}/{path.name}:ro"]
    places += ["--volume", f"{folder}:{folder}", "--workdir", str(folder), "--user", f"{os.getuid()}:{os.getgid()}"]
    cache, temporary = folder / "cache", folder / "temporary"
    for place in (cache, temporary):
        place.mkdir()
    environment = {"SCPSLAB_CACHE": str(cache), "SCPSLAB_SYSTEM_CACHE": PARTS}
    environment |= {"HOME": str(folder), "TMPDIR": str(temporary)}
    # The processor is one of this process's, so that several classes at a time may have one each.
    processor = ("--cpuset-cpus", str(min(os.sched_getaffinity(0))))
    name = _docker("run", "--detach", *LIMITS, *processor, *PLACES, *places, IMAGE, "sleep", "infinity")
    try:
        yield Container(name, environment)
    finally:
        _docker("rm", "--force", name)


def _of_python() -> Iterator[str]:
    """The folders outside of the tree that this Python needs."""
    packages = (path for path in sys.path if path.endswith("site-packages"))
    for place in map(Path, (sys.prefix, sys.base_prefix, *packages)):
        if not any(place.is_relative_to(known) for known in (ROOT, "/usr")):
            yield str(place)


def _image() -> None:
    """An image that has nothing but the places where things are put, made once."""
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, check=False).returncode == 0:
        return
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in ("usr", "etc", "proc", "sys", "dev", "tmp", "parts"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for path in Path("/").iterdir():
            if path.is_symlink() and path.name.startswith(("bin", "sbin", "lib")):
                entry = tarfile.TarInfo(path.name)
                entry.type, entry.linkname = tarfile.SYMTYPE, str(path.readlink())
                archive.addfile(entry)
    subprocess.run(["docker", "import", "-", IMAGE], input=packed.getvalue(), check=True, capture_output=True)


def _docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout.strip()
