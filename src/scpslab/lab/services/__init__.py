"""Daemons of nodes, by the kinds that a plan names. Workloads and routers have kinds of their own beside them."""

from __future__ import annotations

from typing import Any

from scpslab.core.kinds import Layer
from scpslab.lab.services.base import Service, Services

KINDS: Layer[Any] = Layer("services", "lab")

__all__ = ["KINDS", "Service", "Services"]
