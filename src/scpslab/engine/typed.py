"""Commands from a file or a pipe: they are typed at a terminal of the lab's own, each one when the prompt asks for it."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from scpslab.lab.place import BASH_GOES_ON, BASH_PROMPT, MININET_PROMPT, PROMPT

PROMPTS = tuple(prompt.encode() for prompt in (PROMPT, BASH_PROMPT, BASH_GOES_ON, MININET_PROMPT))
END_OF_INPUT = b"\x04"
LOOK_AGAIN_S = 0.2
READ_BYTES = 65536


@contextmanager
def typed(source: int, shown: int) -> Iterator[int]:
    """A terminal at which the lines of `source` are typed; yields the lab's side of it. What the lab prints goes to `shown`. Both are file descriptors."""
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
    """Types a line at every prompt, and the end of input after the last one. A line typed earlier would go to the program that runs in a node."""

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
