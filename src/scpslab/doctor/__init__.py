"""Examines this machine, before anything starts."""

from scpslab.engine import ENGINES
from scpslab.engine.base import Finding


def examine(engine: str) -> list[Finding]:
    """What an engine finds of this machine, by the engine's name."""
    return ENGINES[engine]().findings()
