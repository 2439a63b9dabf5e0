"""The lab kernel as a process: the common part of engines `virtual` and `live`.

The kernel finds its input under three names in its working folder (images/guest/tools/init.c). Its command line, which
the kernel mixes into its random numbers, is therefore the same for the same cell on every machine and for every user.
"""

import hashlib
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from scpslab.core.errors import CapabilityError, LabError
from scpslab.core.scratch import scratch
from scpslab.engine import appliance, findings, memory
from scpslab.engine.base import Finding, LabProcess, Needs, own_images
from scpslab.engine.bundle import bundle_hash, ensure_bundle, input_hash
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.confinement import launcher, sweep
from scpslab.engine.console import SessionConsole
from scpslab.engine.process import ProcessEngine
from scpslab.lab.place import OUT
from scpslab.plan import NetworkPlan, Plan
from scpslab.plan.cell import CellPlan, Limits
from scpslab.plan.packs import Pack
from scpslab.runs import CellFiles
from scpslab.setup import Images, Say, cache_dir, ensure, ensure_stack
from scpslab.setup.images import PartFacts, ensure_boot_with, parts_facts
from scpslab.setup.own_images import OwnImage, archive, find_image, lend
from scpslab.setup.packs import ensure_layers

ROOT_ARGUMENTS = ["hostfs=/proc/self/cwd", "root=lab", "rootfstype=hostfs", "rootflags=boot", "ro", "init=/init"]
COMPILE_LIMITS = {"memory_mib": 512, "wall_s": 120}
# The FY97 network with Open vSwitch needs about 50.
PROCESSES_PER_CELL = 64
OWN_IMAGES_SHARE = 4


class Session(subprocess.Popen[bytes]):
    """A process that leads a session of its own: it is ended with all that it has started."""

    def __init__(self, words: list[str], **options: Any) -> None:
        super().__init__(words, start_new_session=True, **options)

    def kill(self) -> None:
        """Ends the session; one that has ended already is no error."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


@dataclass(frozen=True, kw_only=True)
class Guest:
    """What a guest is made of: kernel, launcher's folder, boot folder, lab program, archives of images of others.

    `clock`: the kernel's arguments for its clock. `seed` of its random numbers: "" where it takes them from the host.
    """

    kernel: Path
    tools: Path
    boot: Path
    program: Path
    memory_mib: int
    clock: tuple[str, ...]
    seed: str
    images: tuple[Path, ...] = ()

    def furnish(self, folder: CellFolder) -> None:
        """Puts boot folder, lab program and images of others where the kernel finds them."""
        lend(list(self.images), folder.inside / "images")
        self.link(folder)

    def link(self, folder: CellFolder) -> None:
        """Puts boot folder and lab program where the kernel finds them."""
        for name, target in (("boot", self.boot), ("lab", self.program)):
            (folder.path / name).symlink_to(target.resolve())

    def command(self, console: str) -> list[str]:
        """The kernel's command line."""
        words = [str(self.kernel), f"mem={self.memory_mib}M", *ROOT_ARGUMENTS, "con=null", f"con0={console}", "quiet"]
        return [*words, "norandmaps", *self.clock, *([f"lab_seed={self.seed}"] if self.seed else [])]

    @contextmanager
    def boot_in(
        self, folder: CellFolder, core: int | None = None, console: SessionConsole | None = None
    ) -> Iterator[LabProcess]:
        """A kernel in a folder. It keeps its memory file, and a note of its process id, in a scratch folder of its own.

        The launcher confines it to its folders, and ends it when this program ends.
        """
        with scratch(memory.choose()) as home:
            words = launcher(self.tools, self.kernel, folder.path, home)
            environment = {"TMPDIR": str(home), "HOME": str(home)}
            if console:
                words += [*self.command(f"fd:{console.input},fd:{console.output}"), f"lab_term={console.kind}"]
                terminal = (console.input, console.output)
                yield subprocess.Popen(words, pass_fds=terminal, cwd=folder.path, env=environment)
                return
            with folder.console.open("wb") as log:
                words += self.command("null,fd:1")
                quiet, both = subprocess.DEVNULL, subprocess.STDOUT
                process = Session(words, stdin=quiet, stdout=log, stderr=both, cwd=folder.path, env=environment)
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            yield process


