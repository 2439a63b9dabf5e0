"""Services as plans know them, daemons of nodes that a cell's workloads and commands use: a folder a kind in
scpslab.kinds.
"""

from __future__ import annotations

from typing import Annotated

from scpslab.core.kinds import Layer
from scpslab.plan.schema import Kinds
from scpslab.plan.services.base import Daemon

SERVICES: Layer[type[Daemon]] = Layer("services", "plan")
Service = Annotated[Daemon, Kinds("kind", SERVICES)]

__all__ = ["SERVICES", "Daemon", "Service"]
