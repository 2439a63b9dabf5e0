"""Stack `eager-scps`: SCPS-TP that acknowledges every segment."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from scpslab.documents.parts import key
from scpslab.scenario.stacks import HostPart, NodePlan

from scpslab.kinds.stacks.scps.scenario import ScpsHost


class EagerHost(HostPart, kind="eager-scps"):
    """A host with SCPS-TP whose receiver does not wait."""

    image_folder: ClassVar = "scps-host"
    makes_device: ClassVar = True

    stack: Literal["eager-scps"] = key(says="What carries transport: an eager SCPS-TP.", example="eager-scps")

    def plan(self) -> NodePlan:
        """What a plan says of the host."""
        return replace(ScpsHost(stack="scps", ack_every=1).plan(), stack="eager-scps")


