"""Nodes, and the containers that they are where the plan says so."""

from typing import Annotated, Literal

from scpslab.plan.routes import Route
from scpslab.plan.schema import Kinds, Part
from scpslab.plan.stacks import Stack
from scpslab.plan.values import Amount, Image, Name, PlainText, Sysctl


class Container(Part):
    """A Docker container. Of capabilities and devices it may have no others than those that a node can need."""

    image: Image
    memory_bytes: Amount
    pids: Amount
    capabilities: tuple[Literal["NET_ADMIN"], ...]
    devices: tuple[Literal["/dev/net/tun"], ...]


class Speaker(Part):
    """A node with a stack of protocols and routes."""

    name: Name
    kind: str
    stack: Stack
    sysctls: dict[Sysctl, PlainText]
    routes: tuple[Route, ...]
    container: Container | None = None


class Host(Speaker):
    """A node with programs."""

    kind: Literal["host"] = "host"


class Router(Speaker):
    """A node that forwards IPv4."""

    kind: Literal["router"] = "router"


class ScpsRouter(Speaker):
    """A node that forwards SCPS-NP; the service np-router of its name is what does."""

    kind: Literal["scps-router"] = "scps-router"


class Switch(Part):
    """An Open vSwitch bridge; `mirror_to` names the host that sees every frame."""

    name: Name
    kind: Literal["switch"] = "switch"
    mirror_to: Name | None


NODES: dict[str, type] = {"host": Host, "router": Router, "scps-router": ScpsRouter, "switch": Switch}
Node = Annotated[Host | Router | ScpsRouter | Switch, Kinds("kind", NODES)]
