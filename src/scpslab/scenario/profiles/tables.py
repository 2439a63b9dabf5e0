"""From a plan's profile to what the stages of a link read: pairs of a time and a value, until the cell's end."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, chain, pairwise

from scpslab.core.problems import UnfitError
from scpslab.plan.disciplines import FULL_PACKET_BYTES, LONGEST_HELD_S
from scpslab.plan.links import FOR_EVER_NS, Direction
from scpslab.plan.profiles import WHOLE_WEIGHT, Column
from scpslab.plan.profiles import Profile as Planned
from scpslab.scenario import stored
from scpslab.scenario.profiles.format import Options
from scpslab.scenario.profiles.profile import MOST_STEPS, SECOND_NS, Profile, seconds
from scpslab.scenario.profiles.table import Table

Pairs = list[tuple[int, int]]
COLUMNS: dict[Column, str] = {
    "rate": "rate_bps",
    "delay": "delay_ns",
    "ber": "ber",
    "up": "up",
    "packets": "packets",
}
# So short are the pieces of a straight line that the stage program's products fit in 64 bits: 2^32 ns times 2^32 ns.
LONGEST_PIECE_NS = 1 << 32
# After the end everything may leave.
ALL_PACKETS = 1 << 40
# The copy of the table that the auditor reads.
AS_TABLE = ".csv"


def text_of(planned: Planned) -> str:
    """The table of a plan's profile.

    Raises:
        ScenarioError: its file is not there, or is another one than it was when the plan was made.
    """
    return planned.table if planned.table is not None else stored.content(planned.stored_file, "a profile").decode()


def of_text(text: str, name: str, repeat_ns: int | None) -> Profile:
    """The profile of a table. Raises UnfitError."""
    found = Table().read(text.encode(), name, Options()).profiles["forward"]
    return Profile(**found.columns, repeat_ns=repeat_ns or found.repeat_ns)  # type: ignore[arg-type]  # as they were


def tables(planned: Planned, direction: Direction) -> dict[str, bytes]:
    """The files of a direction, by their endings.

    Raises:
        ScenarioError: see text_of.
    """
    text = text_of(planned)
    profile = of_text(text, "profile", planned.repeat_ns)
    found = pairs_of(profile, direction, planned)
    return {AS_TABLE: text.encode()} | {
        ending: array("Q", chain.from_iterable(pairs)).tobytes() for ending, pairs in found.items() if pairs
    }


def pairs_of(profile: Profile, direction: Direction, planned: Planned) -> dict[str, Pairs]:
    """What the stages read of a profile."""
    until_ns = planned.until_ns
    moved = profile.until(until_ns)
    downs = _downs(moved, until_ns) if planned.when_down == "lose" else []
    holes = _downs(moved, until_ns) if planned.when_down == "hold" else []
    chances = [step for step in moved.packets if not _within(step[0], holes)]
    rates = _rates(moved, holes, direction.rate_bps or 0, until_ns) if (moved.rate_bps or holes) and not chances else []
    delays = _from_start(list(moved.delay_ns), direction.first_delay_ns)
    most = max((ber for _, ber in moved.ber), default=0.0)
    shares = [(t_ns, round(ber / most * WHOLE_WEIGHT) if most else 0) for t_ns, ber in moved.ber]
    return {
        ".rates": rates,
        ".chances": [*chances, (until_ns, ALL_PACKETS)] if chances else [],
        ".delays": list(_pieces(delays)) if planned.delay == "linear" else delays,
        ".weights": _from_start(shares, 0),
        ".downs": downs,
    }


def _from_start(steps: Pairs, first: int) -> Pairs:
    return [(0, first), *steps] if steps and steps[0][0] > 0 else steps


def _downs(profile: Profile, until_ns: int) -> Pairs:
    """From when until when it is down."""
    ends = [*(t_ns for t_ns, _ in profile.up[1:]), until_ns]
    return [(t_ns, end) for (t_ns, is_up), end in zip(profile.up, ends, strict=False) if not is_up and end > t_ns]


def _within(t_ns: int, spans: Pairs) -> bool:
    at = bisect_right(spans, (t_ns, FOR_EVER_NS)) - 1
    return at >= 0 and spans[at][0] <= t_ns < spans[at][1]


def _rates(profile: Profile, holes: Pairs, own_bps: int, until_ns: int) -> Pairs:
    """Until when each rate holds; before the epoch, and after the end, that of the link."""
    times = sorted({0, until_ns, *(t_ns for t_ns, _ in profile.rate_bps), *chain.from_iterable(holes)})
    at, found = dict(profile.rate_bps), [(0, own_bps)]
    bps = own_bps
    for start, end in pairwise(times):
        bps = at.get(start, bps)
        value = 0 if _within(start, holes) else bps
        if len(found) > 1 and found[-1][1] == value:
            found[-1] = (end, value)
        else:
            found.append((end, value))
    return [*found, (FOR_EVER_NS, own_bps)]


def _pieces(steps: Pairs) -> Iterator[tuple[int, int]]:
    """Steps on straight lines between those given, close enough to each other."""
    for (start, first), (end, last) in pairwise(steps):
        count = max(-(-(end - start) // LONGEST_PIECE_NS), -(-abs(last - first) // LONGEST_PIECE_NS), 1)
        for number in range(count):
            yield start + (end - start) * number // count, first + (last - first) * number // count
    yield from steps[-1:]


def misfit(profile: Profile, direction: Direction, planned: Planned, packet_bytes: int) -> None:
    """Raises UnfitError for what the stages cannot do with a profile, of a direction with packets of at most so many
    bytes on the wire.
    """
    found = pairs_of(profile, direction, planned)
    for ending, pairs in found.items():
        if len(pairs) > MOST_STEPS:
            raise UnfitError(
                f"{len(pairs)} {ending[1:]} until the cell's end", f"at most {MOST_STEPS}", "Thin the profile."
            )
    if profile.packets and profile.repeat_ns is None:
        raise UnfitError("opportunities that end", "ones that begin again", "Add repeat.")
    queue = direction.queue
    if not (found[".rates"] or found[".chances"]) or queue is None:
        return
    room = packet_bytes + (
        queue.limit_bytes if queue.limit_bytes is not None else (queue.limit_packets or 0) * packet_bytes
    )
    held_ns = longest_wait_ns(found[".rates"], found[".chances"], room, FULL_PACKET_BYTES + direction.overhead_bytes)
    if held_ns > LONGEST_HELD_S * SECOND_NS:
        raise UnfitError(
            f"a full queue of {room} B that lasts for {seconds(held_ns)} s",
            f"at most {LONGEST_HELD_S} s",
            "Lower the queue's limit, or say when_down: lose.",
        )


def longest_wait_ns(rates: Pairs, chances: Pairs, room_bytes: int, each_bytes: int) -> int:
    """How long so many bytes take at most to leave: with two hands on the sum of what may leave."""
    times = [t_ns for t_ns, _ in rates or chances]
    if rates:
        sums = list(accumulate(bps * (to - start) for (start, _), (to, bps) in pairwise(rates)))
        sums, need = [0, *sums], room_bytes * 8 * SECOND_NS
    else:
        sums, need = [packets * each_bytes for packets in accumulate(packets for _, packets in chances)], room_bytes
    longest = late = 0
    for early, (start, sent) in enumerate(zip(times, sums, strict=True)):
        while late < len(sums) - 1 and sums[late] < sent + need:
            late += 1
        if early + 1 < len(times) and start < times[-1]:
            # At a rate the last bytes leave before the end of their stretch.
            bps = rates[late][1] if rates else 0
            over = (sums[late] - sent - need) // bps if bps else 0
            longest = max(longest, times[late] - start - max(over, 0))
    return longest
