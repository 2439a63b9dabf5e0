"""What a queue discipline is on the describing side: what a scenario says of it, and how it is planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from scpslab.documents.parts import Part
from scpslab.plan.disciplines import Queue
from scpslab.plan.disciplines.base import QueueSettings


class Discipline:
    """A queue discipline.

    Its `keys` stand flat in a scenario's `queue`, beside those of all others. `planned`: what a plan and the guest know
    of it.

    `says` and `limit_says`: what the reference says of it at the keys `discipline` and `limit`, if more than the name
    is needed. `planned_as`: from keys of the plan's settings to those of a scenario, where the plan's rules are about
    one of them.
    """

    keys: ClassVar[type[Part]] = Part
    planned: ClassVar[type[QueueSettings]]
    says: ClassVar[str] = ""
    limit_says: ClassVar[str] = ""
    planned_as: ClassVar[Mapping[str, str]] = {}

    def settings(self, given: Any, queue: Queue) -> QueueSettings:
        """The plan's settings of this discipline, with what a scenario's `keys` leave out; `queue` has its limit."""
        return self.planned()

    def doubts(self, settings: Any, packet_ns: int) -> Iterator[tuple[str, str]]:
        """What of the plan's settings can hardly be meant, with the key, where a full packet takes `packet_ns`."""
        yield from ()
