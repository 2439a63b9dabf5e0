"""The lab's one event loop: timers, and processes whose end and output matter. It sleeps in poll and nowhere else."""

from __future__ import annotations

import heapq
import itertools
import os
import selectors
import socket
import subprocess
import time
from collections.abc import Callable
from typing import IO

from scpslab.lab.alarm import Alarm

# Where a program writes no line feed, what it has written is held up to here.
LONGEST_LINE = 1 << 20


class Loop:
    """Calls what is due. Times are wall clock in ns (virtual in virtual time)."""

    def __init__(self) -> None:
        self._selector = selectors.EpollSelector()
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._alarm = Alarm()
        self._selector.register(self._alarm.fd, selectors.EVENT_READ, self._alarm.clear)

    def at(self, realtime_ns: int, call: Callable[[], None]) -> None:
        """Calls at an instant (at once when it has passed)."""
        heapq.heappush(self._timers, (realtime_ns, next(self._order), call))

    def on_exit(self, process: subprocess.Popen[bytes], call: Callable[[int], None]) -> None:
        """Calls with the exit code when the process ends."""
        fd = os.pidfd_open(process.pid)

        def ended() -> None:
            self._selector.unregister(fd)
            os.close(fd)
            call(process.wait())

        self._selector.register(fd, selectors.EVENT_READ, ended)

    def on_lines(self, stream: IO[bytes], call: Callable[[str], None]) -> None:
        """Calls with every line the stream delivers, until it ends. One of more than LONGEST_LINE bytes comes in parts."""
        held = bytearray()

        def readable(data: bytes) -> None:
            held.extend(data)
            while (end := held.find(b"\n")) >= 0:
                line = held[:end].decode(errors="replace")
                del held[: end + 1]
                call(line)
            if len(held) > LONGEST_LINE:
                call(held.decode(errors="replace"))
                held.clear()

        self.on_data(stream, readable)

    def on_data(self, stream: IO[bytes], call: Callable[[bytes], None]) -> None:
        """Calls with what the stream delivers, until it ends."""
        os.set_blocking(stream.fileno(), False)

        def readable() -> None:
            data: bytes | None = stream.read(1 << 16)
            if data == b"":
                self._selector.unregister(stream)
                stream.close()
                return
            call(data or b"")

        self._selector.register(stream, selectors.EVENT_READ, readable)

    def on_readable(self, source: socket.socket, call: Callable[[], None]) -> None:
        """Calls whenever there is something to read."""
        self._selector.register(source, selectors.EVENT_READ, call)

    def run_until(self, done: Callable[[], bool], limit_ns: int | None = None) -> bool:
        """Runs until `done()`; false when the instant `limit_ns` came first."""
        while not done():
            now = time.clock_gettime_ns(time.CLOCK_REALTIME)
            if limit_ns is not None and now >= limit_ns:
                return False
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2]()
            if done():
                break
            next_ns = self._timers[0][0] if self._timers else None
            if limit_ns is not None:
                next_ns = limit_ns if next_ns is None else min(next_ns, limit_ns)
            self._alarm.set(next_ns)
            for key, _ in self._selector.select():
                key.data()
        return True
