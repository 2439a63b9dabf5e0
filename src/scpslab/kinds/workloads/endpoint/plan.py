"""Workload `endpoint`: a transfer by the programs of the hosts' images."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.schema import Part
from scpslab.plan.stacks import STACKS
from scpslab.plan.values import Ip, Period, PlainText, Port, WholeSeed
from scpslab.plan.workloads import Transfer


class EndOptions(Part):
    """Further words for the image at either end."""

    from_: PlainText
    to: PlainText


class Endpoint(Transfer, kind="endpoint"):
    """A transfer by programs that keep images/CONTRACT.md; `options`: further words for the image at either end
    (`from`, `to`).
    """

    kind: Literal["endpoint"] = "endpoint"
    port: Port
    options: EndOptions
    payload_seed: WholeSeed
    timeout_ns: Period
    from_ip: Ip

    knows_images: ClassVar[bool] = True

    @classmethod
    def between(cls, kind: str, from_: str, to: str, network: NetworkPlan) -> Iterator[Problem]:
        """Images are in containers only."""
        if network.containers != "docker":
            found, advice = "endpoint with nodes that are processes", "Add containers: docker, or use kind bulk."
            yield Problem(("kind",), found, "containers", advice)
        yield from super().between(kind, from_, to, network)

    @classmethod
    def instead_of(cls, stack: str) -> tuple[str, str] | None:
        """The `scps` program keeps no contract of images."""
        return ("image or kernel", "Use kind bulk.") if STACKS[stack].runs_scps else None
