"""The appliances of a run: started when a cell needs one and none is free, kept warm, ended with the engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from scpslab.engine.appliance.machine import OWN_MEMORY_MIB, SLOWER, Machine, Parts, is_accelerated

# A template and a fork of it, each with memory of its own.
GUESTS = 2


class Machines:
    """Machines for jobs side by side, on one core each where the jobs are."""

    def __init__(self, parts: Parts, guest_mib: int, say: Callable[[str], None], make: Callable[[Parts, int, int | None, bool], Machine] = Machine) -> None:
        """`guest_mib`: the memory of the largest guest."""
        self.guest_mib = guest_mib
        # KVM may make machines and yet not run them, as in some virtual machines. Then no further one tries it.
        self.accelerated = is_accelerated()
        self._say = say
        self._parts, self._make = parts, make
        self._free: list[Machine] = []
        self._all: set[Machine] = set()
        self._lock = threading.Lock()
        self._is_stopped = False

    @property
    def processes(self) -> list[int]:
        """The process ids of all machines."""
        with self._lock:
            return [machine.pid for machine in self._all]

    @contextmanager
    def use(self, core: int | None) -> Iterator[Machine]:
        """A machine for the time of a job, first the one that had the core before: it may have the template of the same network."""
        with self._lock:
            machine = next((one for wanted in (core, None) for one in self._free if one.core == wanted), None)
            if machine is not None:
                self._free.remove(machine)
        if machine is not None and not machine.is_alive:
            self._drop(machine)
            machine = None
        if machine is None:
            machine = self._make(self._parts, GUESTS * self.guest_mib + OWN_MEMORY_MIB, core, self.accelerated)
            with self._lock:
                self._all.add(machine)
            if self._is_stopped:
                machine.kill()
        try:
            yield machine
        finally:
            if machine.accelerated and not (machine.is_alive or machine.has_come_up or self._is_stopped):
                self._do_without()
            if machine.is_alive and not self._is_stopped:
                with self._lock:
                    self._free.append(machine)
            else:
                self._drop(machine)

    def stop(self) -> None:
        """Ends all, and whatever would begin; those in use are given back by their users."""
        self._is_stopped = True
        with self._lock:
            machines = list(self._all)
        for machine in machines:
            machine.kill()
        self.close()

    def close(self) -> None:
        """Ends those that nobody uses, and gives back what they had."""
        with self._lock:
            idle, self._free = self._free, []
        for machine in idle:
            self._drop(machine)

    def _do_without(self) -> None:
        """Starts no further machine with KVM."""
        with self._lock:
            was, self.accelerated = self.accelerated, False
        if was:
            self._say(f"engine virtual: KVM started no machine; cells run in machines without it, 10 to {SLOWER} times slower, with the same bytes")

    def _drop(self, machine: Machine) -> None:
        with self._lock:
            self._all.discard(machine)
        machine.close()
