"""What every service is: a program of a node that starts before the epoch, is watched, and ends with what needs it.

One that ends by itself while somebody needs it fails the cell. Workloads have kinds of their own beside the plan's.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from scpslab.core.kinds import Registered, Registry
from scpslab.core.names import file_name
from scpslab.core.strict_json import JsonObject
from scpslab.lab.loop import SECOND_NS, Loop, now_ns
from scpslab.lab.records import Records

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork


# States of sockets in /proc/net: a TCP socket that listens, and a UDP socket without a peer.
LISTENING = {"tcp": "0A", "udp": "07"}
SIGNALLED = 128
# States of a process whose end nobody has asked for yet, and of one that is removed (proc_pid_stat(5)).
UNASKED, REMOVED = "Z", "X"
LINES_SHOWN, LETTERS_SHOWN, TAIL_BYTES = 3, 300, 4096


KINDS: Registry[Any] = Registry("services", "lab")


class Service(Registered, registry=KINDS):
    """Base of the kinds. `broken` says why the cell cannot go on: "" while all is well."""

    what: ClassVar[str] = "the service"
    start_limit_ns: int = 30 * SECOND_NS
    # Whether packets of others pass it: then it runs before any probe does, and until nothing is under way.
    carries_packets: ClassVar[bool] = False
    # None: whatever makes it ready comes by the loop, so that nobody has to look.
    look_again_ns: ClassVar[int | None] = SECOND_NS // 100

    def __init__(
        self, name: str, node: str, network: LabNetwork, loop: Loop, on_end: Callable[[int], None] = lambda _code: None
    ) -> None:
        """`on_end` gets the exit code."""
        self.name, self.node, self.network, self.loop = name, node, network, loop
        self.exit_code: int | None = None
        # What it counted at each link that it carries packets over, once it has ended.
        self.counted: dict[str, JsonObject] = {}
        # From then on it is no fault when it ends.
        self.is_ending = False
        self.broken = ""
        self.on_end = on_end

    @property
    def log(self) -> Path:
        """Where its errors go."""
        return self.network.logs / file_name(self.name, self.node, suffix=".log")

    def check(self) -> str:
        """What the program lacks in its node; "" if nothing."""
        return ""

    def prepare(self) -> None:
        """Writes what the program has to find in its node."""

    def argv(self) -> list[str]:
        """The program in its node, and its arguments."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Whether it serves."""
        raise NotImplementedError

    def hear(self, line: str) -> None:
        """Takes a line of its standard output."""

    def launch(self) -> None:
        """Starts the program; its output comes line by line, its errors go to its log."""
        with self.log.open("ab") as errors:
            self.process = self._popen(subprocess.PIPE, errors.fileno())
        self.loop.on_lines(self.process.stdout, self.hear)
        self.loop.on_exit(self.process, self._ended)

    def _popen(self, stdout: int, stderr: int, keep: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        node = self.network.node(self.node)
        with self.network.owners.owning(self.name):
            return node.start(
                self.argv(), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, cwd="/tmp", pass_fds=tuple(keep)
            )

    def wait(self) -> None:
        """Waits until it serves.

        Raises:
            OSError: it ended, or was not ready in time; the message names it.
        """
        limit_ns = now_ns() + self.start_limit_ns
        if self.look_again_ns is None:
            self.loop.run_until(lambda: self.is_ready() or self.exit_code is not None, limit_ns)
            if not self.is_ready():
                raise self._not_ready()
            return
        while not self.is_ready():
            if self.exit_code is not None or now_ns() >= limit_ns:
                raise self._not_ready()
            self.loop.run_until(lambda: self.exit_code is not None, now_ns() + self.look_again_ns)

    def stop(self) -> None:
        """Asks it to end, if it has not ended."""
        self.is_ending = True
        if self.exit_code is None:
            self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it at once, because the experiment wants it so."""
        self.is_ending = True
        self.process.send_signal(signal.SIGKILL)

    def end(self, limit_ns: int) -> None:
        """Asks it to end, and kills it if it has not ended when the limit is over."""
        self.stop()
        if not self.loop.run_until(lambda: self.exit_code is not None, now_ns() + limit_ns):
            self.process.kill()
            self.loop.run_until(lambda: self.exit_code is not None)

    def absence(self) -> str:
        """What a person should know if its process has ended; "" while it runs. For processes that did not start it."""
        try:
            state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            state = REMOVED
        has_ended = state in (UNASKED, REMOVED)
        return f"{self._title()} has ended; expected it to go on{self._last_words()}" if has_ended else ""

    def states(self) -> bytes:
        """What it has written of the states of SCPS-TP (scps-io, states.rs)."""
        return b""

    def write_records(self, folder: Path) -> None:
        """Writes its records into a folder, after it has ended."""

    def _ended(self, code: int) -> None:
        self.exit_code = code
        if not self.is_ending:
            how = f"ended with {ending(code)} while the cell ran"
            self.broken = f"{self._title()} {how}; expected it to go on{self._last_words()}"
        self.on_end(code)

    def _not_ready(self) -> OSError:
        self.is_ending = True
        limit_s = self.start_limit_ns / SECOND_NS
        found = f"is not ready after {limit_s:g} s"
        if self.exit_code is not None:
            found = f"ended with {ending(self.exit_code)} before it was ready"
        return ChildProcessError(f"{self._title()} {found}{self._last_words()}")

    def _title(self) -> str:
        return f"service {self.name} on {self.node}: {self.what}"

    def _last_words(self) -> str:
        """The end of its log, and where it is."""
        content = self.log.read_bytes()[-TAIL_BYTES:].decode(errors="replace") if self.log.exists() else ""
        lines = " | ".join(line for line in content.splitlines() if line.strip()).split(" | ")[-LINES_SHOWN:]
        tail = " | ".join(lines)[-LETTERS_SHOWN:]
        return f"; see logs/{self.log.name}" + (f", which ends: {tail}" if tail else ", which is empty")


class Talking(Service):
    """A service of a plan's whose program says in lines of JSON what it does, first that it is ready."""

    look_again_ns: ClassVar[int | None] = None

    def __init__(self, plan: Any, network: LabNetwork, loop: Loop) -> None:
        super().__init__(plan.name, plan.node, network, loop)
        self.plan = plan
        self.events: list[JsonObject] = []

    def hear(self, line: str) -> None:
        """Takes an event."""
        self.events.append(json.loads(line))

    def is_ready(self) -> bool:
        """Whether it has said so."""
        return bool(self.events)

    def write_lines(self, folder: Path, lines: Iterable[JsonObject]) -> None:
        """Writes its records, of which each is a line."""
        records = Records(folder / file_name(self.name, suffix=".jsonl"))
        for line in lines:
            records.write(**line)
        records.close()


class Services:
    """Those of a cell."""

    def __init__(self) -> None:
        self._all: list[Service] = []

    def start(self, service: Service, *, wait: bool = True) -> None:
        """Starts one and, unless its start is part of the experiment, waits until it serves.

        Raises:
            OSError: it lacks something, ended, or was not ready in time.
        """
        if lacking := service.check():
            raise ChildProcessError(f"service {service.name} on {service.node}: {lacking}")
        service.prepare()
        self._all.append(service)
        service.launch()
        if wait:
            service.wait()

    def named(self, name: str) -> Service:
        """The one of that name."""
        return next(service for service in self._all if service.name == name)

    @property
    def broken(self) -> str:
        """Why the cell cannot go on: the first service that ended by itself; "" if none did."""
        return next((service.broken for service in self._all if service.broken), "")

    @property
    def absent(self) -> list[str]:
        """What a person should know of those that have ended."""
        return [text for service in self._all if (text := service.absence())]


def ending(code: int) -> str:
    """How a process ended, in words.

    A node's program that a signal ended has 128 more than the signal's number, as in a shell.
    """
    number = -code if code < 0 else code - SIGNALLED
    if number == signal.SIGKILL:
        # The kernel's word when memory runs out, where nobody else sends it.
        return "SIGKILL (as when memory runs out: limits.memory)"
    return signal.Signals(number).name if number in set(signal.Signals) else f"exit code {code}"


def listens(pid: int, kind: str, port: int) -> bool:
    """Whether somebody in a process's network namespace waits at a port of TCP or UDP for whoever comes."""
    tables = [Path(f"/proc/{pid}/net/{name}") for name in (kind, f"{kind}6")]
    sockets = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return any(words[1].endswith(f":{port:04X}") and words[3] == LISTENING[kind] for words in sockets)
