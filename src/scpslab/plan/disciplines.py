"""The queue before a serialiser, and its disciplines: a folder each in scpslab.kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from scpslab.core.kinds import Registered, Registry
from scpslab.core.problems import Problem
from scpslab.plan.schema import DependsOn, OneOf, Part, null
from scpslab.plan.values import Amount

# What limits in packets count where bytes are asked for.
FULL_PACKET_BYTES = 1500
DEFAULT = "drop-tail"
SMALLEST_PACKET_BYTES = 28  # IP and UDP (RFC 791 §3.1, RFC 768)
LONGEST_HELD_S = 4_000  # fq counts microseconds in 32 bits
LARGEST_MANAGED_BYTES = 1600  # on the wire: the token bucket before RED and CoDel holds no more at a time


DISCIPLINES: Registry[type[QueueSettings]] = Registry("disciplines", "plan")


class QueueSettings(Registered, Part, registry=DISCIPLINES, is_plain=True):
    """The settings of a discipline that has none.

    `SERIALISES`: stage 1 gives every packet its time on the line, keeps the limit exactly (eBPF), counts its own drops,
    and can change its rate; otherwise the kernel's queue releases packets when their turn comes, stage 2 adds their
    time and keeps their order. `MARKS`: it can mark packets instead of dropping them (ECN). `DRAWS`: which ones, the
    kernel draws.
    """

    SERIALISES: ClassVar[bool] = False
    MARKS: ClassVar[bool] = False
    DRAWS: ClassVar[bool] = False

    def misfit(self, room_bytes: int) -> Problem | None:
        """What does not fit in a queue with room for so many bytes."""
        return None


DisciplineName = Annotated[str, OneOf(DISCIPLINES)]


# On the wire: an IP packet, and 4 bytes of framing.
FRAMED_PACKET_BYTES = FULL_PACKET_BYTES + 4
NO_SETTINGS = QueueSettings()


@dataclass(frozen=True)
class Queue:
    """The queue before the serialiser; one of the limits is None."""

    discipline: DisciplineName = field(default=DEFAULT, kw_only=True)
    limit_bytes: Amount | None = field(default_factory=null)
    limit_packets: Amount | None = field(default_factory=null)
    ecn: bool = field(default=False, kw_only=True)
    settings: Annotated[QueueSettings, DependsOn("discipline", DISCIPLINES)] = field(default=NO_SETTINGS, kw_only=True)

    def __post_init__(self) -> None:
        # Made without settings, it has its discipline's; TypeError where that needs some.
        if self.settings is NO_SETTINGS:
            object.__setattr__(self, "settings", DISCIPLINES[self.discipline]())

    def limited(self, limit_bytes: int) -> Queue:
        """The same queue with another limit."""
        return Queue(discipline=self.discipline, limit_bytes=limit_bytes, ecn=self.ecn, settings=self.settings)

    @property
    def serialises(self) -> bool:
        """Whether stage 1 gives every packet its time on the line; see QueueSettings."""
        return self.settings.SERIALISES

    @property
    def room_bytes(self) -> int:
        """The limit in bytes; packets count as full ones."""
        return self.limit_bytes if self.limit_bytes is not None else (self.limit_packets or 0) * FULL_PACKET_BYTES

    def problems(self) -> Iterator[Problem]:
        """Keys whose values do not fit each other or the discipline."""
        if self.ecn and not self.settings.MARKS:
            marking = " or ".join(name for name, settings in DISCIPLINES.items() if settings.MARKS)
            found = f"ECN marking on a queue of discipline {self.discipline}"
            yield Problem(("ecn",), found, f"discipline {marking}", "Choose one of these.")
        if (self.limit_bytes is None) == (self.limit_packets is None):
            yield Problem((), "a queue with no limit, or two", "one, in bytes or packets", "Add limit.")
        elif self.limit_bytes is not None and self.limit_bytes < SMALLEST_PACKET_BYTES:
            found = f"a queue of {self.limit_bytes} B, which drops every packet"
            yield Problem(("limit_bytes",), found, f"at least {SMALLEST_PACKET_BYTES} B", "Raise the limit.")
        elif misfit := self.settings.misfit(self.room_bytes):
            yield misfit.within("settings")


@dataclass(frozen=True)
class OneProduct(Queue):
    """A topology's queue of one bandwidth-delay product: its limit follows the rate and the delays that the link has in
    the end. A plan has the number.
    """

    def at(self, rate_bps: int, rtt_ns: int) -> Queue:
        """The queue: at least four full packets, so that a slow hop can work."""
        return self.limited(max(rate_bps * rtt_ns // (8 * 10**9), 4 * FRAMED_PACKET_BYTES))
