"""Drop-tail: a packet that finds the queue full is dropped."""

from __future__ import annotations

from scpslab.scenario.disciplines import DISCIPLINES, Discipline


class DropTail(Discipline):
    """Nothing but a limit."""


DISCIPLINES.register("drop-tail", DropTail)
