"""What generates traffic: one file a kind; the list of kinds is the plan's."""

from typing import Any

from scpslab.core.kinds import Layer
from scpslab.lab.workloads.base import Workload

KINDS: Layer[type[Workload[Any]]] = Layer("workloads", "lab")
