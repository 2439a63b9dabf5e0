"""One build: its folders, its log, its steps with their times, and a clear message if a tool fails."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from scpslab.core.errors import CapabilityError
from scpslab.core.installation import PACKAGES

LAST_LINES = 6
# How long the programs of an interrupted build may take to end.
ENDING_S = 5
# Messages of the tools, and the advice for each.
TO_A_MIRROR = "Connect to the network, or set SCPSLAB_MIRROR to a Debian mirror that can be reached."
HINTS = {
    "gelf.h": "Install the headers that the kernel's own tools need: sudo apt-get install libelf-dev.",
    "No space left on device": "Free disk space, or set SCPSLAB_CACHE (and TMPDIR) to a folder on another disk.",
    "Temporary failure resolving": TO_A_MIRROR,
    "Could not resolve": TO_A_MIRROR,
    "Could not connect": TO_A_MIRROR,
    "Cannot initiate the connection": TO_A_MIRROR,
    "NO_PUBKEY": "Update the Debian archive keys: sudo apt-get install debian-archive-keyring.",
    "cannot mount because CAP_SYS_ADMIN": "Build in a container that may mount (docker run --cap-add SYS_ADMIN), or "
    "share a cache folder that was built elsewhere (docs/platforms.md).",
    "newuidmap": "Give this user subordinate ids: sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "
    "$USER.",
    "unshare syscall failed": "Allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1, or build once as "
    "root.",
}


# Hears a line about what is done.
Say = Callable[[str], None]


def silent(_: str) -> None:
    """Hears nothing."""


@dataclass
class Job:
    """Builds from the folder `recipe` to `target`, within the folder of `target`; all output of tools goes to `log`."""

    title: str
    recipe: Path
    target: Path
    log: Path
    say: Say
    steps: list[tuple[str, float]] = field(default_factory=list)
    # Where other versions had to be taken than those that the recipe was published with.
    differs: list[str] = field(default_factory=list)

    @property
    def work(self) -> Path:
        """The folder that the build may use; a failed build removes it."""
        return self.target.parent

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Measures the time of a step; says that it begins, and how long it took."""
        started = time.monotonic()
        self.say(f"{self.title}: {title} …")
        try:
            yield
        except BaseException:
            self.say(f"{self.title}: {title}: ended after {time.monotonic() - started:.1f} s")
            raise
        taken_s = time.monotonic() - started
        self.steps.append((title, taken_s))
        self.say(f"{self.title}: {title}: {taken_s:.1f} s")

    def run(self, argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        """Runs a command to its end.

        Raises:
            CapabilityError: the program is not installed, or it failed; the message has its last lines and what to do.
        """
        self.output(argv, cwd=cwd, env=env)

    def output(self, argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
        """Runs a command to its end, and returns what it said; its errors go to the log, too.

        Raises:
            CapabilityError: as `run`.
        """
        # Some of the tools are in /sbin folders, which a user's path may lack.
        environment = {
            **os.environ,
            "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin",
            "LC_ALL": "C.UTF-8",
            **(env or {}),
        }
        if shutil.which(argv[0], path=environment["PATH"]) is None:
            raise CapabilityError(f"{argv[0]}: found no such program; expected it to be installed. To fix: {PACKAGES}.")
        with self.log.open("ab") as output:
            output.write(f"$ {' '.join(argv)}\n".encode())
            output.flush()
            begin = output.tell()
            code = _run(argv, cwd, environment, output)
        with self.log.open("rb") as log:
            log.seek(begin)
            said = log.read().decode(errors="replace")
        if code:
            raise CapabilityError(failure(argv[0], code, said, self.log))
        return said


def _run(argv: Sequence[str], cwd: Path | None, environment: Mapping[str, str], output: IO[bytes]) -> int:
    """Runs a program to its end in a process group of its own, and returns its exit code; if this process is
    interrupted, the whole group ends.
    """
    process = None
    try:
        with _interrupts_wait():
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        return process.wait()
    except BaseException:
        # The first signal lets it remove what it has mounted.
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                if process is None:
                    break
                os.killpg(process.pid, number)
                process.wait(ENDING_S)
        raise


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Signals that end this process take effect at the end of the block: a program that has just been started is known
    by then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    late: list[int] = []
    numbers = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    ]
    before = {number: signal.signal(number, lambda found, _frame: late.append(found)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if late:
        signal.raise_signal(late[0])


def failure(program: str, code: int, said: str, log: Path) -> str:
    """The message about a failed program: its name, its last lines, and what to do."""
    hint = next((advice for words, advice in HINTS.items() if words in said), f"Read {log}.")
    tail = " | ".join(said.strip().splitlines()[-LAST_LINES:])
    return f'{program}: found exit code {code}, last lines "{tail}"; expected 0. {hint}'
