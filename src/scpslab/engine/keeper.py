"""The keeper: a process of the user's that keeps templates from one command to the next (docs/decisions/0038).

The first command that needs a template starts it. It ends by itself: when no cell has come for some time, when its
folder is gone, or when it is told to. kept.py says how commands find it, and what is said.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from scpslab.core.scratch import scratch
from scpslab.engine.kept import Link, address, keep_s, opened
from scpslab.engine.memory import NEEDED_BYTES, choose, free_bytes, machine_bytes
from scpslab.engine.template import END_LIMIT_S, Fork, TemplateError, TemplateGuest, TemplatePool
from scpslab.engine.uml import Guest
from scpslab.engine.virtual import memory_bytes, new_template

# What idle templates have at most: so many of them, and this share of the machine's memory.
MOST_KEPT, MOST_SHARE = 32, 1 / 8
# They go where less than this is free: a guest for every core, but no more than this share of the machine's memory.
LEAST_FREE_SHARE = 1 / 4
TICK_S = 1.0


class Visit(threading.Thread):
    """A connection of a command's: one cell."""

    def __init__(self, link: Link, keeper: Keeper) -> None:
        super().__init__(daemon=True)
        self._link, self._keeper = link, keeper
        self._said: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._under_way: TemplateGuest | Fork | None = None
        self._is_over = False

    def run(self) -> None:
        """Until the command hangs up."""
        asked: dict[str, Any] = {}
        try:
            if self._link.is_of_user():
                self._link.send({"hello": True})
                threading.Thread(target=self._listen, daemon=True).start()
                asked = self._said.get()
            if "stop" in asked:
                self._keeper.stop()
            elif asked:
                self._carry_out(asked)
        finally:
            # Who says stop hears when this process has ended.
            if "stop" not in asked:
                self._link.close()

    def _listen(self) -> None:
        while said := self._link.receive(None):
            if "end" in said and isinstance(self._under_way, Fork):
                self._under_way.kill()
            else:
                self._said.put(said)
        with self._lock:
            self._is_over = True
        if self._under_way:
            self._under_way.kill()
        self._said.put({})

    def _begins(self, what: TemplateGuest | Fork | None) -> None:
        """What the command waits for, and what ends with it."""
        with self._lock:
            self._under_way, is_over = what, self._is_over
        if what and is_over:
            what.kill()

    def _carry_out(self, asked: dict[str, Any]) -> None:
        guest, core = _guest(asked["guest"]), asked["core"]
        text = Path(asked["template"]).read_text()

        def make() -> Any:
            held = new_template(guest, text, self._keeper.place, core)
            self._begins(held.template)
            return held

        # A part that was removed and built again is no longer what a template has open.
        files = tuple(path.stat().st_ino for path in (guest.kernel, guest.boot, guest.program))
        with self._keeper.pool.use((guest, files, core is None), make, asked["limit_s"], memory_bytes(guest)) as held:
            self._begins(None)
            template = held.template
            facts = {"bytes": template.memory_bytes, "pid": template.pid, "returncode": template.returncode}
            self._link.send({"folder": str(held.folder), **facts})
            said = self._said.get()
            if "end" in said:
                template.close()
                self._link.send({"ended": 1, "lost": False})
            elif said:
                self._run(template, Path(said["run"]), core)
            # The command hangs up when it has read what was left in a folder of the keeper's.
            while said and self._said.get():
                pass
            if "run" in said:
                shutil.rmtree(said["run"], ignore_errors=True)

    def _run(self, template: TemplateGuest, folder: Path, core: int | None) -> None:
        try:
            fork = template.fork(folder, core)
        except TemplateError as error:
            self._link.send({"refused": str(error), "alive": template.is_alive})
        else:
            self._link.send({"running": fork.pid})
            self._begins(fork)
            self._link.send({"ended": fork.wait(), "lost": fork.lost})


def _guest(fields: dict[str, Any]) -> Guest:
    paths = {name: Path(fields[name]) for name in ("kernel", "tools", "boot", "program")}
    return Guest(**{**fields, **paths, "clock": tuple(fields["clock"]), "images": ()})


class Keeper:
    """The process: its templates, the commands that visit it, and how long it lives."""

    def __init__(self, place: Path) -> None:
        self.place = place
        most_bytes = machine_bytes()
        self.pool = TemplatePool(lambda: free_bytes(choose()), MOST_KEPT, int(most_bytes * MOST_SHARE))
        cores = len(os.sched_getaffinity(0))
        self._least_free_bytes = min(cores * NEEDED_BYTES, int(most_bytes * LEAST_FREE_SHARE))
        self._is_over = False

    def stop(self) -> None:
        """Ends it."""
        self._is_over = True

    def live(self, listener: socket.socket, path: Path) -> None:
        """Until its time is over, or its socket is gone and nobody visits it."""
        visits: list[Visit] = []
        used_at, limit_s = time.monotonic(), keep_s()
        listener.settimeout(TICK_S)
        while not self._is_over:
            with suppress(TimeoutError):
                visits.append(Visit(Link(listener.accept()[0]), self))
                visits[-1].start()
            self.pool.drop_idle(self._least_free_bytes)
            visits = [visit for visit in visits if visit.is_alive()]
            if visits:
                used_at = time.monotonic()
            elif time.monotonic() - used_at > limit_s or not path.exists():
                break
        listener.close()
        self.pool.stop()
        for visit in visits:
            visit.join(END_LIMIT_S)


def main() -> None:
    """The program: PLACE NAME, the folder for templates and the name of the socket."""
    place, name = Path(sys.argv[1]), sys.argv[2]
    keeper = Keeper(place)
    signal.signal(signal.SIGTERM, lambda *_: keeper.stop())
    with scratch(place) as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        with opened(folder) as descriptor:
            listener.bind(address(descriptor, name))
        listener.listen()
        keeper.live(listener, folder / name)
