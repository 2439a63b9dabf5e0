"""The templates that a run has in memory: found or booted for a cell, shared by cells side by side, and dropped when there are too many."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scpslab.engine.template import Held, TemplateGuest

# Besides those in use. A sweep whose innermost axis changes the network comes back to each after a few others.
MOST_IDLE = 8


class TemplatePool:
    """Templates by what they are of."""

    def __init__(self, free_bytes: Callable[[], int]) -> None:
        """`free_bytes`: how much memory templates and their forks can still have."""
        self._free_bytes = free_bytes
        self._held: dict[Hashable, Held] = {}
        self._booting: list[Held] = []
        self._locks: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()
        self._is_stopped = False

    @contextmanager
    def use(self, key: Hashable, make: Callable[[], Held], limit_s: float, needed_bytes: int) -> Iterator[Held]:
        """The template of a key, for the time of a cell.

        It is made and booted, within a limit, where there is none or where it has ended; others are dropped until there is the memory that it needs.
        """
        with self._lock:
            one_at_a_time = self._locks.setdefault(key, threading.Lock())
        with one_at_a_time:
            held = self._find(key)
            if held is None:
                self._drop_idle(needed_bytes)
                held = make()
                self._boot(key, held, limit_s)
        try:
            yield held
        finally:
            with self._lock:
                held.end()
                is_over = not held.users and self._held.get(key) is not held
            if is_over:
                held.close()

    def templates(self) -> list[TemplateGuest]:
        """Those that there are, booted or not yet."""
        with self._lock:
            return [held.template for held in (*self._held.values(), *self._booting)]

    def stop(self) -> None:
        """Ends all, and whatever would begin."""
        self._is_stopped = True
        self.close()

    def close(self) -> None:
        """Ends all; those in use lose their cells, and are given back when these have noticed."""
        with self._lock:
            all_held = [*self._held.values(), *self._booting]
            idle = [held for held in all_held if not held.users]
            self._held.clear()
        for held in all_held:
            held.template.kill()
        for held in idle:
            held.close()

    def _find(self, key: Hashable) -> Held | None:
        with self._lock:
            held = self._held.get(key)
            if held is None:
                return None
            if held.template.is_alive:
                held.begin()
                return held
            del self._held[key]
            in_use = held.users
        if not in_use:
            held.close()
        return None

    def _boot(self, key: Hashable, held: Held, limit_s: float) -> None:
        """Boots it for its first user. One that comes to nothing is that user's alone."""
        with self._lock:
            held.begin()
            self._booting.append(held)
            if self._is_stopped:
                held.template.kill()
        held.template.boot(limit_s)
        with self._lock:
            self._booting.remove(held)
            if held.template.is_alive and held.template.memory_bytes is not None and not self._is_stopped:
                self._held[key] = held

    def _drop_idle(self, needed_bytes: int) -> None:
        """Makes room for one more."""
        while True:
            with self._lock:
                idle = [key for key, held in self._held.items() if not held.users]
                if not idle or (len(idle) < MOST_IDLE and self._free_bytes() >= needed_bytes):
                    return
                dropped = self._held.pop(min(idle, key=lambda key: self._held[key].used_at))
            dropped.close()


def free_bytes(folder: Path) -> int:
    """What programs of the machine can still have of its memory, where their files are in a folder in memory."""
    room = shutil.disk_usage(folder).free
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return min(room, int(value.split()[0]) * 1024)
    return room
