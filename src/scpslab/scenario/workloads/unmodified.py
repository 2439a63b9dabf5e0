"""Unmodified programs: they know the kernel's TCP only.

On a host of stack `scps` the host's own gateway carries their connections over SCPS-TP.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scpslab.documents.quantities import Quantity

if TYPE_CHECKING:
    from scpslab.documents.yaml_lines import Problem
    from scpslab.scenario.workloads.base import Surroundings, Traffic


def gateways_fit(workload: Traffic, what: str, around: Surroundings) -> Iterator[Problem]:
    """Each host of stack `scps` must be one that has a gateway; `what` is the workload in words."""
    for end in (workload.sender, workload.receiver):
        if not around.host(end).carrier.runs_scps:
            continue
        if why := around.node(end).no_gateway:
            found = f"found {what} on {end}, which has {why}"
            yield (
                ("kind",),
                (
                    f"{found}; expected a host whose gateway carries unmodified programs. "
                    "Remove the setting from the host, or use kind bulk or fp."
                ),
            )
    if around.has_np_router:
        yield (
            ("to",),
            (
                f"found {what} on a path with a router of SCPS-NP, which forwards no IP; expected routers of IP. "
                "Use kind bulk or fp."
            ),
        )


def kernel_setting(workload: Traffic, key: str, around: Surroundings) -> Iterator[Problem]:
    """A setting of the kernel's TCP, which on a host of stack `scps` would reach no further than the host's own
    gateway.
    """
    if getattr(workload, key) is None:
        return
    if ends := [end for end in (workload.sender, workload.receiver) if around.host(end).carrier.runs_scps]:
        value = getattr(workload, key)
        found = (
            f'found "{value.text if isinstance(value, Quantity) else value}" for a flow of {ends[0]}, whose gateway '
            "carries it over SCPS-TP"
        )
        yield (key,), f"{found}; expected none. Remove the key; settings of SCPS-TP belong to the host."
