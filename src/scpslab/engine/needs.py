"""The needs of a plan: what an engine must provide for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from scpslab.plan import Plan
from scpslab.plan.stacks import STACKS


@dataclass(frozen=True)
class Needs:
    """The needs of a plan beyond kernel TCP on process nodes: the `scps` program, Docker."""

    stack: bool
    docker: bool

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """The needs of a plan. A plan needs the `scps` program as a stack, as the channel of a serial link, as a gateway, or for a workload that it carries."""
        network, cell = plan.network, plan.cell
        is_run = any(service.runs_scps for service in cell.services) or any(workload.runs_scps for workload in cell.workloads)
        speaks = is_run or any(STACKS[node.stack].runs_scps for node in network.speaking)
        return cls(bool(network.serial_links) or speaks, network.containers == "docker")


def own_images(plan: Plan) -> list[str]:
    """Names of the images that do not belong to the project."""
    return sorted({node.container.image for node in plan.network.speaking if STACKS[node.stack].is_own_image and node.container})


def not_promised(plans: Iterable[Plan]) -> str:
    """Why cells in virtual time may have other bytes in each run: programs of somebody else's images may ask the processor; "" if none can."""
    names = sorted({name for plan in plans for name in own_images(plan)})
    found = f"found hosts with images of others ({', '.join(names)}), whose programs may use the processor's random numbers (RDRAND, RDSEED)"
    return f"{found}: the bytes of their cells are not promised to be the same (docs/virtual-time.md)" if names else ""
