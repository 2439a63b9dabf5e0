"""Consoles. A lab's own: what it says is kept up to a limit, and samples of its cell are told while it runs. A program
in the lab can write there too, whatever it likes.

That of a session: the user's terminal, or one at which the lines of a file are typed. A lab without its terminal is of
no use to anybody: it ends when the terminal is closed.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import TypeGuard

from scpslab.core.strict_json import JsonError, loads
from scpslab.engine.base import CellSample, Interrupted, LabProcess
from scpslab.engine.cell_folder import CellFolder
from scpslab.lab.place import BASH_GOES_ON, BASH_PROMPT, MININET_PROMPT, PROMPT
from scpslab.lab.records import LIVE, LONGEST_LIVE
from scpslab.plan import Plan
from scpslab.plan.cell import LONGEST_S

# A lab that works says some kilobytes. One that floods its console is ended, within LOOK_S.
MOST_BYTES, LOOK_S = 16 << 20, 0.2
READ_BYTES = 1 << 16
KEY = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
LONGEST_TEXT, LARGEST = 60, 1 << 63


class LabConsole:
    """The console of a cell's lab, in the cell's folder."""

    def __init__(self, folder: CellFolder, hear: Callable[[CellSample], None] | None = None) -> None:
        """`hear`: gets the samples, if anybody listens."""
        self._folder, self._hear = folder, hear
        self._sources = sources(folder.plan)
        self._heard = 0

    @contextmanager
    def watched(self, process: LabProcess) -> Iterator[None]:
        """Meanwhile, samples are told, and a lab that fills its console is ended; `cut` says so afterwards."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(LOOK_S):
                self._tell()
                if self._bytes() > MOST_BYTES:
                    process.kill()
                    return

        thread = threading.Thread(target=watch, name="console", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self._tell()

    def cut(self) -> str:
        """Cuts what an ended lab has said at the limit. Returns "", or why the lab failed."""
        if self._bytes() <= MOST_BYTES:
            return ""
        os.truncate(self._folder.console, MOST_BYTES)
        return (
            f"found more than {MOST_BYTES >> 20} MiB on the lab's console; expected less. "
            "Have the cell's programs say less"
        )

    def _bytes(self) -> int:
        with suppress(FileNotFoundError):
            return self._folder.console.stat().st_size
        return 0

    def _tell(self) -> None:
        """Tells the samples since the last look; a line that has no end yet is left for the next one."""
        if self._hear is None or self._bytes() <= self._heard:
            return
        with self._folder.console.open("rb") as console:
            console.seek(self._heard)
            while said := console.read(READ_BYTES):
                end = said.rfind(b"\n") + 1
                if not end and len(said) < READ_BYTES:
                    return
                # A line that fills a whole piece is none of ours.
                self._heard += end or len(said)
                console.seek(self._heard)
                for line in said[:end].split(b"\n"):
                    if sample := read(line, self._sources):
                        self._hear(sample)


def sources(plan: Plan) -> frozenset[str]:
    """The names of what can say something in a cell."""
    return frozenset(part.name for part in plan.cell.workloads) | {part.name for part in plan.cell.probes}


def line_of(sample: CellSample) -> str:
    """A sample as a line of the live stream, which `read` reads: for a cell that runs on another machine."""
    return f"{LIVE}{json.dumps({'source': sample.source, 't_s': sample.t_s, **sample.values})}\n"


def read(line: bytes, sources: frozenset[str]) -> CellSample | None:
    """The sample in a line of the console; None where it is none of the live stream, or not as our lab writes it."""
    if not line.startswith(LIVE.encode()) or len(line) > LONGEST_LIVE:
        return None
    try:
        fields = loads(line[1:])
    except JsonError:
        return None
    if not isinstance(fields, dict):
        return None
    source, t_s = fields.pop("source", None), fields.pop("t_s", None)
    if not isinstance(source, str) or source not in sources or not _is_number(t_s) or not 0 <= t_s <= LONGEST_S:
        return None
    values = {key: value for key, value in fields.items() if KEY.fullmatch(key) and _is_plain(value)}
    return CellSample(t_s, source, values) if len(values) == len(fields) else None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_plain(value: object) -> TypeGuard[str | float | None]:
    """Whether a terminal obeys nothing in it."""
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT and value.isascii() and value.isprintable()
    return value is None or _is_number(value)


PROMPTS = tuple(prompt.encode() for prompt in (PROMPT, BASH_PROMPT, BASH_GOES_ON, MININET_PROMPT))
END_OF_INPUT = b"\x04"
LOOK_AGAIN_S = 0.2


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


@contextmanager
def elsewhere(
    show: Callable[[bytes], None], lend: Callable[[Callable[[bytes], object]], None]
) -> Iterator[SessionConsole]:
    """The console of a session whose terminal is a window of another program.

    `show` gets what the lab prints, from a thread; `lend` what types. Raises Interrupted in the block at Ctrl-C of the
    user's terminal, SIGTERM and SIGHUP.
    """
    keyboard, screen = os.openpty()
    over = threading.Event()

    def listen() -> None:
        with suppress(OSError):  # Linux says so when nobody has the other side open any more
            while (ready := select.select([keyboard], [], [], LOOK_AGAIN_S)[0]) or not over.is_set():
                if ready:
                    show(os.read(keyboard, READ_BYTES))

    def end(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise Interrupted

    for number in (*ENDINGS, signal.SIGINT):
        signal.signal(number, end)
    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    lend(partial(os.write, keyboard))
    try:
        yield SessionConsole(screen, screen, "dumb")
    finally:
        lend(lambda _keys: None)
        over.set()
        os.close(screen)
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
