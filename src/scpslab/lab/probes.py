"""What every probe is: prepared before the epoch, sampling while the cell runs, written out at its end."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from scpslab.core.kinds import Registered, Registry
from scpslab.core.names import file_name
from scpslab.core.strict_json import Json
from scpslab.lab.context import Context
from scpslab.lab.records import Records
from scpslab.plan.probes import Observer, Sampling

Planned = TypeVar("Planned", bound=Observer)
Sampled = TypeVar("Sampled", bound=Sampling)


KINDS: Registry[type[Probe[Any]]] = Registry("probes", "lab")


class Probe(Registered, Generic[Planned], registry=KINDS):
    """Base of the kinds. `settle_ns`: how long it needs after the last packet before it can be stopped. `broken`: why
    what it wrote cannot be believed; "" where it can.
    """

    settle_ns, broken = 0, ""

    def __init__(self, spec: Planned, context: Context) -> None:
        self.spec, self.context, self.name = spec, context, spec.name
        self.network = context.network

    def prepare(self) -> None:
        """Starts what must be there before the first packet."""

    def start(self) -> None:
        """Starts sampling; called at the epoch."""

    def stop(self) -> None:
        """Ends sampling and writes what is left."""


class Sampler(Probe[Sampled]):
    """A probe that looks at something every `interval_ns`, on the epoch's grid."""

    def prepare(self) -> None:
        """Opens the file of its records."""
        self.records = Records(self.context.folders.records / file_name(self.name, suffix=".jsonl"))

    def start(self) -> None:
        """Takes the first sample at the epoch."""
        self.stopped = False
        self._next_ns = self.context.epoch.realtime_ns
        self.context.loop.at(self._next_ns, self._tick)

    def _tick(self) -> None:
        if self.stopped:
            return
        self.sample()
        self._next_ns += self.spec.interval_ns
        self.context.loop.at(self._next_ns, self._tick)

    def sample(self) -> None:
        """Takes one sample."""
        raise NotImplementedError

    def record(self, **fields: Json) -> None:
        """Writes a record of a sample, which the live stream may tell too."""
        self.records.write(**fields)
        self.context.live.copy(self.name, fields)

    def stop(self) -> None:
        """Takes no further sample."""
        self.stopped = True
