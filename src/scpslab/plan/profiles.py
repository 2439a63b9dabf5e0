"""A direction's profile in a plan: which table says what it does over time, and how the table is meant."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import accumulate
from typing import Annotated, Literal

from scpslab.core.problems import Problem
from scpslab.plan.disciplines import FULL_PACKET_BYTES
from scpslab.plan.error_models import NO_MODEL, Errors
from scpslab.plan.links import FOR_EVER_NS, Direction, Link
from scpslab.plan.schema import Part, Text
from scpslab.plan.values import AbsolutePath, Period, Seed

# A bit error rate counts as a share of the largest one, in so many parts.
WHOLE_WEIGHT = 1 << 16
LARGEST_TABLE = 1 << 20
NS_PER_S = 10**9

Column = Literal["rate", "delay", "ber", "up", "packets"]
Table = Annotated[str, Text(f"a table of at most {LARGEST_TABLE} characters", lambda text: len(text) <= LARGEST_TABLE)]


# Until when each rate holds, bit/s, and what has left at the rates from the epoch until then: bits, and their 10^-9.
# Or when a chance to leave is, 0, how many bytes have left until then and at it, 0.
Stretches = tuple[tuple[int, int, int, int], ...]


def with_sums(rates: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Stretches of rates."""
    whole = begins = 0
    for to_ns, bps in rates:
        whole, begins = whole + bps * (to_ns - begins), to_ns
        sent, rest = divmod(whole, NS_PER_S)
        yield to_ns, bps, min(sent, FOR_EVER_NS), rest


def chances_of(packets: Iterable[tuple[int, int]], overhead_bytes: int) -> Stretches:
    """Stretches of chances: at which instant how many full packets may leave."""
    summed = accumulate(packets, lambda before, one: (one[0], before[1] + one[1]))
    return tuple((at, 0, min(let * (FULL_PACKET_BYTES + overhead_bytes), FOR_EVER_NS), 0) for at, let in summed)


def longest_wait_ns(stretches: Stretches, room_bytes: int, *, in_chances: bool) -> int:
    """How long so many bytes take at most to leave. The longest wait begins, or ends, where a stretch does, or a moment
    after it: where nothing leaves, the same sum has a first and a last instant.
    """
    need, stretches = room_bytes * (1 if in_chances else 8), ((0, 0, 0, 0), *stretches)
    sums = [sent for _, _, sent, _ in stretches]

    def when(sent: int, side: Callable[[list[int], int], int]) -> int:
        at = min(side(sums, sent), len(sums) - 1)
        until_ns, bps, _, _ = stretches[at]
        begin_ns, _, before, _ = stretches[at - 1]
        return begin_ns - (before - sent) * NS_PER_S // bps if bps else until_ns

    waits = [(sent, sent + need) for sent in sums[:-1]]
    if not in_chances:
        waits += [(sent - need, sent) for sent in sums[:-1] if sent >= need]
    sides = [bisect_left] if in_chances else [bisect_left, bisect_right]
    return max(when(end, side) - when(begin, side) for begin, end in waits for side in sides)


class Profile(Part):
    """`file` and the digest that its content must have, or the `table` itself: CSV as docs/profiles.md has it.

    `columns`: what it changes. `delay`: in steps, or in straight lines between them. `when_down`: whether packets are
    lost, or wait until the direction is up. `reorder`: whether a packet may overtake others where the delay falls.
    `repeat_ns`: in place of the table's own. `until_ns`: the end of the cell, after which the link's own values hold.
    """

    columns: tuple[Column, ...]
    delay: Literal["steps", "linear"]
    when_down: Literal["lose", "hold"]
    reorder: bool
    until_ns: Period
    file: AbsolutePath | None = None
    sha256: Seed | None = None
    table: Table | None = None
    repeat_ns: Period | None = None

    @property
    def stored_file(self) -> tuple[str, str] | None:
        """The file and its digest; None where the table is in the plan."""
        return (self.file, self.sha256) if self.file is not None and self.sha256 is not None else None

    @property
    def moves(self) -> frozenset[str]:
        """What it says: rate, also where it says opportunities, delay, ber, up."""
        return frozenset("rate" if column == "packets" else column for column in self.columns)

    @property
    def paces(self) -> bool:
        """Whether it says when packets leave, and not only what becomes of them then."""
        return "rate" in self.moves or ("up" in self.moves and self.when_down == "hold")

    def misfits(
        self, link: Link, direction: Direction, errors: Errors | None, changes: Collection[str]
    ) -> Iterator[Problem]:
        """What does not fit the direction, its errors, and the changes that events make there (rate, delay, ber)."""
        queue = direction.queue
        if self.paces and (queue is None or not queue.serialises):
            beside = f"the discipline {queue.discipline}" if queue else "no queue"
            found = f"a profile that says when packets leave, beside {beside}"
            advice = "Choose drop-tail." if "rate" in self.moves else "Say when_down: lose."
            yield Problem((), found, "a rate and a drop-tail queue", advice)
        if "delay" in self.columns:
            if link.via is None:
                yield Problem(
                    (), "delays of a link without a relay", "a link that goes through a switch", "Choose one."
                )
            if direction.delay_table is not None or direction.jitter_ns:
                found = f"delays beside {'delay_table' if direction.delay_table is not None else 'jitter'}"
                yield Problem((), found, "one of them", "Remove one.")
        is_plain = errors is None or (errors.model in ("independent", NO_MODEL) and errors.action == "drop")
        if "ber" in self.columns and not is_plain:
            found = f"bit error rates beside the error model {errors.model if errors else ''} or the action flip"
            yield Problem((), found, "independent errors that drop packets", "Remove errors, or the column ber.")
        clashes = {"rate": self.paces, "delay": "delay" in self.columns, "ber": "ber" in self.columns}
        for change in changes:
            if clashes.get(change):
                found = f"an event that changes the {change}, as the profile does"
                yield Problem((), found, "one of them", "Write the change into the profile.")
