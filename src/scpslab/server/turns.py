"""Turns of users at the cells of one machine: limits for all and for each, and the next free place for the user who has fewest.

Every run has a *ticket*, a file of its user in a folder that all may write to, which says what the run holds and whether it waits. The ticket is
locked as long as its process lives: the kernel releases the lock however the process ends, so a killed run holds nothing. Tickets are read and
written by one process at a time, which locks the folder; nobody writes another's ticket, and whose a ticket is, the file system says.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from scpslab import strict_json, units
from scpslab.errors import CapabilityError
from scpslab.server.server_file import ServerFile, this_server

TICKET = "ticket-"
MOST_BYTES = 65_536
# The folder is locked for a millisecond; a process that was stopped in this millisecond keeps the others waiting.
LOCK_S, STUCK_S = 0.1, 30.0
# Who waits looks so often, and less often the more there are; who has not looked for so long is passed over.
LOOK_S, TICKETS_PER_LOOK, ASLEEP_S = 0.05, 8, 10.0


@dataclass(frozen=True)
class Limits:
    """Cells at a time and MiB of guests, of all users and of one; None: no limit."""

    cells: int
    memory_mib: int | None = None
    cells_per_user: int | None = None
    memory_mib_per_user: int | None = None

    @classmethod
    def of(cls, file: ServerFile) -> Self:
        """The limits of a server."""

        def mib(text: str | None) -> int | None:
            return None if text is None else units.parse("size", text) >> 20

        return cls(file.cells or os.cpu_count() or 1, mib(file.memory), file.cells_per_user, mib(file.memory_per_user))

    def __str__(self) -> str:
        most = [f"{self.cells} cells"] + ([f"{self.memory_mib} MiB"] if self.memory_mib else [])
        each = [f"{self.cells_per_user} cells"] if self.cells_per_user else []
        each += [f"{self.memory_mib_per_user} MiB"] if self.memory_mib_per_user else []
        return f"at most {' and '.join(most)} at a time" + (f", {' and '.join(each)} for each user" if each else "")

    def allow(self, cells: int, memory_mib: int) -> bool:
        """Whether all users may have so much."""
        return cells <= self.cells and (self.memory_mib is None or memory_mib <= self.memory_mib)

    def allow_user(self, cells: int, memory_mib: int) -> bool:
        """Whether one user may have so much."""
        is_few = self.cells_per_user is None or cells <= self.cells_per_user
        return is_few and (self.memory_mib_per_user is None or memory_mib <= self.memory_mib_per_user)


@dataclass(frozen=True)
class Ticket:
    """What a run of a user has and wants. `cores`: of each of its cells, -1 without one; `since_s`: since when it waits for a cell of `wants_mib`, or None.

    `looked_s`: when it looked last. Times are seconds of the machine's monotonic clock.
    """

    user: int
    cores: tuple[int, ...] = ()
    memory_mib: int = 0
    wants_mib: int = 0
    since_s: float | None = None
    looked_s: float = 0.0

    @property
    def cells(self) -> int:
        """Its cells that run."""
        return len(self.cores)

    @classmethod
    def read(cls, user: int, text: bytes) -> Self:
        """The ticket that a user wrote; one without anything, if it is none: only its own user has the damage."""
        try:
            fields = strict_json.loads(text)
        except strict_json.JsonError:
            return cls(user)
        given = fields if isinstance(fields, dict) else {}
        cores, since = given.get("cores"), given.get("since_s")
        numbers = [given.get(name) for name in ("memory_mib", "wants_mib", "looked_s")]
        is_ticket = isinstance(cores, list) and all(type(core) is int for core in cores) and all(type(number) in (int, float) for number in numbers)
        if not is_ticket or not (since is None or type(since) in (int, float)):
            return cls(user)
        return cls(user, tuple(cores), int(numbers[0]), int(numbers[1]), since, float(numbers[2]))  # type: ignore[arg-type]  # checked above

    def text(self) -> bytes:
        """What `read` reads."""
        fields = {name: getattr(self, name) for name in ("cores", "memory_mib", "wants_mib", "since_s", "looked_s")}
        return json.dumps(fields).encode()


def is_next(mine: Ticket, others: Sequence[Ticket], limits: Limits, now_s: float) -> bool:
    """Whether a run that waits may start its cell now.

    Of the users below their own limits, the one with the fewest cells is next, and among those the one that has waited longest. A cell that does not
    fit yet is not passed by smaller ones: it would never be next.
    """
    cells, memory = _by_user([mine, *others])
    if not limits.allow(sum(cells.values()) + 1, sum(memory.values()) + mine.wants_mib):
        return False

    def may_have_more(one: Ticket) -> bool:
        return limits.allow_user(cells[one.user] + 1, memory[one.user] + one.wants_mib)

    def rank(one: Ticket) -> tuple[int, float]:
        return cells[one.user], one.since_s or 0.0

    rivals = [one for one in others if one.since_s is not None and now_s - one.looked_s < ASLEEP_S and may_have_more(one)]
    return may_have_more(mine) and all(rank(mine) <= rank(one) for one in rivals)


def _by_user(tickets: Iterable[Ticket]) -> tuple[Counter[int], Counter[int]]:
    cells, memory = Counter[int](), Counter[int]()
    for one in tickets:
        cells[one.user] += one.cells
        memory[one.user] += one.memory_mib
    return cells, memory


@dataclass(frozen=True)
class Turn:
    """A cell's turn: the core that it may keep busy (None: any), and the memory that it counts with, in MiB."""

    core: int | None
    memory_mib: int


