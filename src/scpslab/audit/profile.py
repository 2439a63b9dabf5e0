"""What a profile's table asks of a direction: read and reckoned once more, from the text alone (docs/profiles.md)."""

import re
from bisect import bisect_right
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Self

import numpy as np
from numpy.typing import NDArray

from scpslab.plan.profiles import Profile

Numbers = NDArray[np.int64]
NS = 10**9
FULL_BYTES = 1500
# In so many parts of a bit the places of errors count where their rate changes.
WHOLE_WEIGHT = 65_536
Steps = list[tuple[int, Fraction]]
# Is told of a packet, and says when it leaves.
SendsDue = Generator[int, tuple[int, int], None]


@dataclass(frozen=True, eq=False)
class Course:
    """The table's columns by name, and after how long they begin again (0: never)."""

    profile: Profile
    columns: dict[str, Steps]
    repeat_ns: int

    @classmethod
    def of(cls, text: str, profile: Profile) -> Self:
        """The table of a plan."""
        lines = text.splitlines()
        repeats = [line.split(":")[1] for line in lines if re.match(r"#\s*repeat_s:", line)]
        rows = [line.split(",") for line in lines if line.strip() and not line.startswith("#")]
        columns: dict[str, Steps] = {name.strip(): [] for name in rows[0]}
        for row in rows[1:]:
            cells = dict(zip(columns, (cell.strip().strip('"') for cell in row), strict=True))
            at = round(Decimal(cells.pop("t_s")) * NS)
            for name, cell in cells.items():
                if cell:
                    exact = Fraction(Decimal(cell))
                    columns[name].append((at, Fraction(round(exact * NS), NS) if name == "delay_s" else exact))
        own = round(Decimal(repeats[-1].strip()) * NS) if repeats else 0
        return cls(profile, columns, profile.repeat_ns or own)

    def has(self, name: str) -> bool:
        """Whether a column says anything."""
        return bool(self.columns.get(name))

    @property
    def paces(self) -> bool:
        """Whether it says when packets leave."""
        is_held = self.profile.when_down == "hold" and self.has("up")
        return self.has("rate_bit_s") or self.has("packets") or is_held

    def _value(self, name: str, t_ns: int, own: Fraction) -> Fraction:
        """A column's value at a time; `own` before its first step, and after the cell's end."""
        steps = self.columns.get(name, [])
        if not steps or not 0 <= t_ns < self.profile.until_ns:
            return own
        turn, within = divmod(t_ns, self.repeat_ns) if self.repeat_ns else (0, t_ns)
        at = bisect_right(steps, within, key=lambda step: step[0])
        return steps[at - 1][1] if at else steps[-1][1] if turn else own

    def _changes_after(self, t_ns: int, names: tuple[str, ...]) -> int:
        """The next time at which a column may change, or the cell's end; then never."""
        if t_ns < 0:
            return 0
        if t_ns >= self.profile.until_ns:
            return 1 << 62
        turn, within = divmod(t_ns, self.repeat_ns) if self.repeat_ns else (0, t_ns)
        found = [self.profile.until_ns]
        for name in names:
            times = self.columns.get(name, [])
            at = bisect_right(times, within, key=lambda step: step[0])
            found += [turn * self.repeat_ns + times[at][0]] if at < len(times) else []
        if self.repeat_ns:
            found.append((turn + 1) * self.repeat_ns)
        return min(found)

    def due(self, offered: Numbers, wire_bytes: Numbers, own_bps: int, overhead: int) -> Numbers:
        """When packets leave that are offered at these times, one behind the other."""
        leaving = self._by_chances(overhead) if self.has("packets") else None
        last, found = -(1 << 62), []
        for at, size in zip(offered.tolist(), wire_bytes.tolist(), strict=True):
            begins = max(at, last)
            if leaving is None or at < 0:
                due = (
                    self._by_rates(begins, size * 8, own_bps)
                    if leaving is None
                    else begins + ceil(Fraction(size * 8 * NS, own_bps))
                )
            else:
                due = leaving.send((at, size))
            last = max(due, begins + 1)
            found.append(last)
        return np.array(found, np.int64)

    def _by_rates(self, begins: int, bits: int, own_bps: int) -> int:
        """When the last of some bits has left that begin to: stretch by stretch."""
        now, left = begins, Fraction(bits)
        names = ("rate_bit_s", "up") if self.profile.when_down == "hold" else ("rate_bit_s",)
        while True:
            bps, until = self._value("rate_bit_s", now, Fraction(own_bps)), self._changes_after(now, names)
            if len(names) > 1 and not self._value("up", now, Fraction(1)):
                bps = Fraction(0)
            if bps * (until - now) >= left * NS:
                return now + ceil(left * NS / bps)
            left -= bps * (until - now) / NS
            now = until

    def _by_chances(self, overhead: int) -> SendsDue:
        """A coroutine that is told of packets, and says when each leaves: as mahimahi does it, chance by chance."""
        generator = self._one_by_one(overhead)
        next(generator)
        return generator

    def _one_by_one(self, overhead: int) -> SendsDue:
        chances = self._chances(overhead)
        at, left = next(chances)
        told = yield 0
        while True:
            now, size = told
            while at <= now:
                # Nobody waited when this one came.
                at, left = next(chances)
            while size > left:
                size -= left
                at, left = next(chances)
            left -= size
            told = yield at

    def _chances(self, overhead: int) -> Iterator[tuple[int, int]]:
        """When how many bytes may leave; after the cell's end, all."""
        turn = 0
        while True:
            for at, packets in self.columns["packets"]:
                t_ns = turn * self.repeat_ns + at
                if t_ns >= self.profile.until_ns:
                    yield self.profile.until_ns, 1 << 62
                if self.profile.when_down == "lose" or self._value("up", t_ns, Fraction(1)):
                    yield t_ns, int(packets) * (FULL_BYTES + overhead)
            turn += 1

    def delays(self, left: Numbers, own_ns: int) -> Numbers:
        """The delays of packets that leave the serialiser at these times."""
        return np.array([self._delay(t_ns, own_ns) for t_ns in left.tolist()], np.int64)

    def _delay(self, t_ns: int, own_ns: int) -> int:
        own = Fraction(own_ns, NS)
        first = self.columns["delay_s"][0]
        if t_ns < 0:
            return int((own if first[0] else first[1]) * NS)
        if t_ns >= self.profile.until_ns:
            t_ns = self.profile.until_ns - 1
        now = self._value("delay_s", t_ns, own)
        if self.profile.delay == "steps":
            return int(now * NS)
        turn, within = divmod(t_ns, self.repeat_ns) if self.repeat_ns else (0, t_ns)
        later = [at for at, _ in self.columns["delay_s"] if at > within]
        if not later and not self.repeat_ns:
            return int(now * NS)
        end = turn * self.repeat_ns + (later[0] if later else self.repeat_ns + first[0])
        if end >= self.profile.until_ns:
            return int(now * NS)
        begin = max(self._last_change(t_ns), 0)
        return int((now + (self._value("delay_s", end, own) - now) * (t_ns - begin) / (end - begin)) * NS)

    def _last_change(self, t_ns: int) -> int:
        turn, within = divmod(t_ns, self.repeat_ns) if self.repeat_ns else (0, t_ns)
        times = [at for at, _ in self.columns["delay_s"] if at <= within]
        if times:
            return turn * self.repeat_ns + times[-1]
        return (turn - 1) * self.repeat_ns + self.columns["delay_s"][-1][0] if turn else 0

    def weights(self, arrived: Numbers) -> Numbers:
        """The bit error rates at these times, as shares of the largest one in parts of WHOLE_WEIGHT."""
        most = max(rate for _, rate in self.columns["ber"])
        # As doubles, as the errors were drawn.
        shares = {
            rate: round(float(rate) / float(most) * WHOLE_WEIGHT) if most else 0 for _, rate in self.columns["ber"]
        }
        shares[Fraction(0)] = 0
        until, first = self.profile.until_ns - 1, self.columns["ber"][0]
        own = first[1] if first[0] == 0 else Fraction(0)
        rates = (self._value("ber", min(t_ns, until), own) for t_ns in arrived.tolist())
        return np.array([shares[rate] for rate in rates], np.int64)

    def downs(self, arrived: Numbers) -> NDArray[np.bool_]:
        """Whether the direction is down at these times."""
        return np.array([not self._value("up", t_ns, Fraction(1)) for t_ns in arrived.tolist()], bool)
