"""A program of the user's in a node: Python code without rights (lab/policy_runner.py), which hears of one event at a
time and answers each with what it wants done and the time to be woken.

What it says is checked here as far as it is the same for all: one answer to each event, of a bounded length, in a
bounded number. What it wants done is for the workload to judge and do.
"""

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from scpslab.core.strict_json import JsonObject
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.netlink import inside
from scpslab.lab.place import PROGRAMS
from scpslab.lab.workloads import Workload
from scpslab.plan.programs import Programmed

RUNNER = PROGRAMS / "scpslab" / "lab" / "policy_runner.py"
READY_LIMIT_NS = 30 * SECOND_NS
# The lab's own sockets lose nothing: only the link does.
SOCKET_BUFFER_BYTES = 64 << 20
# Linux asm-generic/socket.h: buffers beyond the limits of sysctl, for root. Python does not name them.
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
LARGEST_DATAGRAM = 1 << 16
MOST_COPIES, SPARE_COPIES = 20, 1000
# A program that asks to be woken again and again lets hardly any virtual time pass.
EVENTS_EACH, SPARE_EVENTS = 20, 10_000
LONGEST_LINE = 1 << 20
LATEST_S = 1e9
ONE_ANSWER = "expected one answer to each event"
Transfer = TypeVar("Transfer", bound=Programmed)


class Ends(Workload[Transfer]):
    """A transfer of datagrams by programs of the user's; its own notes are what is told of it."""

    # The segments of the transfer, which bound how much a program may do, and the port that it goes to.
    segments: int

    def prepare(self) -> None:
        """Opens the sockets, and starts the programs."""
        self.programs: list[Confined] = []
        self.open()
        if not self.context.loop.run_until(
            lambda: all(one.is_ready for one in self.programs) or bool(self.outcome),
            self.context.now_ns() + READY_LIMIT_NS,
        ):
            self.fail(f"found no object of the class {self.programs[0].class_} within 30 s; expected one")

    def open(self) -> None:
        """Opens the sockets, and starts the programs, without waiting."""
        raise NotImplementedError

    def begun(self) -> None:
        """From now on time counts."""
        self.started_ns = self.context.now_ns()
        self.context.loop.at(self.started_ns + self.spec.timeout_ns, lambda: self.fail("the timeout ran out"))
        for program in self.programs:
            program.is_asked = False

    def now_s(self) -> float:
        """Seconds since the start."""
        return (self.context.now_ns() - self.started_ns) / SECOND_NS

    def open_socket(self, node: str, ip: str, port: int, take: Callable[[bytes, Any], None]) -> socket.socket:
        """A socket of a node; what comes to it after the start is taken until there is an outcome."""
        with inside(self.network.pid(node)), self.network.owners.owning(self.name):
            opened = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_DGRAM)
        for option in (SO_RCVBUFFORCE, SO_SNDBUFFORCE):
            opened.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER_BYTES)
        opened.bind((ip, port))
        opened.setblocking(False)

        def readable() -> None:
            while True:
                try:
                    datagram, source = opened.recvfrom(LARGEST_DATAGRAM)
                except BlockingIOError:
                    return
                if not self.outcome:
                    take(datagram, source[:2])

        self.context.loop.on_readable(opened, readable)
        return opened

    def may_send(self, sent: int, what: str = "packets") -> bool:
        """Whether another packet may follow so many; else the workload has failed."""
        if sent >= MOST_COPIES * self.segments + SPARE_COPIES:
            found = f"found {sent} {what} sent for {self.segments} segments"
            self.fail(f"{found}; expected at most {MOST_COPIES} times as many")
        return not self.outcome

    def send(self, opened: socket.socket, datagram: bytes, to: tuple[str, int]) -> None:
        """Sends a datagram."""
        try:
            opened.sendto(datagram, to)
        except BlockingIOError:
            held = f"{SOCKET_BUFFER_BYTES >> 20} MiB"
            self.fail(f"found more packets under way than {held} hold; expected fewer at a time")

    def complete(self, **counted: int) -> None:
        """Notes what it took, and ends it."""
        now_ns, size = self.context.now_ns(), self.spec.bytes_
        transfer_s = (now_ns - self.started_ns) / SECOND_NS
        t_s = self.context.epoch.t_s(now_ns)
        self.records.write(event="end", t_s=t_s, transfer_s=transfer_s, bytes=size, **counted)
        self.finish("completed")
        self.close()

    def so_far(self) -> JsonObject:
        """What the record says of a transfer that failed."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends the programs."""
        for program in self.programs:
            program.kill()

    def fail(self, reason: str, log_of: str = "", outcome: str = "incomplete") -> None:
        """Notes how far it came, and ends it."""
        if not self.outcome:
            self.records.write(event="failed", reason=reason, **self.so_far())
            super().fail(reason, log_of, outcome)
            self.close()


