"""Queue disciplines as scenarios and planning know them: a folder each in scpslab.kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from scpslab.core.kinds import Registered, Registry
from scpslab.core.problems import Problem
from scpslab.documents.parts import Part
from scpslab.plan.disciplines import DISCIPLINES as PLANNED
from scpslab.plan.disciplines import Queue, QueueSettings

DISCIPLINES: Registry[type[Discipline]] = Registry("disciplines", "scenario")


class Discipline(Registered, Part, registry=DISCIPLINES, is_plain=True):
    """What a scenario says of a queue discipline: keys that stand flat in its `queue`, beside those of all others.

    `says`: what the reference says of it at keys of the queue, if more than its name is needed. `planned_as`: from keys
    of the plan's settings to those of a scenario, where the plan's rules are about one of them.
    """

    says: ClassVar[Mapping[str, str]] = {}
    planned_as: ClassVar[Mapping[str, str]] = {}

    def settings(self, queue: Queue) -> QueueSettings:
        """The plan's settings, with what the keys leave out; `queue` has its limit."""
        return PLANNED[queue.discipline]()

    @staticmethod
    def doubts(settings: Any, packet_ns: int) -> Iterator[Problem]:
        """What of the plan's settings can hardly be meant, with the key, where a full packet takes `packet_ns`."""
        yield from ()
