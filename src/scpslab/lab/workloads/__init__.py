"""What generates traffic: one file a kind; the list of kinds is the plan's."""

from typing import Any

from scpslab.kinds import kinds_of
from scpslab.lab.workloads.base import Workload
from scpslab.plan.workloads import NAMES

KINDS: dict[str, type[Workload[Any]]] = kinds_of(__name__, NAMES)
