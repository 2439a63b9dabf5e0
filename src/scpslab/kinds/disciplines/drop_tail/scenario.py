"""Drop-tail: a packet that finds the queue full is dropped."""

from __future__ import annotations

from scpslab.scenario.disciplines.kind import Discipline

from scpslab.kinds.disciplines.drop_tail.plan import KIND as PLANNED


class DropTail(Discipline):
    """Nothing but a limit."""

    planned = PLANNED


KIND = DropTail()
