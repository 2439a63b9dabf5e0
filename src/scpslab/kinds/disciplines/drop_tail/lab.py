"""Drop-tail: netem's rate gives packets exact times; the eBPF program `entering` holds the limit."""

from scpslab.lab.disciplines import DISCIPLINES, ETHERNET_HEADER_BYTES, NETEM_LIMIT, Discipline
from scpslab.plan.disciplines import Queue


class DropTail(Discipline):
    """netem, which drops nothing here."""

    def root(self, rate_bps: int, overhead_bytes: int, queue: Queue) -> str:
        """Netem with a rate."""
        return f"netem limit {NETEM_LIMIT} rate {rate_bps}bit {overhead_bytes - ETHERNET_HEADER_BYTES}"


DISCIPLINES.register("drop-tail", DropTail())
