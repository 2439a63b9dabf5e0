"""Routes, and what the kernel keeps with them."""

from dataclasses import fields

from scpslab.plan.schema import Part
from scpslab.plan.values import Destination, Ip, Metric


class RouteTarget(Part):
    """Where a route leads; without `via` what matches is dropped.

    `src`: the address that the node sends from, where it is not that of the interface.
    """

    to: Destination
    via: Ip | None
    src: Ip | None = None


class RouteOptions(Part):
    """TCP's starting values on a route; None: the kernel's own."""

    initcwnd: Metric | None
    initrwnd: Metric | None
    advmss: Metric | None
    rto_min_ms: Metric | None
    quickack: Metric | None


NO_OPTIONS: dict[str, None] = dict.fromkeys(option.name for option in fields(RouteOptions))


class Route(RouteOptions, RouteTarget):
    """A route of a host or router."""
