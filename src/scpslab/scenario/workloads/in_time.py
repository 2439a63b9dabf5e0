"""How long what a workload sends takes at least, and whether that is before it is given up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from scpslab.documents.quantities import PositiveDuration, Size
from scpslab.plan.headers import IP_TCP_HEADERS_BYTES, TIMESTAMP_BYTES

if TYPE_CHECKING:
    from scpslab.documents.yaml_lines import Problem
    from scpslab.scenario.workloads.base import Surroundings

SECOND_NS = 10**9


class HasSize(Protocol):
    """A workload that sends a number of bytes, and is given up after a time."""

    @property
    def size(self) -> Size:
        """Bytes to send."""

    @property
    def patience(self) -> PositiveDuration:
        """When it is given up."""


class HasBytes(Protocol):
    """The same of a plan."""

    @property
    def bytes_(self) -> int | None:
        """Bytes to send; None where a time is what ends it."""


def fits_in_time(workload: HasSize, around: Surroundings) -> Iterator[Problem]:
    """The size must fit, at the slowest hop and without a loss."""
    need_ns = _ns_on_a_link(workload.size, around.slowest_bps)
    for limit, time in (("patience", workload.patience), ("limits.virtual", around.virtual)):
        if need_ns > time:
            shown = f"{need_ns / SECOND_NS:.6g} s at the slowest hop"
            yield (
                ("size",),
                (
                    f'found "{workload.size.text}", {shown}; expected it to fit in {limit}, "{time.text}". '
                    f"Send less or raise {limit}."
                ),
            )
            return


def ns_to_send(workload: HasBytes, rate_bps: int | None) -> int:
    """As long as its bytes take."""
    return _ns_on_a_link(workload.bytes_ or 0, rate_bps)


def packets_to_send(workload: HasBytes, _rate_bps: int | None, mtu_bytes: int) -> int:
    """Full packets for its bytes."""
    return -(-(workload.bytes_ or 0) // max(1, mtu_bytes - IP_TCP_HEADERS_BYTES - TIMESTAMP_BYTES))


def _ns_on_a_link(sent_bytes: int, rate_bps: int | None) -> int:
    return sent_bytes * 8 * SECOND_NS // rate_bps if rate_bps else 0
