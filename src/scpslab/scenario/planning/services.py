"""The plan's `services`: daemons on nodes."""

from __future__ import annotations

from functools import singledispatch

from scpslab.core.errors import ScenarioError
from scpslab.core.seeds import stream
from scpslab.plan.paths import NoPathError, Paths
from scpslab.plan.services import Daemon
from scpslab.scenario.cells import Cell
from scpslab.scenario.model import CommandService, GatewayService

from scpslab.kinds.services.command import plan as command
from scpslab.kinds.services.gateway import plan as gateway

SEED_DIGITS = 12
# An interface's name has 15 letters at most, and no two gateways of a node share one.
DEVICE = "gw{number}"


def plan_services(cell: Cell, own: tuple[Daemon, ...], paths: Paths) -> tuple[Daemon, ...]:
    """The services in the order in which they start, those of the lab's own before those of the scenario, which use them."""
    return (*own, *(_plan(service, cell, number, paths) for number, service in enumerate(cell.model.services)))


@singledispatch
def _plan(service: object, _cell: Cell, _number: int, _paths: Paths) -> Daemon:
    raise TypeError(service)


@_plan.register
def _(service: CommandService, _cell: Cell, _number: int, _paths: Paths) -> Daemon:
    return command.CommandService(
        name=service.name,
        node=service.node,
        command=service.command,
        ready_port=service.ready_port,
        ready_command=service.ready_command,
        patience_ns=service.patience,
    )


@_plan.register
def _(service: GatewayService, cell: Cell, number: int, paths: Paths) -> Daemon:
    return gateway.GatewayService(
        name=service.name,
        node=service.node,
        device=DEVICE.format(number=number),
        peer=service.peer,
        far=tuple(service.far),
        rate_bps=None if service.rate == "none" else service.rate,
        rtt_ns=_delays_ns(service, paths) if service.rtt is None else service.rtt,
        mtu_bytes=service.mtu,
        congestion=service.congestion,
        loss=service.loss,
        buffer_bytes=service.buffer,
        set_up=service.set_up,
        seed=int(stream(cell.scenario.seed, "gateway", service.name, cell.repeat)[:SEED_DIGITS], 16),
        patience_ns=service.patience,
    )


def _delays_ns(service: GatewayService, paths: Paths) -> int:
    """The delays of the link to the other gateway, there and back."""
    try:
        link = paths.next_hop(service.node, service.peer).link
    except NoPathError as error:
        raise ScenarioError(f"services.{service.name}: {error}; expected a route to the other gateway. Give rtt, or a route.") from error
    return max(1, sum(direction.delay_ns for direction in link.directions))
