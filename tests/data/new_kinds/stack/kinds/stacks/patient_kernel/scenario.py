"""Stack `patient-kernel`: the kernel's TCP, which waits for more or fewer duplicate acknowledgements."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from scpslab.documents.parts import key
from scpslab.scenario.stacks import HostPart, NodePlan

from scpslab.kinds.stacks.kernel.scenario import KernelHost


class PatientHost(HostPart, kind="patient-kernel"):
    """A host with the kernel's TCP that puts up with reordering."""

    stack: Literal["patient-kernel"] = key(says="What carries transport: a patient kernel.", example="patient-kernel")
    reordering: int = key(3, says="Packets that may be out of order before one counts as lost.", least=1, most=300, example=7)

    def plan(self) -> NodePlan:
        """What a plan says of the host."""
        plain = KernelHost().plan()
        return replace(plain, stack="patient-kernel", sysctls={**plain.sysctls, "net.ipv4.tcp_reordering": str(self.reordering)})


