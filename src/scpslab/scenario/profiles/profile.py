"""A profile: what a direction of a link does over time, as steps of its rate, delay, bit errors and state."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from itertools import pairwise
from typing import TypeVar

from scpslab.core.names import shown
from scpslab.core.problems import UnfitError
from scpslab.plan.links import LONGEST_DELAY_NS

T = TypeVar("T", int, float, bool)
SECOND_NS, MS_NS = 10**9, 10**6
LARGEST_RATE = 10**10  # bit/s: the stage program multiplies it by nanoseconds in 64 bits
LARGEST_BER = 0.5
MOST_PACKETS = 10**6  # in one instant
LATEST_NS = 10**9 * SECOND_NS
# What the stage program can pass over (stages.bpf.c, MAX_STEPS).
MOST_STEPS = 1 << 20
BOUNDS = {"rate_bps": LARGEST_RATE, "delay_ns": LONGEST_DELAY_NS, "ber": LARGEST_BER, "packets": MOST_PACKETS}
# What Python itself would read is more: 1_000, and the digits of all alphabets.
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
WORDS = {"rate_bps": "rate", "delay_ns": "delay", "ber": "bit error rate", "up": "state", "packets": "opportunities"}


@dataclass(frozen=True)
class Profile:
    """Columns of (time in ns since the epoch, value from then on); before its first step a column has the link's own
    value. Times ascend.

    `packets`: not a state but opportunities, each for a full packet, at that instant; it replaces a rate.
    `repeat_ns`: after so long everything begins again; None: the last values stay.
    """

    rate_bps: tuple[tuple[int, int], ...] = ()
    delay_ns: tuple[tuple[int, int], ...] = ()
    ber: tuple[tuple[int, float], ...] = ()
    up: tuple[tuple[int, bool], ...] = ()
    packets: tuple[tuple[int, int], ...] = ()
    repeat_ns: int | None = None

    def __post_init__(self) -> None:
        """Raises UnfitError for what no link can do."""
        if not any(self.columns.values()):
            raise UnfitError("a profile without steps", "at least one")
        for name, steps in self.columns.items():
            check(name, steps)
        if self.packets and self.rate_bps:
            raise UnfitError("a rate beside opportunities", "one of them, because both say when packets leave")
        if self.repeat_ns is not None and not max(1, self.last_ns) <= self.repeat_ns <= LATEST_NS:
            found = f"a profile of {seconds(self.last_ns)} s that repeats after {seconds(self.repeat_ns or 0)} s"
            raise UnfitError(found, "a time after its last step, and after 0")

    @property
    def columns(self) -> dict[str, tuple[tuple[int, float], ...]]:
        """The columns by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name in WORDS}

    @property
    def last_ns(self) -> int:
        """When the last step is."""
        return max(steps[-1][0] for steps in self.columns.values() if steps)

    def until(self, end_ns: int) -> Profile:
        """The steps before a time, with every turn written out.

        Raises:
            UnfitError: they are too many.
        """
        turns = -(-end_ns // self.repeat_ns) if self.repeat_ns else 1
        for name, steps in self.columns.items():
            if len(steps) * turns > MOST_STEPS:
                found = f"{len(steps) * turns} steps of {WORDS[name]} until {seconds(end_ns)} s"
                raise UnfitError(found, f"at most {MOST_STEPS}", "Shorten limits.lab_time, or thin the profile.")
        repeated = {name: self._turns(name, steps, turns, end_ns) for name, steps in self.columns.items()}
        if not any(repeated.values()):
            raise UnfitError(f"a profile without a step before {seconds(end_ns)} s", "one while the cell runs")
        return replace(self, **repeated, repeat_ns=None)  # type: ignore[arg-type]  # each column as it was

    def _turns(
        self, name: str, steps: tuple[tuple[int, float], ...], turns: int, end_ns: int
    ) -> tuple[tuple[int, float], ...]:
        found: dict[int, float] = {}
        for turn in range(turns if steps else 0):
            for t_ns, value in steps:
                at_ns = t_ns + turn * (self.repeat_ns or 0)
                if at_ns < end_ns:
                    # The last step of a turn and the first of the next may be at one time.
                    found[at_ns] = value + (found.get(at_ns, 0) if name == "packets" else 0)
        return tuple(found.items())

    def at(self, name: str, t_ns: int) -> float | None:
        """The value of a column at a time; None before its first step."""
        steps, turn = self.columns[name], 0
        if self.repeat_ns:
            turn, t_ns = divmod(t_ns, self.repeat_ns)
        number = bisect_right(steps, t_ns, key=lambda step: step[0])
        # Before the first step of a later turn the last one of the turn before holds.
        return steps[number - 1][1] if number or (turn and steps) else None


@dataclass(frozen=True)
class Imported:
    """What a file says: profiles by the names of their directions, and sentences about what was assumed or left out."""

    profiles: dict[str, Profile]
    notes: tuple[str, ...] = ()


def check(name: str, steps: Sequence[tuple[int, float]], subject: str = "", advice: str = "") -> None:
    """Raises UnfitError for steps that no column of that name can have."""
    word, most = WORDS[name], BOUNDS.get(name, 1)
    if len(steps) > MOST_STEPS:
        raise UnfitError(f"{len(steps)} steps of {word}", f"at most {MOST_STEPS}", "Thin the profile.")
    for early, late in pairwise((t_ns for t_ns, _ in steps)):
        if late <= early:
            found = f"a step of {word} at {seconds(late)} s after one at {seconds(early)} s"
            raise UnfitError(found, "times that ascend", advice, subject)
    for t_ns, value in steps:
        if not 0 <= t_ns <= LATEST_NS:
            expected = f"0 to {LATEST_NS // SECOND_NS} s"
            raise UnfitError(f"a step of {word} at {seconds(t_ns)} s", expected, advice, subject)
        if not 0 <= value <= most:
            raise UnfitError(f"{word} {value} at {seconds(t_ns)} s", f"0 to {most}", advice, subject)


def refuse(profile: Profile, *names: str) -> None:
    """Raises UnfitError where one of the columns, or `repeat_ns`, says something that a format cannot hold."""
    for name in names:
        if name == "repeat_ns" and profile.repeat_ns is not None:
            found = f"a profile that begins again after {seconds(profile.repeat_ns)} s"
            raise UnfitError(found, "one that ends, as this format's do", "Write its turns out, without repeat_s.")
        if steps := profile.columns.get(name):
            found = f"{len(steps)} steps of {WORDS[name]}, the first at {seconds(steps[0][0])} s"
            raise UnfitError(found, "what this format holds", "Export it as csv, or leave them out: --without.")


def collapsed(steps: Iterable[tuple[int, T]]) -> tuple[tuple[int, T], ...]:
    """The steps at which a value changes; of those at one time the last."""
    kept: list[tuple[int, T]] = []
    for t_ns, value in steps:
        if kept and kept[-1][0] == t_ns:
            kept.pop()
        if not kept or kept[-1][1] != value:
            kept.append((t_ns, value))
    return tuple(kept)


def seconds(t_ns: int) -> str:
    """A time as text that is exact."""
    return f"{(Decimal(t_ns) / SECOND_NS).normalize():f}"


def number(text: str, what: str, subject: str, per_unit: int = 1) -> int:
    """A decimal number of a file as the nearest whole number of `per_unit`-ths; where that is 1, it must be whole.

    Raises:
        UnfitError: it is none, is negative, or is beyond all bounds.
    """
    value = Decimal(text.strip()) if len(text) <= 60 and NUMBER.fullmatch(text.strip()) else Decimal("NaN")
    is_exact = value.is_finite() and (per_unit > 1 or value == value.to_integral_value())
    if not is_exact or not 0 <= value <= 10**18:
        kind = "number" if per_unit > 1 else "whole number"
        raise UnfitError(shown(text), f"{what}, a {kind} from 0 to 10^18", "Correct the line.", subject)
    return round(value * per_unit)


def decoded(data: bytes, name: str) -> str:
    """The text of a file.

    Raises:
        UnfitError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnfitError(f"the byte 0x{data[error.start]:02x}", "text in UTF-8", "Convert it.", name) from error