@dataclass(frozen=True)
class _Packed:
    """A boot folder with the layers of a pack, a hash of their bytes, and the versions of what is in them."""

    boot: Path
    hash: str
    versions: dict[str, str]


class UmlEngine(ProcessEngine):
    """Runs cells as User-Mode Linux processes, each pinned to one core.

    A guest's system calls switch between two host processes. On one core a switch costs a third of what it costs across
    two cores.
    """

    lab_name: ClassVar[str] = "the lab kernel"
    takes_packs: ClassVar[bool] = True
    clock: ClassVar[tuple[str, ...]]

    def __init__(self, *, snapshots: bool = True) -> None:
        super().__init__(snapshots=snapshots)
        # Built only for plans that need them, so that results of other plans do not depend on them.
        self._images: dict[tuple[bool, bool], Images] = {}
        self._bundles: dict[Needs, tuple[Path, str]] = {}
        self._own_images: dict[str, tuple[OwnImage, Path]] = {}
        self._packs: dict[tuple[Pack, bool], _Packed] = {}

    @cached_property
    def _input_hash(self) -> str:
        return input_hash()

    @cached_property
    def _parts_facts(self) -> dict[str, PartFacts]:
        return parts_facts(cache_dir())

    def prepare(self, say: Say, plans: Iterable[Plan]) -> None:
        """Builds kernel, guest image, lab program and, if a plan needs it, the SCPS stack, unless they are in the
        cache.
        """
        self.check()
        plans = list(plans)
        memory.check_guests(plans)
        for needs in {Needs.of(plan) for plan in plans} - set(self._bundles):
            which = needs.docker, needs.ipv6
            images = self._images[which] = self._images.get(which) or ensure(say, *which)
            scps = ensure_stack(say) if needs.stack else None
            self._bundles[needs] = (
                ensure_bundle(images, scps, cache_dir(), partial(self._compile, images)),
                bundle_hash(images, scps),
            )
        for plan in plans:
            if (pack := plan.network.pack) and (pack, docker := Needs.of(plan).docker) not in self._packs:
                layers = ensure_layers(pack, say)
                boot, digest = ensure_boot_with(
                    say, {name: layer.path for name, layer in layers.items()}, with_docker=docker
                )
                versions = {name: version for layer in layers.values() for name, version in layer.versions.items()}
                self._packs[pack, docker] = _Packed(boot, digest, versions)
            if names := own_images(plan):
                self._bring_images(names, plan.network.memory_mib, say)

    def findings(self) -> list[Finding]:
        """See Engine.findings."""
        return findings.of_lab_kernel(self.boot)

    def check(self) -> None:
        """Checks that the lab kernel can run here.

        Raises:
            CapabilityError: it cannot.
        """
        if said := appliance.machine_trouble():
            raise CapabilityError(
                f"engine {self.name}: {said}; expected such a machine. Use --engine virtual, or --engine host as "
                "root (docs/vagrant.md)."
            )
        _check_processes()
        memory.choose()

    def _bring_images(self, names: list[str], memory_mib: int, say: Say) -> None:
        for name in set(names) - set(self._own_images):
            image = find_image(name)
            self._own_images[name] = (image, archive(image, cache_dir(), say))
        size_mib = sum(self._own_images[name][0].size_bytes for name in names) >> 20
        # A guest keeps in memory the file, its unpacked content, and the project's own images.
        if size_mib > memory_mib // OWN_IMAGES_SHARE:
            raise CapabilityError(
                f"image {', '.join(names)}: found {size_mib} MiB; expected at most a quarter of the guest's memory "
                f"of {memory_mib} MiB. "
                f"Raise limits.memory by {OWN_IMAGES_SHARE * size_mib - memory_mib} MiB, or make the image smaller."
            )

    def hash(self, plan: Plan) -> str:
        """Hash of kernel, guest image, lab program, what makes a cell's input and, if the plan needs them, the SCPS
        stack, images of others and layers over the guest image.
        """
        bundle = self._bundles[Needs.of(plan)][1]
        ids = [self._own_images[name][0].id for name in own_images(plan)]
        if packed := self._packed(plan):
            ids.append(packed.hash)
        return hashlib.sha256("\n".join([bundle, self._input_hash, *ids]).encode()).hexdigest()[:24]

    def facts(self) -> dict[str, dict[str, Any]]:
        """The parts by name: whether they are the published ones (null: none is published for the recipe), and where
        versions differ. Where plans have packs, `packages`: the versions of what is in them, by name.
        """
        packages = {name: version for packed in self._packs.values() for name, version in packed.versions.items()}
        return {"parts": self._parts_facts, **({"packages": packages} if packages else {})}

    def _compile(self, images: Images, lab: Path, cell: Path) -> None:
        tail = self.boot(images, lab, cell, COMPILE_LIMITS)
        if not CellFiles(cell / OUT).has_ended:
            raise LabError(
                f'lab program: found that the guest did not compile it, last lines "{tail}"; '
                'expected compiled code. Run "scpslab doctor".'
            )

    def boot(self, images: Images, program: Path, cell: Path, limits: dict[str, int]) -> str:
        """Runs run_lab.py of the folder `program` in a guest to its end; its results are then in `cell`/out.

        Returns the last lines of the console.
        """
        with scratch() as work:
            (work / "cell").symlink_to(cell.resolve())
            (cell / OUT).mkdir(exist_ok=True)
            folder = CellFolder(work, no_network(limits))
            guest = self._made_of(images, program, folder.plan)
            guest.link(folder)
            with self.program_in(guest, folder) as process:
                return self._wait(process, limits["wall_s"]) or folder.console_tail()

    def guest(self, plan: Plan) -> Guest:
        """What the guest of a prepared plan is made of."""
        needs = Needs.of(plan)
        guest = self._made_of(self._images[needs.docker, needs.ipv6], self._bundles[needs][0], plan)
        packed = self._packed(plan)
        return replace(guest, boot=packed.boot) if packed else guest

    def _packed(self, plan: Plan) -> _Packed | None:
        pack = plan.network.pack
        return self._packs[pack, Needs.of(plan).docker] if pack else None

    def _made_of(self, images: Images, program: Path, plan: Plan) -> Guest:
        return Guest(
            kernel=images.kernel,
            tools=images.tools_dir,
            boot=images.boot_dir,
            program=program,
            memory_mib=plan.network.memory_mib,
            clock=self.clock,
            seed=plan.cell.kernel_seed if self.deterministic else "",
            images=tuple(self._own_images[name][1] for name in own_images(plan)),
        )

    def furnish(self, folder: CellFolder) -> None:
        """See Guest.furnish."""
        self.guest(folder.plan).furnish(folder)

    def lab(
        self, folder: CellFolder, core: int | None = None, console: SessionConsole | None = None
    ) -> AbstractContextManager[LabProcess]:
        """A guest in the folder, booted for it."""
        return self.guest(folder.plan).boot_in(folder, core, console)

    def program_in(self, guest: Guest, folder: CellFolder) -> AbstractContextManager[LabProcess]:
        """A guest that runs a program, and no cell."""
        return guest.boot_in(folder)

    def look_over(self, folder: CellFolder) -> str:
        """Removes everything except files and folders from the guest's output."""
        left = sweep(folder.out.path)
        return f"the guest left something other than files and folders: {', '.join(left)}" if left else ""

    def hanging(self, process: LabProcess) -> str:
        """The program of the guest that lets no virtual time pass."""
        return standstill(process.pid) if self.deterministic else ""

    def nudge(self, process: LabProcess) -> None:
        """Repeats the signal for input.

        About once in a thousand lines the kernel misses it, and the prompt would wait until the next key.
        """
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            return
        caught = int(status.partition("SigCgt:")[2].split()[0], 16)
        # A kernel that does not listen yet would be ended by it.
        if caught >> signal.SIGIO - 1 & 1 and process.poll() is None:
            os.kill(process.pid, signal.SIGIO)


