"""A transfer of datagrams whose sender asks a policy, somebody's Python code, what to send and when.

The lab itself is both ends: it sends, receives, compares and counts. The policy is a program without rights in the
sending node (lab/policy_runner.py), which hears of starts, answers and timers, and answers each with the segments to
send and the time to be woken. It hears one event at a time.

Datagrams, all numbers big endian. A packet of data: segment 4 B, copy 4 B, time of sending 8 B (ns since the start),
then the segment's data. An answer: segment, copy and time of the packet that came, as they came; `below` 4 B, `arrived`
4 B, the number of holes 1 B, then of each hole the first and last segment, 4 B each.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import signal
import socket
import struct
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from scpslab.core.strict_json import JsonObject
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.netlink import inside
from scpslab.lab.place import PROGRAMS
from scpslab.lab.workloads import Workload

from scpslab.kinds.workloads.policy import plan as planned
from scpslab.kinds.workloads.policy.plan import DATA_HEADER_BYTES

RUNNER = PROGRAMS / "scpslab" / "lab" / "policy_runner.py"
READY_LIMIT_NS = 30 * SECOND_NS
# The lab's own sockets lose nothing: only the link does.
SOCKET_BUFFER_BYTES = 64 << 20
# Linux asm-generic/socket.h: buffers beyond the limits of sysctl, for root. Python does not name them.
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
LARGEST_DATAGRAM = 1 << 16
MOST_COPIES, SPARE_COPIES = 20, 1000
MOST_AT_ONCE = 10_000
# A policy that asks to be woken again and again lets hardly any virtual time pass.
EVENTS_EACH, SPARE_EVENTS = 20, 10_000
LONGEST_LINE = 1 << 18
LATEST_S = 1e9
ONE_ANSWER = "expected one answer to each event"


class Policy(Workload[planned.Policy]):
    """Completed when every segment has arrived as it was sent."""

    def prepare(self) -> None:
        """Opens the sockets, and starts the policy."""
        spec = self.spec
        self.segments = -(-spec.bytes_ // spec.segment_bytes)
        self.missing = [True] * self.segments
        self.was_sent = [False] * self.segments
        self.below = self.end = self.arrived = self.copies = self.resent = 0
        self.events: deque[JsonObject] = deque()
        self.asked = 0
        self.is_asked, self.ready, self.wake_ns = True, False, 0
        self.receiver = self._socket(spec.to, spec.to_ip, spec.port)
        self.sender = self._socket(spec.from_, spec.from_ip, 0)
        self.sender.connect((spec.to_ip, spec.port))
        # The program gives its rights up by itself, and gets none by starting another one.
        runner = ["env", "-i", "PYTHONHASHSEED=0", "python3", "-I", "-S", "-B", str(RUNNER)]
        command = [*self.network.node(spec.from_).prefix, "setpriv", "--no-new-privs", *runner]
        self.policy = self.run_command(spec.from_, command, self._on_line, self._on_exit, stdin=subprocess.PIPE)
        first = {"file": spec.file, "code": spec.code, "segments": self.segments, "packet_bytes": spec.packet_bytes}
        self._tell(first)
        assert self.policy.stdin is not None
        # A policy that reads nothing any more must not stop the lab.
        os.set_blocking(self.policy.stdin.fileno(), False)
        if not self.context.loop.run_until(
            lambda: self.ready or bool(self.outcome), self.context.now_ns() + READY_LIMIT_NS
        ):
            self.fail("found no object of the class Policy within 30 s; expected one")

    def start(self) -> None:
        """The first event."""
        if self.outcome:
            return
        self.started_ns = self.context.now_ns()
        self.context.loop.on_readable(self.receiver, self._received(self.receiver, self._data))
        self.context.loop.on_readable(self.sender, self._received(self.sender, self._answer))
        self.context.loop.at(self.started_ns + self.spec.timeout_ns, lambda: self.fail("the timeout ran out"))
        self.is_asked = False
        self._add({"event": "start"})

    def _socket(self, node: str, ip: str, port: int) -> socket.socket:
        with inside(self.network.pid(node)):
            opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for option in (SO_RCVBUFFORCE, SO_SNDBUFFORCE):
            opened.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER_BYTES)
        opened.bind((ip, port))
        opened.setblocking(False)
        return opened

    def _tell(self, line: Mapping[str, object]) -> None:
        assert self.policy.stdin is not None
        try:
            text = json.dumps(line).encode() + b"\n"
            while text:
                text = text[os.write(self.policy.stdin.fileno(), text) :]
        except (BlockingIOError, BrokenPipeError):
            self.fail("found a policy that reads nothing any more; expected an answer to each event")

    def _add(self, event: JsonObject) -> None:
        if not self.outcome:
            self.events.append(event)
            self._ask()

    def _ask(self) -> None:
        if self.events and not self.is_asked and not self.outcome:
            self.is_asked = True
            self.asked += 1
            most = EVENTS_EACH * self.segments + SPARE_EVENTS
            if self.asked > most:
                self.fail(
                    f"found more than {most} events; expected at most {EVENTS_EACH} for each segment, and "
                    f"{SPARE_EVENTS}. Ask to be woken less often"
                )
                return
            self._tell({"now": (self.context.now_ns() - self.started_ns) / SECOND_NS, **self.events.popleft()})

    def _on_line(self, line: str) -> None:
        if self.outcome:
            return
        fields = _read(line)
        if fields is None or not self.is_asked:
            self.fail(f"found the line {line[:80]!r}; {ONE_ANSWER}")
        elif "error" in fields:
            self.fail(f"{self.spec.file}: {_shown(fields['error'], 300)}")
        elif not self.ready:
            # Until it was asked for the first time, a policy has nothing to say but this.
            self.ready = fields == {"ready": True}
            if not self.ready:
                self.fail(f"found the line {line[:80]!r} before the first event; {ONE_ANSWER}")
        else:
            self.is_asked = False
            self._do(fields)
            self._ask()

    def _do(self, said: JsonObject) -> None:
        try:
            reply = Reply.of(said, self.segments)
        except ValueError as error:
            self.fail(str(error))
            return
        for segment in reply.send:
            if not self.outcome:
                self._send(segment)
        if reply.wake_s is not None:
            wake_ns = int(max(0.0, min(reply.wake_s, LATEST_S)) * SECOND_NS)
            self._wake_at(max(self.context.now_ns() + 1, self.started_ns + wake_ns))

    def _wake_at(self, at_ns: int) -> None:
        """The next timer; a newer one replaces it."""
        self.wake_ns = at_ns

        def woken() -> None:
            if self.wake_ns == at_ns:
                self.wake_ns = 0
                self._add({"event": "timer"})

        self.context.loop.at(at_ns, woken)

    def _send(self, segment: int) -> None:
        if self.copies >= MOST_COPIES * self.segments + SPARE_COPIES:
            self.fail(
                f"found {self.copies} packets sent for {self.segments} segments; "
                f"expected at most {MOST_COPIES} times as many"
            )
            return
        data = Data(segment, self.copies, self.context.now_ns() - self.started_ns, self._content(segment))
        self.copies += 1
        self.resent += self.was_sent[segment]
        self.was_sent[segment] = True
        try:
            self.sender.send(write_data(data))
        except BlockingIOError:
            self.fail(
                f"found more packets under way than {SOCKET_BUFFER_BYTES >> 20} MiB hold; expected fewer at a time"
            )

    def _content(self, segment: int) -> bytes:
        size = min(self.spec.segment_bytes, self.spec.bytes_ - segment * self.spec.segment_bytes)
        return content(self.spec.payload_seed, segment, size)

    def _received(self, opened: socket.socket, take: Callable[[bytes, Any], None]) -> Callable[[], None]:
        def readable() -> None:
            while True:
                try:
                    datagram, source = opened.recvfrom(LARGEST_DATAGRAM)
                except BlockingIOError:
                    return
                if not self.outcome:
                    take(datagram, source)

        return readable

    def _data(self, datagram: bytes, source: Any) -> None:
        data = read_data(datagram)
        # Whatever else comes to the port is no part of the transfer.
        if data is None or data.segment >= self.segments or data.content != self._content(data.segment):
            return
        if self.missing[data.segment]:
            self.missing[data.segment] = False
            self.arrived += 1
        self.end = max(self.end, data.segment + 1)
        while self.below < self.segments and not self.missing[self.below]:
            self.below += 1
        holes = holes_of(self.missing, self.below, self.end)
        self.receiver.sendto(
            write_answer(Answer(data.segment, data.copy, data.sent_ns, self.below, self.arrived, holes)), source
        )
        if self.arrived == self.segments:
            self._note()
            self.finish("completed")
            self.close()

    def _answer(self, datagram: bytes, _source: Any) -> None:
        answer = read_answer(datagram)
        if answer is not None:
            fields: JsonObject = {"segment": answer.segment, "copy": answer.copy, "sent": answer.sent_ns / SECOND_NS}
            fields |= {"below": answer.below, "arrived": answer.arrived, "holes": [list(hole) for hole in answer.holes]}
            self._add({"event": "answer", "answer": fields})

    def _note(self) -> None:
        now_ns = self.context.now_ns()
        self.records.write(
            event="end",
            t_s=self.context.epoch.t_s(now_ns),
            transfer_s=(now_ns - self.started_ns) / SECOND_NS,
            bytes=self.spec.bytes_,
            segments=self.segments,
            sent_packets=self.copies,
            resent_packets=self.resent,
        )

    def close(self) -> None:
        """Ends the policy.

        It may ignore a request to end, so it is killed, and the program that has put it into its node after it.
        """
        if self.policy.poll() is None:
            for pid in _children(self.policy.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.policy.kill()

    def fail(self, reason: str, log_of: str = "", outcome: str = "incomplete") -> None:
        """Notes how far it came, and ends it."""
        if not self.outcome:
            self.records.write(
                event="failed", reason=reason, segments=self.segments, arrived=self.arrived, sent_packets=self.copies
            )
            super().fail(reason, log_of, outcome)
            self.close()

    def _on_exit(self, code: int) -> None:
        log = f"logs/{self.name}-{self.spec.from_}.log"
        self.fail(f"{self.spec.file}: its process ended with exit code {code}; see {log}")


def _read(line: str) -> JsonObject | None:
    try:
        fields = json.loads(line) if len(line) <= LONGEST_LINE else None
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


@dataclass(frozen=True)
class Reply:
    """What a policy answers to an event: segments to send, and when it wants to be woken, s since the start."""

    send: tuple[int, ...]
    wake_s: float | None

    @classmethod
    def of(cls, said: JsonObject, segments: int) -> Self:
        """The answer in a line.

        Raises:
            ValueError: it cannot be one for so many segments.
        """
        send, wake = said.get("send"), said.get("wake")
        listed = send if isinstance(send, list) else [None]
        known = tuple(one for one in listed if type(one) is int and 0 <= one < segments)
        if len(listed) > MOST_AT_ONCE or len(known) < len(listed):
            raise ValueError(
                f"found segments {_shown(send, 80)}; expected at most {MOST_AT_ONCE} of 0 to {segments - 1}"
            )
        if wake is not None and not (isinstance(wake, float) and math.isfinite(wake)):
            raise ValueError(f"found the time {_shown(wake, 40)} to be woken; expected seconds or None")
        return cls(known, wake)


def _children(parent: int) -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, _, fields = stat.read_text(errors="replace").partition(" ")
            if int(fields.rpartition(")")[2].split()[1]) == parent:
                yield int(pid)


def _shown(value: object, most: int) -> str:
    """What a policy said, as a part of a reason: on one line, and nothing that no file could hold."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (RecursionError, ValueError):
        text = "a value that cannot be shown"
    return "".join(letter if letter.isprintable() else " " for letter in text[:most])


