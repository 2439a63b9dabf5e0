"""When the lines are written that events follow (plan/events.py, After).

The lab looks at a file whenever somebody writes to its folder, in the run that asks for the instants and in the one
that knows them: until the first of these events, both are the same to the nanosecond.
"""

import ctypes
import os
import re
from collections.abc import Iterable
from functools import partial

from scpslab.lab.context import Context
from scpslab.lab.place import WORK
from scpslab.lab.records import INSTANTS, Records
from scpslab.plan.events import Step

_LIBC = ctypes.CDLL(None, use_errno=True)
IN_MODIFY = 2  # sys/inotify.h


class Instants:
    """Finds the first line that each step follows.

    `broken`: a line comes at another time than in the run before. `are_due`: a step would come now of which only this
    run knows when; what it has found is in INSTANTS then.
    """

    def __init__(self, context: Context, steps: tuple[Step, ...], records: Iterable[Records | None]) -> None:
        """Looks from now on at the steps' files; what is there already was written at the epoch."""
        self.context, self.broken, self.are_due = context, "", False
        self._waiting = {number: step for number, step in enumerate(steps, start=1) if step.after is not None}
        self._read = {step.after.log: 0 for step in self._waiting.values() if step.after}
        for one in records:
            if one and str(one.path.relative_to(WORK)) in self._read:
                one.show_lines()
        self._found = Records(WORK / INSTANTS) if any(step.t_ns is None for step in self._waiting.values()) else None

        fd = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for folder in (self.context.folders.logs, self.context.folders.records):
            if fd < 0 or _LIBC.inotify_add_watch(fd, os.fsencode(folder), IN_MODIFY) < 0:
                raise OSError(ctypes.get_errno(), "inotify")
        self.context.loop.on_data(os.fdopen(fd, "rb", buffering=0), self._look)
        self._look()

    def close(self) -> None:
        """Hands over what was found."""
        if self._found:
            self._found.close()

    def _look(self, _: bytes = b"") -> None:
        now_ns = max(0, self.context.now_ns() - self.context.epoch.realtime_ns)
        for log in sorted(self._read):
            lines = self._new_lines(log)
            for number, step in list(self._waiting.items()):
                after = step.after
                if after and after.log == log and any(re.search(after.matches, line) for line in lines):
                    del self._waiting[number]
                    self._take(number, step, now_ns + after.delay_ns)

    def _new_lines(self, log: str) -> list[str]:
        """The whole lines that a file has more than before."""
        if not (WORK / log).is_file():
            return []
        with (WORK / log).open("rb") as file:
            file.seek(self._read[log])
            lines, _, rest = file.read().rpartition(b"\n")
            self._read[log] = file.tell() - len(rest)
        return lines.decode(errors="replace").splitlines()

    def _take(self, number: int, step: Step, t_ns: int) -> None:
        if self._found and step.t_ns is None:
            self._found.write(step=number, t_ns=t_ns)
            self.context.loop.at(self.context.epoch.realtime_ns + t_ns, partial(setattr, self, "are_due", True))
        elif step.t_ns != t_ns and not self.broken:
            found = f"the line that it follows calls for {t_ns} ns, and called for {step.t_ns} ns in the run before"
            self.broken = f"event {number}: {found}: this cell does not repeat itself"
