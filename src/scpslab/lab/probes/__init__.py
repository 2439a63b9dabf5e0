"""What observes: one file a kind; the list of kinds is the plan's."""

from typing import Any

from scpslab.kinds import kinds_of
from scpslab.lab.probes.base import Probe
from scpslab.plan.probes import NAMES

KINDS: dict[str, type[Probe[Any]]] = kinds_of(__name__, NAMES)
