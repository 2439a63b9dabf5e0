"""Templates: lab kernels that have set up a network and are forked for every cell on it; and those in memory.

images/lab-kernel/snapshot.patch says what is asked and answered.
"""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from scpslab.core.errors import LabError
from scpslab.engine.uml import Session

LONGEST_ANSWER = 200
ANSWER_LIMIT_S = 30.0
# How long the system may take to end processes that were killed.
END_LIMIT_S = 10.0
# Numbers that fit everything they are taken for: a kernel that somebody has taken over may send others.
ANSWER = re.compile(
    r"ready (?P<bytes>[1-9]\d{0,15})|running (?P<child>[1-9]\d{0,8})|refused (?P<errno>[1-9]\d{0,8})|"
    r"ended (?P<pid>[1-9]\d{0,8}) (?P<status>\d{1,5})",
    re.ASCII,
)


class TemplateError(LabError):
    """A template could not fork; the message says why."""


class Fork:
    """A cell's guest: a child of a template's. `lost`: it ended because its template did."""

    def __init__(self, template: TemplateGuest, pid: int) -> None:
        self._template, self.pid = template, pid
        self.returncode: int | None = None
        self.lost = False
        self._over = threading.Event()
        try:
            self._descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self._descriptor = -1

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        return self.returncode if self._over.is_set() else None

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end; raises subprocess.TimeoutExpired."""
        if not self._over.wait(timeout):
            raise subprocess.TimeoutExpired("the lab kernel", timeout or 0)
        return self.returncode or 0

    def kill(self) -> None:
        """Ends it.

        Its template does that, because the process id is not another's until the template says that it has ended; if it
        does not, it ends too.
        """
        if self._over.is_set():
            return
        self._template.ask(f"end {self.pid}")
        if not self._over.wait(END_LIMIT_S):
            self._template.kill()

    def ended(self, returncode: int) -> None:
        """Takes note of its end."""
        self.returncode = returncode
        self._forget()

    def lose(self) -> None:
        """Takes note that its template has ended, and waits until it has too, as its kernel makes sure."""
        if self._descriptor >= 0:
            select.select([self._descriptor], [], [], END_LIMIT_S)
        self.lost, self.returncode = True, -signal.SIGKILL
        self._forget()

    def _forget(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._over.set()


class TemplateGuest:
    """A booted kernel, from `boot` to `kill`.

    A thread of its own starts it and hears what it says: the kernel ends with the thread that has started it, and so it
    lasts as long as it is needed.
    """

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str], core: int | None) -> None:
        """`folder`: where it works; its console.log gets what it says until it is forked."""
        self._command, self._folder, self._environment, self._core = command, folder, environment, core
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._unanswered = 0
        self._forks: dict[int, Fork] = {}
        self._answers: list[Fork | int] = []
        self._changed = threading.Condition()
        self._asking = threading.Lock()
        self._process: Session | None = None
        self._unwanted = False
        self.memory_bytes: int | None = None
        self.returncode: int | None = None
        self._thread = threading.Thread(target=self._live, name="template", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.returncode is None

    @property
    def pid(self) -> int:
        """The process id of its kernel."""
        return self._process.pid if self._process else 0

    def boot(self, limit_s: float) -> None:
        """Boots it and waits until it can be forked (then `memory_bytes` is known), until it has ended, or for as long
        as the limit is.
        """
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self.memory_bytes is not None or self.returncode is not None, limit_s)

    def fork(self, folder: Path, core: int | None) -> Fork:
        """A child that works in a folder, on a core.

        Raises:
            TemplateError: it could not, or the template has ended.
        """
        with self._asking:
            with self._changed:
                self._unanswered += 1
            self.ask(f"run {-1 if core is None else core} {folder}")
            with self._changed:
                self._changed.wait_for(lambda: self._answers or self.returncode is not None, ANSWER_LIMIT_S)
                answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, Fork):
            return answer
        if answer is not None:
            raise TemplateError(
                f"the lab kernel: found no room for one more: {os.strerror(answer)}. "
                "Free memory or processes, or use fewer --jobs."
            )
        self.kill()
        with self._changed:
            self._changed.wait_for(lambda: self.returncode is not None, END_LIMIT_S)
        raise TemplateError("the lab kernel that others are forked from ended, or does not answer")

    def running(self) -> list[Fork]:
        """The children that run now."""
        with self._changed:
            return list(self._forks.values())

    def ask(self, text: str) -> None:
        """Sends a request; to one that has ended it means nothing, and one that reads none holds nobody up."""
        with suppress(OSError):
            self._ours.send(text.encode(), socket.MSG_DONTWAIT)

    def kill(self) -> None:
        """Ends it, and with it all that were forked from it."""
        with self._changed:
            self._unwanted = True
            if self._process is not None and self.returncode is None:
                self._process.kill()

    def close(self) -> None:
        """Ends it, and returns when it has ended."""
        self.kill()
        if self._thread.ident is not None:
            self._thread.join(END_LIMIT_S)
        self._ours.close()

    def _live(self) -> None:
        code = 1
        try:
            code = self._start_and_hear()
        finally:
            # Whoever learns that his fork is lost asks for another one, and must not be given this template again.
            with self._changed:
                self.returncode = code
                lost = list(self._forks.values())
                self._forks.clear()
                self._changed.notify_all()
            for fork in lost:
                fork.lose()

    def _start_and_hear(self) -> int:
        """Its life; returns its exit code."""
        with (self._folder / "console.log").open("wb") as console:
            process = Session(
                self._command,
                cwd=self._folder,
                env=self._environment,
                stdin=self._theirs,
                stdout=console,
                stderr=subprocess.STDOUT,
            )
        self._theirs.close()
        with self._changed:
            self._process = process
            if self._unwanted:
                process.kill()
        if self._core is not None:
            with suppress(OSError):
                os.sched_setaffinity(process.pid, {self._core})
        while (said := self._hear()) and self._take(said):
            pass
        process.kill()
        return process.wait()

    def _hear(self) -> re.Match[str] | None:
        """The next thing that the kernel says; None when it says nothing more, or what no kernel of ours says."""
        try:
            return ANSWER.fullmatch(self._ours.recv(LONGEST_ANSWER).decode(errors="replace"))
        except OSError:
            return None

    def _take(self, said: re.Match[str]) -> bool:
        """Takes note of what was said.

        False for what cannot be: the answer to a question that nobody has asked, or an end that is none.
        """
        if said["pid"]:
            return self._bury(int(said["pid"]), int(said["status"]))
        with self._changed:
            if said["bytes"]:
                self.memory_bytes = int(said["bytes"])
            elif not self._unanswered:
                return False
            else:
                self._unanswered -= 1
                self._answers.append(self._new_fork(int(said["child"])) if said["child"] else int(said["errno"]))
            self._changed.notify_all()
        return True

    def _new_fork(self, pid: int) -> Fork:
        self._forks[pid] = Fork(self, pid)
        return self._forks[pid]

    def _bury(self, pid: int, status: int) -> bool:
        with self._changed:
            fork = self._forks.pop(pid, None)
        if fork is None:
            return False
        try:
            fork.ended(os.waitstatus_to_exitcode(status))
        except ValueError:
            fork.lose()
            return False
        return True


@dataclass(eq=False)
class Held:
    """A template in a pool, the folder its cells are put in, how many use it, and when it was used last."""

    template: TemplateGuest
    folder: Path
    give_back: Callable[[], None]
    users: int = 0
    used_at: float = field(default_factory=time.monotonic)

    def close(self) -> None:
        """Ends it and gives back what it had of the machine."""
        self.template.close()
        self.give_back()


# Besides those in use. A sweep whose innermost axis changes the network comes back to each after a few others.
MOST_IDLE = 8


class TemplatePool:
    """Templates by what they are of."""

    def __init__(self, free_bytes: Callable[[], int]) -> None:
        """`free_bytes`: how much memory templates and their forks can still have."""
        self._free_bytes = free_bytes
        self._held: dict[Hashable, Held] = {}
        self._booting: list[Held] = []
        self._locks: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()
        self._is_stopped = False

    @contextmanager
    def use(self, key: Hashable, make: Callable[[], Held], limit_s: float, needed_bytes: int) -> Iterator[Held]:
        """The template of a key, for the time of a cell.

        It is made and booted, within a limit, where there is none or where it has ended; others are dropped until there
        is the memory that it needs.
        """
        with self._lock:
            one_at_a_time = self._locks.setdefault(key, threading.Lock())
        with one_at_a_time:
            held = self._find(key)
            if held is None:
                self._drop_idle(needed_bytes)
                held = make()
                self._boot(key, held, limit_s)
        try:
            yield held
        finally:
            with self._lock:
                held.users, held.used_at = held.users - 1, time.monotonic()
                is_over = not held.users and self._held.get(key) is not held
            if is_over:
                held.close()

    def templates(self) -> list[TemplateGuest]:
        """Those that there are, booted or not yet."""
        with self._lock:
            return [held.template for held in (*self._held.values(), *self._booting)]

    def stop(self) -> None:
        """Ends all, and whatever would begin."""
        self._is_stopped = True
        self.close()

    def close(self) -> None:
        """Ends all; those in use lose their cells, and are given back when these have noticed."""
        with self._lock:
            all_held = [*self._held.values(), *self._booting]
            idle = [held for held in all_held if not held.users]
            self._held.clear()
        for held in all_held:
            held.template.kill()
        for held in idle:
            held.close()

    def _find(self, key: Hashable) -> Held | None:
        with self._lock:
            held = self._held.get(key)
            if held is None:
                return None
            if held.template.is_alive:
                held.users += 1
                return held
            del self._held[key]
            in_use = held.users
        if not in_use:
            held.close()
        return None

    def _boot(self, key: Hashable, held: Held, limit_s: float) -> None:
        """Boots it for its first user. One that comes to nothing is that user's alone."""
        with self._lock:
            held.users += 1
            self._booting.append(held)
            if self._is_stopped:
                held.template.kill()
        held.template.boot(limit_s)
        with self._lock:
            self._booting.remove(held)
            if held.template.is_alive and held.template.memory_bytes is not None and not self._is_stopped:
                self._held[key] = held

    def _drop_idle(self, needed_bytes: int) -> None:
        """Makes room for one more."""
        while True:
            with self._lock:
                idle = [key for key, held in self._held.items() if not held.users]
                if not idle or (len(idle) < MOST_IDLE and self._free_bytes() >= needed_bytes):
                    return
                dropped = self._held.pop(min(idle, key=lambda key: self._held[key].used_at))
            dropped.close()
