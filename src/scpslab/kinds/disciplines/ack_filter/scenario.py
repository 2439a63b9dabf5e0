"""The acknowledgement filter: of waiting acknowledgements of a connection only the newest is kept."""

from __future__ import annotations

from scpslab.scenario.disciplines import Discipline


class AckFilter(Discipline):
    """Nothing but a limit."""

    says = "drops a waiting acknowledgement when a newer one of its connection arrives"
    limit_says = "bytes of the kernel's memory, about 800 for an acknowledgement"


KIND = AckFilter
