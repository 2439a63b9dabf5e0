"""The plan's `services`: daemons on nodes."""

from __future__ import annotations

from functools import singledispatch

from scpslab.core.errors import ScenarioError
from scpslab.core.seeds import stream
from scpslab.plan import services as planned
from scpslab.plan.paths import NoPathError, Paths
from scpslab.scenario.cells import Cell
from scpslab.scenario.model import CommandService, GatewayService

SEED_DIGITS = 12
# An interface's name has 15 letters at most, and no two gateways of a node share one.
DEVICE = "gw{number}"


def plan_services(cell: Cell, gateways: tuple[planned.Service, ...], paths: Paths) -> tuple[planned.Service, ...] | None:
    """The services in the order in which they start, `gateways` of hosts before those that use them.

    None without one: a plan is part of what results are kept under.
    """
    return (*gateways, *(_plan(service, cell, number, paths) for number, service in enumerate(cell.model.services))) or None


@singledispatch
def _plan(service: object, _cell: Cell, _number: int, _paths: Paths) -> planned.Service:
    raise TypeError(service)


@_plan.register
def _(service: CommandService, _cell: Cell, _number: int, _paths: Paths) -> planned.Service:
    return planned.CommandService(
        name=service.name,
        node=service.node,
        command=service.command,
        ready_port=service.ready_port,
        ready_command=service.ready_command,
        patience_ns=service.patience,
    )


@_plan.register
def _(service: GatewayService, cell: Cell, number: int, paths: Paths) -> planned.Service:
    return planned.GatewayService(
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
