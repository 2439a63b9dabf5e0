"""The console of a session: the user's terminal, or one at which the lines of a file are typed.

A lab without its terminal is of no use to anybody: it ends when the terminal is closed.
"""

from __future__ import annotations

import os
import select
import signal
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

from scpslab.engine.base import Interrupted, LabProcess
from scpslab.lab.place import BASH_GOES_ON, BASH_PROMPT, MININET_PROMPT, PROMPT

PROMPTS = tuple(prompt.encode() for prompt in (PROMPT, BASH_PROMPT, BASH_GOES_ON, MININET_PROMPT))
END_OF_INPUT = b"\x04"
LOOK_AGAIN_S = 0.2
READ_BYTES = 65536


@contextmanager
def typed(source: int, shown: int) -> Iterator[int]:
    """A terminal at which the lines of `source` are typed; yields the lab's side of it.

    What the lab prints goes to `shown`. Both are file descriptors.
    """
    keyboard, screen = os.openpty()
    typist = Typist(source, shown, keyboard)
    thread = threading.Thread(target=typist.serve)
    thread.start()
    try:
        yield screen
    finally:
        os.close(screen)
        typist.finished.set()
        thread.join()
        os.close(keyboard)


@dataclass
class Typist:
    """Types a line at every prompt, and the end of input after the last one.

    A line typed earlier would go to the program that runs in a node.
    """

    source: int
    shown: int
    keyboard: int
    finished: threading.Event = field(default_factory=threading.Event)
    waiting: bytes = b""
    recent: bytes = b""
    prompted: bool = False

    def serve(self) -> None:
        """Works until the lab has ended and everything that it printed is shown."""
        while True:
            last = self.finished.is_set()
            # A writer of commands may take its time; what the lab prints meanwhile is shown.
            asked = [self.source] if self.prompted and not last else []
            ready, _, _ = select.select([self.keyboard, *asked], [], [], 0 if last else LOOK_AGAIN_S)
            if self.keyboard in ready:
                try:
                    self._show(os.read(self.keyboard, READ_BYTES))
                except OSError:  # Linux says so when nobody has the other side open any more
                    return
            elif last:
                return
            elif self.source in ready:
                self._read(os.read(self.source, READ_BYTES))

    def _show(self, printed: bytes) -> None:
        self.recent = (self.recent + printed)[-max(map(len, PROMPTS)) :]
        while printed:
            printed = printed[os.write(self.shown, printed) :]
        self.prompted = self.recent.endswith(PROMPTS)
        if self.prompted and b"\n" in self.waiting:
            self._type()

    def _read(self, more: bytes) -> None:
        if not more:
            # A last line may lack its end.
            self.waiting = self.waiting + b"\n" if self.waiting else END_OF_INPUT
        else:
            self.waiting += more
        if self.waiting.endswith(END_OF_INPUT) or b"\n" in self.waiting:
            self._type()

    def _type(self) -> None:
        line, end, self.waiting = self.waiting.partition(b"\n")
        self.prompted, self.recent = False, b""
        os.write(self.keyboard, line + end)


STANDARD = (0, 1, 2)
INPUT, OUTPUT = 0, 1
LOOK_AGAIN_MS = 200
READS_WITHIN_S = 0.1
ENDINGS = (signal.SIGHUP, signal.SIGTERM)
GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


@dataclass(frozen=True)
class SessionConsole:
    """Where a lab reads and prints: two file descriptors, and the kind of the terminal as TERM names it, `dumb` where
    no person types.
    """

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


def wait_for_user(
    process: LabProcess, console: SessionConsole, meanwhile: Callable[[], None], nudge: Callable[[], None]
) -> int:
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