def no_network(limits: dict[str, int]) -> Plan:
    """A plan for a guest that runs no cell."""
    network = NetworkPlan(
        topology="none", containers="process", memory_mib=limits["memory_mib"], nodes=(), links=(), serial_links=()
    )
    bounds = Limits(virtual_s=limits["wall_s"], wall_s=limits["wall_s"])
    return Plan(
        network=network,
        cell=CellPlan(id="boot", scenario="boot", axes={}, repeat=1, kernel_seed="0" * 64, limits=bounds),
    )


def _check_processes() -> None:
    """Checks the limit of processes: a guest's processes are processes of the host too, and without them a cell fails
    half-way.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.geteuid() != 0 and allowed != resource.RLIM_INFINITY and allowed < PROCESSES_PER_CELL:
        raise CapabilityError(
            f"ulimit -u: found {allowed} processes allowed; expected at least {PROCESSES_PER_CELL} for each cell "
            "that runs. Raise the limit."
        )


# Why virtual time stands still is looked for from the host, before the guest is ended at its wall limit: its programs
# are processes of the host, children of its kernel. One that only computes, or makes one system call after the other,
# lets no virtual time pass.
SAMPLE_S = 0.5
# Share of the activity of all processes of a guest in a sample.
MOST = 0.8
# A guest that works normally switches between its programs less often than one program that polls.
POLLS_PER_S = 5000
PAGE_BYTES = 4096
# The strings of a program are on one of its uppermost pages, behind the kernel's own pages.
PAGES_LOOKED_AT = 12
SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
LONGEST_SHOWN = 120


@dataclass(frozen=True)
class Use:
    """The resources that a process has used so far: processor time in clock ticks, and the number of times that it has
    stopped by itself.
    """

    ticks: int
    stops: int


def standstill(kernel: int) -> str:
    """Which activity of a guest lets no virtual time pass, as the rest of a sentence; "" if this cannot be found out.

    Takes half a second.
    """
    before = _uses(kernel)
    time.sleep(SAMPLE_S)
    after = _uses(kernel)
    grown = {
        pid: Use(use.ticks - before[pid].ticks, use.stops - before[pid].stops)
        for pid, use in after.items()
        if pid in before
    }
    programs = {pid: use for pid, use in grown.items() if pid != kernel}
    if not programs:
        return ""
    computes = max(programs, key=lambda pid: programs[pid].ticks)
    if programs[computes].ticks > MOST * sum(use.ticks for use in grown.values()) > 0 and not programs[computes].stops:
        return (
            f"; virtual time stood still, because {_named(computes)} computed without any system call. "
            "Let the program sleep, or wait for something"
        )
    polls = max(programs, key=lambda pid: programs[pid].stops)
    if programs[polls].stops > max(MOST * sum(use.stops for use in programs.values()), POLLS_PER_S * SAMPLE_S):
        return (
            f"; virtual time hardly passed, because {_named(polls)} made system calls without sleeping. "
            "Let the program sleep, or wait for something"
        )
    return ""


def _uses(kernel: int) -> dict[int, Use]:
    found = {}
    for pid in (kernel, *_children(kernel)):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        stops = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)
        found[pid] = Use(int(fields[11]) + int(fields[12]), int(stops[1]) if stops else 0)
    return found


def _children(pid: int) -> Iterator[int]:
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from map(int, tasks.read_text().split())
        except OSError:
            continue


def _named(pid: int) -> str:
    words = command_line(_upper_pages(pid))
    shown = " ".join(" ".join(words).split())
    return f'"{shown if len(shown) <= LONGEST_SHOWN else shown[: LONGEST_SHOWN - 1] + "…"}"' if words else "a program"


def _upper_pages(pid: int) -> Iterator[bytes]:
    """The last pages of a process's mappings, from the uppermost one of the guest's memory on."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            for line in reversed([line for line in lines if " /" in line][-PAGES_LOOKED_AT:]):
                end = int(line.split()[0].partition("-")[2], 16)
                try:
                    memory.seek(end - PAGE_BYTES)
                    page = memory.read(PAGE_BYTES)
                except OSError:
                    continue
                yield page
    except OSError:
        return


def command_line(pages: Iterator[bytes]) -> list[str]:
    """The words of a program's command line: the first page that ends as Linux begins a stack has them before the
    settings and the program's file.
    """
    for page in pages:
        words = [part.decode(errors="replace") for part in page.rstrip(b"\0").split(b"\0") if part]
        settings = [index for index, word in enumerate(words) if SETTING.match(word)]
        # The command line lies between the name of the machine, which follows random bytes, and the first setting.
        first = next((index for index, word in enumerate(words, 1) if word.endswith(os.uname().machine)), None)
        if not settings or first is None or not words[-1].startswith(("/", "./")):
            continue
        return words[first : next((index for index in settings if index >= first), first)] or words[-1:]
    return []