KIND = Policy


_DATA = struct.Struct(">IIQ")
_ANSWER = struct.Struct(">IIQIIB")
_HOLE = struct.Struct(">II")
MOST_HOLES = 64
assert _DATA.size == DATA_HEADER_BYTES


@dataclass(frozen=True)
class Data:
    """A packet of data: `copy` counts all packets of the transfer from 0."""

    segment: int
    copy: int
    sent_ns: int
    content: bytes


@dataclass(frozen=True)
class Answer:
    """What the receiver answers to each packet: which packet came, that all segments before `below` have arrived, how
    many have, and the holes above.
    """

    segment: int
    copy: int
    sent_ns: int
    below: int
    arrived: int
    holes: tuple[tuple[int, int], ...]


def write_data(data: Data) -> bytes:
    """The datagram."""
    return _DATA.pack(data.segment, data.copy, data.sent_ns) + data.content


def read_data(datagram: bytes) -> Data | None:
    """The packet in a datagram; None for anything else."""
    if len(datagram) < _DATA.size:
        return None
    segment, copy, sent_ns = _DATA.unpack_from(datagram)
    return Data(segment, copy, sent_ns, datagram[_DATA.size :])


def write_answer(answer: Answer) -> bytes:
    """The datagram; of more than 64 holes the first ones are in it."""
    holes = answer.holes[:MOST_HOLES]
    head = _ANSWER.pack(answer.segment, answer.copy, answer.sent_ns, answer.below, answer.arrived, len(holes))
    return head + b"".join(_HOLE.pack(*hole) for hole in holes)


def read_answer(datagram: bytes) -> Answer | None:
    """The answer in a datagram; None for anything else."""
    if len(datagram) < _ANSWER.size:
        return None
    segment, copy, sent_ns, below, arrived, holes = _ANSWER.unpack_from(datagram)
    if len(datagram) != _ANSWER.size + holes * _HOLE.size:
        return None
    ranges = tuple((first, last) for first, last in _HOLE.iter_unpack(datagram[_ANSWER.size :]))
    return Answer(segment, copy, sent_ns, below, arrived, ranges)


def content(seed: int, segment: int, size: int) -> bytes:
    """The data of a segment."""
    return hashlib.shake_128(f"{seed} {segment}".encode()).digest(size)


def holes_of(missing: Sequence[bool], below: int, end: int) -> tuple[tuple[int, int], ...]:
    """The first holes from `below` up to `end`: ranges of segments that are missing, first and last."""
    holes: list[tuple[int, int]] = []
    at = below
    while at < end and len(holes) < MOST_HOLES:
        if missing[at]:
            last = at
            while last + 1 < end and missing[last + 1]:
                last += 1
            holes.append((at, last))
            at = last
        at += 1
    return tuple(holes)
