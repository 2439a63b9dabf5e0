"""The console of a session: the user's terminal, or one at which the lines of a file are typed.

A lab without its terminal is of no use to anybody: it ends when the terminal is closed.
"""

from __future__ import annotations

import os
import select
import signal
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from scpslab.engine.base import Interrupted, LabProcess
from scpslab.engine.typed import typed

STANDARD = (0, 1, 2)
INPUT, OUTPUT = 0, 1
LOOK_AGAIN_MS = 200
READS_WITHIN_S = 0.1
ENDINGS = (signal.SIGHUP, signal.SIGTERM)
GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


@dataclass(frozen=True)
class SessionConsole:
    """Where a lab reads and prints: two file descriptors, and the kind of the terminal as TERM names it, `dumb` where no person types."""

    input: int
    output: int
    kind: str


@contextmanager
def at_terminal() -> Iterator[SessionConsole]:
    """The console of a session. Raises Interrupted in the block at SIGHUP and SIGTERM.

    It leaves the terminal as it was found: a lab kernel that is killed does not.
    """
    settings = termios.tcgetattr(INPUT) if os.isatty(INPUT) else None

    def end(_number: int, _frame: FrameType | None) -> None:
        # More than one process may report a closed terminal; the lab must be taken down undisturbed.
        for number in ENDINGS:
            signal.signal(number, signal.SIG_IGN)
        raise Interrupted

    before = {number: signal.signal(number, end) for number in ENDINGS}
    try:
        if settings:
            yield SessionConsole(INPUT, OUTPUT, os.environ.get("TERM", "dumb"))
        else:
            # The lab kernel takes a pipe that has been read to its end for a terminal that was closed.
            with typed(INPUT, OUTPUT) as screen:
                yield SessionConsole(screen, screen, "dumb")
    except Interrupted:
        _let_go_of_closed()
        raise
    else:
        for number, handler in before.items():
            signal.signal(number, handler)
    finally:
        if settings:
            with suppress(termios.error):
                termios.tcsetattr(INPUT, termios.TCSADRAIN, settings)


def wait_for_user(process: LabProcess, console: SessionConsole, meanwhile: Callable[[], None], nudge: Callable[[], None]) -> int:
    """Waits until the lab's process ends, and calls `meanwhile` several times a second; returns the exit code.

    `nudge` is called if the lab does not read what the user has typed.

    Raises:
        Interrupted: the terminal was closed. The signal for it does not reach a process that was started to ignore it.
    """
    watched = select.poll()
    watched.register(console.input, select.POLLIN)
    while process.poll() is None:
        seen = watched.poll(LOOK_AGAIN_MS)
        if any(event & GONE for _, event in seen):
            raise Interrupted
        if seen:
            time.sleep(READS_WITHIN_S)
            if watched.poll(0):
                nudge()
        meanwhile()
    return process.returncode or 0


def _let_go_of_closed() -> None:
    """Puts the null device in the place of a closed terminal, so that what follows can print."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in STANDARD:
        watched = select.poll()
        watched.register(descriptor, 0)
        if any(event & GONE for _, event in watched.poll(0)):
            os.dup2(nothing, descriptor)
    os.close(nothing)