@dataclass(frozen=True)
class Full:
    """Why it is nobody's turn: cells that run, the user's own cells among them, and users."""

    cells: int
    own: int
    users: int
    limits: Limits
    pause_s: float

    def __str__(self) -> str:
        allowed = "" if self.limits.cells_per_user is None else f" of {self.limits.cells_per_user}"
        others = f"{self.users} user{'s' if self.users != 1 else ''} at work"
        return f"shared machine: {self.cells} of {self.limits.cells} cells run, {self.own}{allowed} yours, {others}; waiting for a turn"


@dataclass
class Turns:
    """The turns of one run; its threads may share it. `name`: what messages call the server."""

    folder: Path
    limits: Limits
    name: str
    held: list[Turn] = field(default_factory=list)
    since_s: float | None = None
    _wants_mib: int = 0
    _file: int | None = None
    _path: Path | None = None
    _stuck_since: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def here(cls) -> Self | None:
        """Those of this machine; None where users take no turns.

        Raises:
            CapabilityError, ScenarioError: the machine's file or folder is not as it must be.
        """
        server = this_server()
        if server is None or server[1].turns is None:
            return None
        turns = cls(Path(server[1].turns), Limits.of(server[1]), str(server[0]))
        turns.check()
        return turns

    def check(self) -> None:
        """Looks at the folder.

        Raises:
            CapabilityError: it is not there, or this user may not write to it.
        """
        found = "no folder" if not self.folder.is_dir() else "no permission to write to" if not os.access(self.folder, os.W_OK | os.X_OK) else ""
        if found:
            raise CapabilityError(
                f"{self.name}: turns: found {found} {self.folder}; expected one for all users. Have an administrator run: install -d -m 1777 {self.folder}"
            )

    def take(self, memory_mib: int) -> Turn | Full:
        """A turn for a cell of so much memory, or why there is none now; from then on this run waits for it, until it has asked again.

        Raises:
            CapabilityError: such a cell can never run here, or the folder cannot be used.
        """
        if not (self.limits.allow(1, memory_mib) and self.limits.allow_user(1, memory_mib)):
            raise CapabilityError(
                f"{self.name}: found a cell that counts with {memory_mib} MiB; expected at most "
                f"{min(most for most in (self.limits.memory_mib, self.limits.memory_mib_per_user) if most is not None)} MiB. "
                "Lower limits.memory in the scenario, or ask the administrator."
            )
        with self._lock, self._alone() as is_alone:
            now = time.monotonic()
            if not is_alone:
                return Full(0, len(self.held), 0, self.limits, LOOK_S)
            others = list(self._others())
            self.since_s, self._wants_mib = self.since_s or now, memory_mib
            mine = self._mine(now)
            if is_next(mine, others, self.limits, now):
                turn = Turn(self._core(others), memory_mib)
                self.held.append(turn)
                self.since_s = None
                self._write(self._mine(now))
                return turn
            self._write(mine)
            cells, _ = _by_user([mine, *others])
            pause_s = LOOK_S * max(1.0, len(others) / TICKETS_PER_LOOK)
            return Full(sum(cells.values()), cells[mine.user], len(cells), self.limits, pause_s)

    def give_back(self, turn: Turn) -> None:
        """A cell has ended."""
        with self._lock:
            self.held.remove(turn)
            self._tell()

    def wait_no_longer(self) -> None:
        """This run has no further cell that could start."""
        with self._lock:
            if self.since_s is not None:
                self.since_s = None
                self._tell()

    def close(self) -> None:
        """Gives everything back."""
        with self._lock:
            self.held.clear()
            self.since_s = None
            if self._path is not None:
                with suppress(OSError):
                    self._path.unlink()
            if self._file is not None:
                os.close(self._file)
            self._file = self._path = None

    def seen(self) -> list[Ticket]:
        """The tickets of the other runs that live.

        Raises:
            CapabilityError: the folder cannot be used.
        """
        with self._alone():
            return list(self._others())

    def _mine(self, now: float) -> Ticket:
        cores = tuple(-1 if turn.core is None else turn.core for turn in self.held)
        return Ticket(os.geteuid(), cores, sum(turn.memory_mib for turn in self.held), self._wants_mib, self.since_s, now)

    def _core(self, others: Iterable[Ticket]) -> int | None:
        """The core that has fewest cells; none if there are more places than cores."""
        cores = sorted(os.sched_getaffinity(0))
        if self.limits.cells > len(cores):
            return None
        busy = Counter(core for one in [*others, self._mine(0.0)] for core in one.cores)
        return min(cores, key=lambda core: busy[core])

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether this process has the folder for itself, for the moment.

        Raises:
            CapabilityError: the folder is gone, or somebody has kept it for very long.
        """
        try:
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise CapabilityError(f"{self.folder}: found {error.strerror}; expected the folder in which users take turns. Tell the administrator.") from error
        try:
            is_alone = _locked(descriptor)
            now = time.monotonic()
            self._stuck_since = None if is_alone else self._stuck_since or now
            if self._stuck_since is not None and now - self._stuck_since > STUCK_S:
                raise CapabilityError(
                    f"{self.folder}: found a process that has kept it for {STUCK_S:.0f} s; expected a millisecond. Find it with: fuser {self.folder}"
                )
            yield is_alone
        finally:
            os.close(descriptor)

    def _others(self) -> Iterator[Ticket]:
        """The tickets of processes that live. This user's others are removed."""
        for entry in os.scandir(self.folder):
            if entry.name.startswith(TICKET) and (self._path is None or entry.name != self._path.name) and (found := _look(entry.path)) is not None:
                yield found

    def _tell(self) -> None:
        """Writes what has become free. The end of a cell is no moment to fail: who asks for the next turn is told what is wrong."""
        with suppress(CapabilityError), self._alone():
            self._write(self._mine(time.monotonic()))

    def _write(self, ticket: Ticket) -> None:
        """Writes this run's ticket."""
        try:
            if self._file is None:
                self._path = self.folder / f"{TICKET}{os.getpid()}-{secrets.token_hex(8)}"
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
                # Whatever the user's umask: others must see that the ticket is held.
                os.fchmod(self._file, 0o644)
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            text = ticket.text()
            # What an earlier, longer text has left behind is blank.
            os.pwrite(self._file, text.ljust(max(len(text), os.fstat(self._file).st_size)), 0)
        except OSError as error:
            raise CapabilityError(f"{self.folder}: found {error.strerror}; expected room for a small file. Tell the administrator.") from error


def _locked(descriptor: int) -> bool:
    end = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.001)
        else:
            return True


def _look(path: str) -> Ticket | None:
    """The ticket of a file; None if its process has ended, or it is no ticket."""
    try:
        # A pipe or a link that somebody put there keeps nobody waiting.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return Ticket.read(facts.st_uid, os.pread(descriptor, MOST_BYTES, 0).rstrip())
        if facts.st_uid == os.geteuid():
            with suppress(OSError):
                Path(path).unlink()
        return None
    finally:
        os.close(descriptor)


def waited(turns: Turns, memory_mib: int, is_over: Callable[[], bool]) -> Turn | None:
    """A turn, after waiting for it; None if `is_over` says so meanwhile."""
    while not is_over():
        if isinstance(turn := turns.take(memory_mib), Turn):
            return turn
        time.sleep(turn.pause_s)
    turns.wait_no_longer()
    return None
