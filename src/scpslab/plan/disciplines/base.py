"""What both sides know of a queue discipline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Discipline:
    """A queue discipline.

    `settings`: the class of its settings, if it has any. They are keys of a plan's queue: None unless the discipline is theirs. Those of RED and CoDel
    are null in every other queue's JSON; a later discipline's have None as their default, so that nothing is said of them elsewhere.

    `serialises`: stage 1 gives every packet its time on the line, keeps the limit exactly (eBPF), counts its own drops, and can change its rate;
    otherwise the kernel's queue releases packets when their turn comes, stage 2 adds their time and keeps their order.
    """

    settings: type | None = None
    serialises: bool = False
