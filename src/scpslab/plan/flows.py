"""Where the packets of a plan's workloads go."""

from __future__ import annotations

from dataclasses import dataclass

from scpslab.plan.cell import Plan
from scpslab.plan.paths import NoPathError, Paths, Way
from scpslab.plan.workloads import Traffic


@dataclass(frozen=True)
class Flow:
    """The addresses of a workload's two hosts, and the hops of its packets: from the sending host to the receiving one,
    and back (None: nobody answers).
    """

    workload: Traffic
    from_ip: str
    to_ip: str
    there: Way
    back: Way | None


def flow(paths: Paths, workload: Traffic) -> Flow:
    """Where a workload's packets go.

    Raises:
        NoPathError: they do not arrive.
    """
    contacted = workload.from_ if workload.opener == workload.to else workload.to
    program = workload.sending_program if workload.opener == workload.from_ else workload.receiving_program
    opener_ip = program.ip if program else paths.source(workload.opener, workload.contacted_ip)
    ips = {workload.opener: opener_ip, contacted: workload.contacted_ip}
    from_ip, to_ip = ips[workload.from_], ips[workload.to]
    there = paths.path(workload.from_, workload.to, to_ip)
    back = paths.path(workload.to, workload.from_, from_ip) if workload.is_answered else None
    return Flow(workload, from_ip, to_ip, there, back)


def ways(plan: Plan, workload: Traffic) -> tuple[Way, Way]:
    """The hops from a workload's sending host to its receiving one, and those back, whether or not anything is sent
    there; none where nothing arrives.
    """
    paths = plan.network.paths
    try:
        found = flow(paths, workload)
    except NoPathError:
        return [], []
    if found.back is not None:
        return found.there, found.back
    try:
        return found.there, paths.path(workload.to, workload.from_, found.from_ip)
    except NoPathError:
        return found.there, []
