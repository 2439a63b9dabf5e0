"""Appliances: QEMU processes with their shared folders and serial ports, each from start to end, and those of a run."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from scpslab.core import strict_json
from scpslab.core.errors import CapabilityError
from scpslab.core.project import PACKAGE
from scpslab.core.scratch import scratch
from scpslab.engine.appliance import EMULATED, VARIABLE
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.confinement import take
from scpslab.lab.records import LIVE
from scpslab.plan import schema
from scpslab.plan.schema import Part
from scpslab.plan.values import PlainText
from scpslab.setup.images import LAB_KERNEL_MACHINE

# What host and appliance tell each other: one line of JSON for each job, one for each answer, before it the lines of
# the cell's live stream, and files in the exchange folder. Of job 7 it has 7/cell, what the lab reads; afterwards also
# 7/out, what it wrote, and 7/console.log, what it said besides that stream.
# Where the machine has the folders that the host shares (images/appliance/init.c):
MACHINE = Path("/machine")
BOOT, LAB, KERNEL, TOOLS, PROGRAM, EXCHANGE = "boot", "lab", "kernel", "tools", "program", "exchange"
# The name of the serial port.
PORT = "scpslab"
READY = "ready"
# The names of a job's files in its folder.
CELL, OUT, CONSOLE = "cell", "out", "console.log"


class Job(Part):
    """A guest to run. `boot`, `lab`: names of folders among those shared, "" if `lab` is in the exchange folder.

    `is_cell`: a cell with a plan; else a guest of so much memory that runs the program of `lab`. `wall_s`: how long it
    may take, in this machine's time.
    """

    id: int
    boot: str
    lab: str
    is_cell: bool
    memory_mib: int
    wall_s: float
    snapshots: bool


class Answer(Part):
    """How a job ended: `ended`, why the machine ended it ("" if it ended by itself), and the exit code of the lab
    kernel.
    """

    id: int
    ended: PlainText
    returncode: int


def line(said: Job | Answer) -> bytes:
    """A job or an answer as it is sent."""
    return json.dumps(asdict(said)).encode() + b"\n"


# Programs of a cell are not among them: they are in the lab program's folder.
NEEDED = ("__init__.py", "core", "plan", "setup", "runs", "engine", "lab", "kinds", "topology.py")
START = "from scpslab.engine.appliance.inside import main\n\nmain()\n"


def copy_program(folder: Path) -> None:
    """Puts the program into a folder; it starts with appliance.py."""
    for name in NEEDED:
        source = PACKAGE / name
        if source.is_dir():
            shutil.copytree(source, folder / "scpslab" / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (folder / "scpslab").mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / "scpslab" / name)
    (folder / "appliance.py").write_text(START)


QEMU = "qemu-system-x86_64"
KVM = Path("/dev/kvm")
# linux/kvm.h; the answer is a file descriptor.
KVM_CREATE_VM = 0xAE01
# What software emulation costs at most: a second of work on this machine itself is 10 to so many in the emulated one
# (docs/decisions/0802).
SLOWER = 20
# Besides the guests' memory: the kernel, the guest image's pages, Python, and the files of a cell.
OWN_MEMORY_MIB = 640
START_LIMIT_S = 300
# The usual start takes two seconds with KVM.
ACCELERATED_START_LIMIT_S = 60
# One that never came up does not see that its port is closed. So Linux ends it with the thread that started it: those
# of the executor live as long as its run. Linux sends nothing for a process that had ended before it was asked to: then
# the shell, told this process's id, sees that its parent is another one.
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')
END_LIMIT_S = 10
# How long an answer may come after the job's own limit, at which the machine ends the job itself.
GRACE_S = 120
LAST_LINES = 6


@dataclass(frozen=True)
class Parts:
    """The built parts that a machine uses, as the host has them.

    `boot`: the folder that holds boot folders; `first`: the name of one of them.
    """

    appliance: Path
    kernel: Path
    tools: Path
    boot: Path
    first: str
    lab: Path


def find_qemu() -> str:
    """The path of QEMU.

    Raises:
        CapabilityError: it is not installed.
    """
    found = shutil.which(QEMU)
    if found is None:
        raise CapabilityError(
            f"{QEMU}: found no such program; expected it, because the lab kernel runs inside a small machine of "
            "QEMU's here. Install it: sudo apt-get install qemu-system-x86 (macOS: brew install qemu)."
        )
    return found


def in_a_machine(*, is_accelerated: bool) -> str:
    """Where cells run, and how fast, in words."""
    pace = "at nearly the usual pace (KVM)" if is_accelerated else f"10 to {SLOWER} times slower"
    return f"cells run in a machine of {QEMU}, {pace}, with the same bytes"


def is_accelerated() -> bool:
    """Whether this machine's processor runs the machine's programs itself."""
    is_wanted = os.environ.get(VARIABLE) != EMULATED
    return is_wanted and platform.machine() == LAB_KERNEL_MACHINE and can_virtualise(KVM)


@cache
def can_virtualise(device: Path) -> bool:
    """Whether KVM makes a machine.

    In some virtual machines its device can be opened, and yet no machine can be made.
    """
    try:
        with device.open("r+b", buffering=0) as kvm:
            os.close(fcntl.ioctl(kvm, KVM_CREATE_VM, 0))
    except OSError:
        return False
    return True


def command(parts: Parts, folder: Path, memory_mib: int, accelerated: bool) -> list[str]:
    """QEMU's command line. It has no network, no disks, and nothing of the host but the named folders."""
    shares = {BOOT: parts.boot, LAB: parts.lab, KERNEL: parts.kernel.parent, TOOLS: parts.tools}
    shares |= {name: folder / name for name in (PROGRAM, EXCHANGE)}
    words = [*WITH_PARENT, str(os.getpid())] if shutil.which(WITH_PARENT[0]) else []
    words += [find_qemu(), "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
    words += ["-M", "q35,hpet=off", "-cpu", "qemu64"]
    words += ["-accel", "kvm"] if accelerated else ["-accel", "tcg,thread=single"]
    words += ["-m", f"{memory_mib}M", "-kernel", str(parts.appliance)]
    words += ["-append", f"console=ttyS0 quiet panic=-1 scpslab_boot={parts.first}"]
    words += ["-chardev", f"file,id=console,path={_escaped(folder / CONSOLE)}", "-serial", "chardev:console"]
    words += ["-device", "virtio-serial-pci", "-chardev", "stdio,id=talk,signal=off"]
    words += ["-device", "virtserialport,chardev=talk,name=scpslab"]
    for name, path in shares.items():
        mode = "" if name == EXCHANGE else ",readonly=on"
        words += ["-virtfs", f"local,path={_escaped(path)},mount_tag={name},security_model=none,multidevs=remap{mode}"]
    return words


class Machine:
    """A machine that runs one job at a time."""

    def __init__(self, parts: Parts, memory_mib: int, core: int | None, accelerated: bool) -> None:
        """Starts it; the first job waits until it is up. `accelerated`: with KVM."""
        self.core, self.accelerated = core, accelerated
        self._jobs = 0
        self._stack = ExitStack()
        self._folder = self._stack.enter_context(scratch())
        (self._folder / EXCHANGE).mkdir()
        copy_program(self._folder / PROGRAM)
        with (self._folder / "qemu.log").open("wb") as log:
            self._process = subprocess.Popen(
                command(parts, self._folder, memory_mib, accelerated),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        if core is not None:
            with suppress(OSError, AttributeError):
                os.sched_setaffinity(self._process.pid, {core})
        self._changed = threading.Condition()
        # Whether it ever was ready for jobs; and whether it takes none any more.
        self.has_come_up, self._is_over = False, False
        self._answer: Answer | None = None
        # Of the cell that runs.
        self._console: Path | None = None
        self._thread = threading.Thread(target=self._hear, name="appliance", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """QEMU's process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can take a job."""
        return not self._is_over

    def start(self, folder: CellFolder, job: Callable[[int], Job]) -> MachineCell:
        """Gives it the input of a cell's folder, and the job that is made with its number."""
        self._jobs += 1
        place, given = self._folder / EXCHANGE / str(self._jobs), self._folder / "given"
        asked = job(self._jobs)
        shutil.copytree(folder.inside, given / folder.inside.name)
        if not asked.lab:
            shutil.copytree(folder.path / LAB, given / LAB)
        # Filled where the machine does not reach it: it could put a link in the way.
        given.rename(place)
        limit_s = ACCELERATED_START_LIMIT_S if self.accelerated else START_LIMIT_S
        with self._changed:
            self._changed.wait_for(lambda: self.has_come_up or self._is_over, limit_s)
            self._answer, self._console = None, folder.console
        if not self.has_come_up:
            self.kill()
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.write(line(asked))
            self._process.stdin.flush()
        return MachineCell(self, folder, place, asked)

    def wait(self, timeout_s: float | None) -> Answer | None:
        """The answer to the job; None if the machine has ended. Raises subprocess.TimeoutExpired."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._answer is not None or self._is_over, timeout_s):
                raise subprocess.TimeoutExpired(QEMU, timeout_s or 0)
            return self._answer

    def returncode(self) -> int:
        """How the ended machine ended."""
        return self._process.wait(END_LIMIT_S)

    def last_words(self) -> str:
        """The last lines that QEMU and the machine's kernel have said."""
        said = "".join(
            (self._folder / name).read_text(errors="replace")
            for name in ("qemu.log", CONSOLE)
            if (self._folder / name).exists()
        )
        return "\n".join(said.strip().splitlines()[-LAST_LINES:])

    def kill(self) -> None:
        """Ends it at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Ends it, and gives back what it had of the machine."""
        self.kill()
        self._process.wait()
        self._thread.join(END_LIMIT_S)
        for end in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if end is not None:
                    end.close()
        self._stack.close()

    def _hear(self) -> None:
        """Hears what the machine says until it ends, or until it says what none of ours says."""
        assert self._process.stdout is not None
        try:
            for said in self._process.stdout:
                with self._changed:
                    if said.strip() == READY.encode():
                        self.has_come_up = True
                    elif said.startswith(LIVE.encode()) and self._console:
                        # Whoever watches the cell's console reads it as that of any lab, which nobody need trust.
                        with self._console.open("ab") as console:
                            console.write(said)
                    else:
                        self._answer, self._console = schema.read(Answer, strict_json.loads(said)), None
                    self._changed.notify_all()
        except (OSError, ValueError):
            pass
        finally:
            self.kill()
            self._process.wait()
            with self._changed:
                self._is_over = True
                self._changed.notify_all()


class MachineCell:
    """A lab that runs in a machine. `said`: why the machine ended it; `lost`: the machine itself has ended."""

    def __init__(self, machine: Machine, folder: CellFolder, place: Path, job: Job) -> None:
        self._machine, self._folder, self._place, self._job = machine, folder, place, job
        self.returncode: int | None = None
        self.said, self.lost = "", False

    @property
    def pid(self) -> int:
        """The process id of the machine."""
        return self._machine.pid

    def poll(self) -> int | None:
        """How it ended; None while nobody has waited for its end."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end, and takes its files.

        The machine keeps the job's limit itself: only one that does not answer any more passes the timeout.
        """
        if self.returncode is None:
            answer = self._machine.wait(timeout and min(self._job.wall_s + GRACE_S, threading.TIMEOUT_MAX))
            if answer is None or answer.id != self._job.id:
                self.lost, self.returncode = True, min(self._machine.returncode(), 0)
                self._folder.console.write_text(f"{self._machine.last_words()}\nthe machine of {QEMU} has ended\n")
            else:
                self._take(answer)
        return self.returncode or 0

    def kill(self) -> None:
        """Ends it, and with it its machine; one that has ended already is no error."""
        if self.returncode is None:
            self._machine.kill()

    def _take(self, answer: Answer) -> None:
        console = self._folder.path / f"rest-of-{CONSOLE}"
        console.touch()
        take(self._place, {OUT: self._folder.out.path, CONSOLE: console})
        with self._folder.console.open("ab") as log:
            log.write(console.read_bytes())
        shutil.rmtree(self._place, ignore_errors=True)
        self.said, self.returncode = answer.ended, answer.returncode


def _escaped(path: Path) -> str:
    """A path as a value in QEMU's options."""
    return str(path).replace(",", ",,")


# A template and a fork of it, each with memory of its own.
GUESTS = 2


class Machines:
    """Machines for jobs side by side, on one core each where the jobs are."""

    def __init__(
        self,
        guest_mib: int,
        say: Callable[[str], None],
        make: Callable[[Parts, int, int | None, bool], Machine] = Machine,
    ) -> None:
        """`guest_mib`: the memory of the largest guest."""
        self.guest_mib = guest_mib
        # KVM may make machines and yet not run them, as in some virtual machines. Then no further one tries it.
        self.accelerated = is_accelerated()
        self._say, self._make = say, make
        self._free: list[Machine] = []
        self._all: set[Machine] = set()
        self._lock = threading.Lock()
        self._is_stopped = False

    @property
    def processes(self) -> list[int]:
        """The process ids of all machines."""
        with self._lock:
            return [machine.pid for machine in self._all]

    @contextmanager
    def use(self, parts: Parts, core: int | None) -> Iterator[Machine]:
        """A machine for the time of a job, first the one that had the core before: it may have the template of the same
        network.
        """
        with self._lock:
            machine = next((one for wanted in (core, None) for one in self._free if one.core == wanted), None)
            if machine is not None:
                self._free.remove(machine)
        if machine is not None and not machine.is_alive:
            self._drop(machine)
            machine = None
        if machine is None:
            machine = self._make(parts, GUESTS * self.guest_mib + OWN_MEMORY_MIB, core, self.accelerated)
            with self._lock:
                self._all.add(machine)
            if self._is_stopped:
                machine.kill()
        try:
            yield machine
        finally:
            if machine.accelerated and not (machine.is_alive or machine.has_come_up or self._is_stopped):
                self._do_without()
            if machine.is_alive and not self._is_stopped:
                with self._lock:
                    self._free.append(machine)
            else:
                self._drop(machine)

    def stop(self) -> None:
        """Ends all, and whatever would begin; those in use are given back by their users."""
        self._is_stopped = True
        with self._lock:
            machines = list(self._all)
        for machine in machines:
            machine.kill()
        self.close()

    def close(self) -> None:
        """Ends those that nobody uses, and gives back what they had."""
        with self._lock:
            idle, self._free = self._free, []
        for machine in idle:
            self._drop(machine)

    def _do_without(self) -> None:
        """Starts no further machine with KVM."""
        with self._lock:
            was, self.accelerated = self.accelerated, False
        if was:
            self._say(f"engine virtual: KVM started no machine; {in_a_machine(is_accelerated=False)}")

    def _drop(self, machine: Machine) -> None:
        with self._lock:
            self._all.discard(machine)
        machine.close()
