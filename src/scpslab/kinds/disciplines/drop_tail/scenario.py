"""Drop-tail: a packet that finds the queue full is dropped."""

from __future__ import annotations

from scpslab.scenario.disciplines import Discipline


class DropTail(Discipline):
    """Nothing but a limit."""


KIND = DropTail
