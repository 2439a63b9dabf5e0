"""Workload `endpoint`: a transfer by the programs of the hosts' images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from scpslab.plan.places import Places, Problem
from scpslab.plan.values import Ip, Period, PlainText, Port, WholeSeed
from scpslab.plan.workloads import Transfer


@dataclass(frozen=True, kw_only=True)
class EndOptions:
    """Further words for the image at either end."""

    from_: PlainText
    to: PlainText


@dataclass(frozen=True, kw_only=True)
class Endpoint(Transfer):
    """A transfer by programs that keep images/CONTRACT.md; `options`: further words for the image at either end
    (`from`, `to`).
    """

    kind: Literal["endpoint"] = "endpoint"
    port: Port
    options: EndOptions
    payload_seed: WholeSeed
    patience_ns: Period
    from_ip: Ip

    def problems(self, places: Places) -> Iterator[Problem]:
        """Images are in containers only."""
        if not places.in_containers:
            yield "kind", 'found "endpoint" with nodes that are processes; expected containers to be docker'


KIND = Endpoint
