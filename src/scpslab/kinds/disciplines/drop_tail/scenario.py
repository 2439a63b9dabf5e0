"""Drop-tail: a packet that finds the queue full is dropped."""

from __future__ import annotations

from scpslab.scenario.disciplines import Discipline

from scpslab.kinds.disciplines.drop_tail import plan


class DropTail(Discipline):
    """Nothing but a limit."""

    planned = plan.DropTail


KIND = DropTail
