"""The acknowledgement filter: of waiting acknowledgements of a connection only the newest is kept."""

from __future__ import annotations

from scpslab.scenario.disciplines.kind import Discipline

from scpslab.kinds.disciplines.ack_filter.plan import KIND as PLANNED


class AckFilter(Discipline):
    """Nothing but a limit."""

    planned = PLANNED
    says = "drops a waiting acknowledgement when a newer one of its connection arrives"
    limit_says = "bytes of the kernel's memory, about 800 for an acknowledgement"


KIND = AckFilter()
