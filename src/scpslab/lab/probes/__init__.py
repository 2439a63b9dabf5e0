"""What observes: one file a kind; the list of kinds is the plan's."""

from typing import Any

from scpslab.core.kinds import Layer
from scpslab.lab.probes.base import Probe

KINDS: Layer[type[Probe[Any]]] = Layer("probes", "lab")
