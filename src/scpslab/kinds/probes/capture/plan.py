"""Probe `capture`: the frames that pass an interface."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from scpslab.plan.places import Places, Problem
from scpslab.plan.probes import Observer
from scpslab.plan.schema import shown
from scpslab.plan.values import Amount, Filter, Interface, Name


@dataclass(frozen=True, kw_only=True)
class Capture(Observer):
    """The frames that pass an interface: `captures/<name>.pcap`, with nanosecond time stamps."""

    kind: Literal["capture"] = "capture"
    node: Name
    interface: Interface
    snaplen_bytes: Amount
    filter_: Filter

    folder: ClassVar[Literal["records", "captures"]] = "captures"

    def problems(self, places: Places) -> Iterator[Problem]:
        """The interface is the node's."""
        if (self.node, self.interface) not in places.interfaces:
            yield (
                "interface",
                f"found {shown(self.interface)} of {shown(self.node)}; expected an interface of a link at that node",
            )


KIND = Capture