class Confined:
    """A program of a transfer in a node: the object of a class of its file, made with what is `given`.

    `do` does what it answers; a ValueError of it ends the transfer. `besides`: what each call has as its last
    arguments.
    """

    def __init__(
        self,
        ends: Ends[Any],
        node: str,
        class_: str,
        given: Mapping[str, object],
        do: Callable[[JsonObject], None],
        besides: Callable[[], tuple[object, ...]] = tuple,
    ) -> None:
        self.ends, self.class_, self.do, self.besides = ends, class_, do, besides
        self.file: str = ends.spec.file
        self.events: deque[Mapping[str, object]] = deque()
        self.asked = 0
        self.is_asked, self.is_ready, self.wake_ns = True, False, 0
        # The program gives its rights up by itself, and gets none by starting another one.
        runner = ["env", "-i", "PYTHONHASHSEED=0", "python3", "-I", "-S", "-B", str(RUNNER)]
        command = [*ends.network.node(node).prefix, *runner]

        def ended(code: int) -> None:
            ends.fail(f"{self.file}: its process ended with exit code {code}; see logs/{ends.name}-{node}.log")

        self.process = ends.run_command(node, command, self._on_line, ended, stdin=subprocess.PIPE)
        self._tell({"file": self.file, "code": ends.spec.code, "class": class_, "given": given})
        assert self.process.stdin is not None
        # A program that reads nothing any more must not stop the lab.
        os.set_blocking(self.process.stdin.fileno(), False)
        ends.programs.append(self)

    def _tell(self, line: Mapping[str, object]) -> None:
        assert self.process.stdin is not None
        try:
            text = json.dumps(line, default=lambda data: {"hex": data.hex()}).encode() + b"\n"
            while text:
                text = text[os.write(self.process.stdin.fileno(), text) :]
        except (BlockingIOError, BrokenPipeError):
            self.ends.fail("found a policy that reads nothing any more; expected an answer to each event")

    def call(self, method: str, *given: object) -> None:
        """Calls a method of the program, after those that were called before."""
        if not self.ends.outcome:
            self.events.append({"call": method, "given": (*given, *self.besides())})
            self._ask()

    def _ask(self) -> None:
        if self.events and not self.is_asked and not self.ends.outcome:
            self.is_asked = True
            self.asked += 1
            most = EVENTS_EACH * self.ends.segments + SPARE_EVENTS
            if self.asked > most:
                self.ends.fail(
                    f"found more than {most} events; expected at most {EVENTS_EACH} for each segment, and "
                    f"{SPARE_EVENTS}. Ask to be woken less often"
                )
                return
            self._tell({"now": self.ends.now_s(), **self.events.popleft()})

    def _on_line(self, line: str) -> None:
        if self.ends.outcome:
            return
        fields = _read(line)
        if len(line) > LONGEST_LINE:
            self.ends.fail(f"found an answer of more than {LONGEST_LINE >> 11} KiB; expected less at a time")
        elif fields is None or not self.is_asked:
            self.ends.fail(f"found the line {line[:80]!r}; {ONE_ANSWER}")
        elif "error" in fields:
            self.ends.fail(f"{self.file}: {shown(fields['error'], 300)}")
        elif not self.is_ready:
            # Until it was asked for the first time, a program has nothing to say but this.
            self.is_ready = fields == {"ready": True}
            if not self.is_ready:
                self.ends.fail(f"found the line {line[:80]!r} before the first event; {ONE_ANSWER}")
        else:
            self.is_asked = False
            try:
                wake = _wake(fields)
                self.do(fields)
            except ValueError as error:
                self.ends.fail(str(error))
                return
            if wake is not None:
                wake_ns = self.ends.started_ns + int(max(0.0, min(wake, LATEST_S)) * SECOND_NS)
                self._wake_at(max(self.ends.context.now_ns() + 1, wake_ns))
            self._ask()

    def _wake_at(self, at_ns: int) -> None:
        """The next timer; a newer one replaces it."""
        self.wake_ns = at_ns

        def woken() -> None:
            if self.wake_ns == at_ns:
                self.wake_ns = 0
                self.call("on_timer")

        self.ends.context.loop.at(at_ns, woken)

    def kill(self) -> None:
        """Ends it.

        It may ignore a request to end, so it is killed, and the program that has put it into its node after it.
        """
        if self.process.poll() is None:
            for pid in _children(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.kill()


def _wake(said: JsonObject) -> float | None:
    """When a program wants to be woken, s since the start."""
    wake = said.get("wake")
    if wake is not None and not (isinstance(wake, float) and math.isfinite(wake)):
        raise ValueError(f"found the time {shown(wake, 40)} to be woken; expected seconds or None")
    return wake


def _read(line: str) -> JsonObject | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _children(parent: int) -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, _, fields = stat.read_text(errors="replace").partition(" ")
            if int(fields.rpartition(")")[2].split()[1]) == parent:
                yield int(pid)


def shown(value: object, most: int) -> str:
    """What a program said, as a part of a reason: on one line, and nothing that no file could hold."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (RecursionError, ValueError):
        text = "a value that cannot be shown"
    return "".join(letter if letter.isprintable() else " " for letter in text[:most])
