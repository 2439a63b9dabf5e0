"""Daemons of nodes, by the kinds that a plan names. Workloads and routers have kinds of their own beside them."""

from __future__ import annotations

from scpslab.lab.services import command, gateway, host_gateway
from scpslab.lab.services.base import Service, Services

KINDS = {"command": command.KIND, "gateway": gateway.KIND, "host-gateway": host_gateway.KIND}

__all__ = ["KINDS", "Service", "Services"]
