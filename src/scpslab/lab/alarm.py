"""A timer that is a file descriptor (timerfd_create(2)), for the lab's loop.

A timeout of epoll_wait(2) counts from the call, in whole milliseconds: what happens then would depend on how long the set-up took. A timer of
the wall clock goes off at its instant.
"""

from __future__ import annotations

import ctypes
import os
import time

_LIBC = ctypes.CDLL(None, use_errno=True)
ABSOLUTE = 1  # TFD_TIMER_ABSTIME, linux/timerfd.h
SECOND_NS = 1_000_000_000


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("it_interval", _Timespec), ("it_value", _Timespec))


class Alarm:
    """Its `fd` becomes readable at the instant that was set last."""

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
