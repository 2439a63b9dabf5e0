"""Stack `eager-scps`: SCPS-TP that acknowledges every segment."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from scpslab.documents.parts import key
from scpslab.scenario.stacks.base import HostPart, Stack
from scpslab.scenario.stacks.node import NodePlan
from scpslab.kinds.stacks.scps.scenario import ScpsHost, scps_node


class EagerHost(HostPart):
    """A host with SCPS-TP whose receiver does not wait."""

    stack: Literal["eager-scps"] = key(says="What carries transport: an eager SCPS-TP.", example="eager-scps")


def eager_node(_host: EagerHost) -> NodePlan:
    """What a plan says of the host."""
    return replace(scps_node(ScpsHost(stack="scps", ack_every=1)), stack="eager-scps")


KIND = Stack(EagerHost, eager_node, image="scps-host", makes_device=True)
