"""The lab's clocks: wall clock (virtual in virtual time) and the epoch that every record counts from; and its one event
loop: timers, and processes whose end and output matter. It sleeps in poll and nowhere else.
"""

import ctypes
import heapq
import itertools
import os
import selectors
import socket
import subprocess
import time
from collections.abc import Callable
from typing import IO

SECOND_NS = 1_000_000_000


def now_ns() -> int:
    """Wall clock, ns."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


class Epoch:
    """The instant the network is up: a whole second of the wall clock, zero of `t_s` in every record."""

    def __init__(self) -> None:
        self.realtime_ns = (now_ns() // SECOND_NS + 1) * SECOND_NS
        # What the wall clock is ahead of the monotonic one.
        self.offset_ns = now_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def t_s(self, realtime_ns: int) -> float:
        """Seconds since the epoch of a wall-clock instant, to 1 ns."""
        return round((realtime_ns - self.realtime_ns) / SECOND_NS, 9)

    def now_s(self) -> float:
        """Seconds since the epoch, now."""
        return self.t_s(now_ns())

    def monotonic_ns(self, t_ns: int) -> int:
        """The monotonic instant that lies `t_ns` after the epoch."""
        return self.realtime_ns + t_ns - self.offset_ns


_LIBC = ctypes.CDLL(None, use_errno=True)
ABSOLUTE = 1  # TFD_TIMER_ABSTIME, linux/timerfd.h


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("it_interval", _Timespec), ("it_value", _Timespec))


class Alarm:
    """A timer (timerfd_create(2)) whose `fd` becomes readable at the instant of the wall clock that was set last.

    A timeout of epoll_wait(2) counts from the call, in whole milliseconds: what happens then would depend on how long
    the set-up took.
    """

    def __init__(self) -> None:
        self.fd: int = _LIBC.timerfd_create(time.CLOCK_REALTIME, os.O_CLOEXEC | os.O_NONBLOCK)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._set_ns: int | None = None

    def set(self, realtime_ns: int | None) -> None:
        """Goes off at an instant of the wall clock, ns (at once when it has passed); None: never."""
        if realtime_ns == self._set_ns:
            return
        self._set_ns = realtime_ns
        value = _Timespec(*divmod(max(realtime_ns, 1), SECOND_NS)) if realtime_ns is not None else _Timespec(0, 0)
        if _LIBC.timerfd_settime(self.fd, ABSOLUTE, ctypes.byref(_Itimerspec(_Timespec(0, 0), value)), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def clear(self) -> None:
        """Takes note that it went off."""
        try:
            os.read(self.fd, 8)
            self._set_ns = None
        except BlockingIOError:
            pass  # set anew since


# Where a program writes no line feed, what it has written is held up to here.
LONGEST_LINE = 1 << 20


class Loop:
    """Calls what is due. Times are wall clock in ns (virtual in virtual time)."""

    def __init__(self) -> None:
        self._selector = selectors.EpollSelector()
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._before_sleep: list[Callable[[int], None]] = []
        self._alarm = Alarm()
        self._selector.register(self._alarm.fd, selectors.EVENT_READ, self._alarm.clear)

    def at(self, realtime_ns: int, call: Callable[[], None]) -> None:
        """Calls at an instant (at once when it has passed)."""
        heapq.heappush(self._timers, (realtime_ns, next(self._order), call))

    def before_sleep(self, call: Callable[[int], None]) -> None:
        """Calls once, when everything that is due is done, with the instant, ns."""
        self._before_sleep.append(call)

    def on_exit(self, process: subprocess.Popen[bytes], call: Callable[[int], None]) -> None:
        """Calls with the exit code when the process ends."""
        fd = os.pidfd_open(process.pid)

        def ended() -> None:
            self._selector.unregister(fd)
            os.close(fd)
            call(process.wait())

        self._selector.register(fd, selectors.EVENT_READ, ended)

    def on_lines(self, stream: IO[bytes] | None, call: Callable[[str], None]) -> None:
        """Calls with every line the stream delivers, until it ends; the last one may have no line feed.

        One of more than LONGEST_LINE bytes comes in parts.
        """
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

        self.on_data(stream, readable, lambda: call(held.decode(errors="replace")) if held else None)

    def on_data(
        self, stream: IO[bytes] | None, call: Callable[[bytes], None], ended: Callable[[], None] = lambda: None
    ) -> None:
        """Calls with what the stream delivers, until it ends."""
        assert stream is not None  # the process was started with a pipe
        os.set_blocking(stream.fileno(), False)

        def readable() -> None:
            # The end is read with what comes before it: it must not come behind the end of the program.
            while data := stream.read(1 << 16):
                call(data)
                if len(data) == 1 << 16:
                    return
            if data == b"":
                self._selector.unregister(stream)
                stream.close()
                ended()

        self._selector.register(stream, selectors.EVENT_READ, readable)

    def on_readable(self, source: socket.socket, call: Callable[[], None]) -> None:
        """Calls whenever there is something to read."""
        self._selector.register(source, selectors.EVENT_READ, call)

    def run_until(self, done: Callable[[], bool], limit_ns: int | None = None) -> bool:
        """Runs until `done()`; false when the instant `limit_ns` came first."""
        while not done():
            now = now_ns()
            if limit_ns is not None and now >= limit_ns:
                return False
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2]()
            if done():
                break
            while self._before_sleep:
                self._before_sleep.pop()(now)
            next_ns = self._timers[0][0] if self._timers else None
            if limit_ns is not None:
                next_ns = limit_ns if next_ns is None else min(next_ns, limit_ns)
            self._alarm.set(next_ns)
            for key, _ in self._selector.select():
                key.data()
        return True
