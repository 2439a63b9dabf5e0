"""What a queue discipline is on the describing side: what a scenario says of it, and how it is planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from scpslab.documents.parts import Part
from scpslab.documents.yaml_lines import KeyPath
from scpslab.plan.disciplines import Queue
from scpslab.plan.disciplines.base import QueueSettings

Problem = tuple[KeyPath, str]


class Discipline:
    """A queue discipline. Its `keys` stand flat in a scenario's `queue`, beside those of all others. `planned`: what a plan and the guest know of it.

    `says` and `limit_says`: what the reference says of it at the keys `discipline` and `limit`, if more than the name is needed.
    `marks`: whether it can mark packets instead of dropping them (ECN).
    """

    keys: ClassVar[type[Part]] = Part
    planned: ClassVar[type[QueueSettings]]
    says: ClassVar[str] = ""
    limit_says: ClassVar[str] = ""
    marks: ClassVar[bool] = False

    def problems(self, given: Any, room_bytes: int | None) -> Iterator[Problem]:
        """What does not fit of a scenario's `keys`, with the key.

        `room_bytes`: the queue's limit, packets counted as full ones, if it has one.
        """
        yield from ()

    def settings(self, given: Any, queue: Queue) -> QueueSettings:
        """The plan's settings of this discipline, with what a scenario's `keys` leave out; `queue` has its limit."""
        return self.planned()

    def doubts(self, settings: Any, packet_ns: int) -> Iterator[tuple[str, str]]:
        """What of the plan's settings can hardly be meant, with the key, where a full packet takes `packet_ns`."""
        yield from ()
