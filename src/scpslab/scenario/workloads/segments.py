"""Whether segments of the size that is asked for can be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scpslab.documents.quantities import Size
from scpslab.plan.headers import IP_TCP_HEADERS_BYTES, TIMESTAMP_BYTES
from scpslab.plan.stacks import KERNEL
from scpslab.scenario.workloads.scps_end import NP_HEADER_BYTES

if TYPE_CHECKING:
    from scpslab.documents.yaml_lines import Problem
    from scpslab.scenario.workloads.base import Surroundings, Traffic

SMALLEST_TCP_MAXSEG = 88  # TCP_MIN_MSS of Linux: a smaller TCP_MAXSEG is refused


def fits_mtu(workload: Traffic, segment: Size, around: Surroundings) -> Iterator[Problem]:
    """A segment with its headers, SCPS-NP and SCPS-SP among them, must fit through the way, and the kernel, if it sends
    it, must be able to make it.
    """
    mtu = around.mtu_bytes
    ends = [around.node(host) for host in (workload.sender, workload.receiver)]
    options = TIMESTAMP_BYTES if all(end.timestamps for end in ends) else 0
    beneath = max(
        (NP_HEADER_BYTES if end.np_precedence is not None else 0) + (end.sp.overhead_bytes if end.sp else 0)
        for end in ends
    )
    room = mtu - IP_TCP_HEADERS_BYTES - options - beneath
    if segment > room:
        yield (
            ("segment",),
            (
                f'found "{segment.text}"; expected at most the {room} B that an MTU of {mtu} B leaves. '
                "Correct segment or the parameter mtu."
            ),
        )
    elif segment + options < SMALLEST_TCP_MAXSEG and segment != room and around.host(workload.sender).carrier is KERNEL:
        exact = segment + IP_TCP_HEADERS_BYTES + options
        yield (
            ("segment",),
            (
                f'found "{segment.text}", smaller than the kernel allows by itself; expected an MTU that forces it. '
                f"Set the parameter mtu to {exact} B."
            ),
        )
