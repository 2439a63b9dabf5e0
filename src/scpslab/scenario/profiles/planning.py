"""What a scenario says of a profile: the name of its table, or the steps themselves. And from a plan's profile to what
the stages of a link read: pairs of a time and a value, until the cell's end.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scpslab.core import units
from scpslab.core.problems import Problem, UnfitError
from scpslab.documents.parts import Part, exactly_one_of, key
from scpslab.documents.quantities import Count, Duration, PositiveDuration
from scpslab.plan.disciplines import LONGEST_HELD_S
from scpslab.plan.links import FOR_EVER_NS, Direction
from scpslab.plan.profiles import WHOLE_WEIGHT, Column, chances_of, longest_wait_ns, with_sums
from scpslab.plan.profiles import Profile as Planned
from scpslab.scenario import stored
from scpslab.scenario.profiles.format import Options, Table
from scpslab.scenario.profiles.profile import MOST_STEPS, SECOND_NS, Profile, decoded, seconds

WHAT = "a profile"


class ProfileStep(Part):
    """What changes at a time.

    Attributes:
        at: Time of the step, counted from the epoch.
        rate: Rate from then on; 0 bit/s: nothing leaves.
        delay: One-way delay from then on.
        ber: Bit error rate from then on.
        state: Whether the direction is up from then on.
        packets: How many full packets may leave at that time, in place of a rate.
    """

    at: Duration = key(example="5 s")
    rate: str | None = key(None, example="2 Mbit/s")
    delay: Duration | None = key(None, example="300 ms")
    ber: float | None = key(None, least=0, most=0.5, example=1e-6)
    state: Literal["up", "down"] | None = key(None, example="down")
    packets: Count | None = key(None, example=3)

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if all(value is None for name, value in self if name != "at"):
            raise UnfitError("a step that changes nothing", "rate, delay, ber, state or packets")
        _ = self.rate_bps
        return self

    @property
    def rate_bps(self) -> int | None:
        """The rate, which may be 0."""
        return units.parse("rate", self.rate) if self.rate is not None else None


class ProfileKeys(Part):
    """What the direction does over time: its table, or the steps themselves.

    Attributes:
        file: Table (CSV) in the scenario's folder, relative to the scenario file; scpslab profile import makes one.
        steps: The steps, in place of a file.
        delay: Between two delays: the earlier one holds (steps), or a straight line (linear).
        when_down: While the direction is down: what arrives is lost and packets leave as before (lose), or packets wait
            in the queue and what has left arrives (hold).
        repeat: Everything begins again after this time. Default: what the table says.
        reorder: Packets may overtake others where the delay falls.
    """

    file: str | None = key(None, example="profiles/pass.csv")
    steps: Annotated[tuple[ProfileStep, ...], Field(max_length=10_000)] | None = key(
        None, example=[{"at": "0 s", "rate": "2 Mbit/s"}]
    )
    delay: Literal["steps", "linear"] = key("steps", example="linear")
    when_down: Literal["lose", "hold"] = key("lose", example="hold")
    repeat: PositiveDuration | None = key(None, example="15 s")
    reorder: bool = key(False, example=True)

    _has_one = exactly_one_of("file", "steps")

    def table(self) -> str:
        """The steps as a table. Raises UnfitError."""
        steps = self.steps or ()
        columns = {
            "rate_bps": tuple((one.at, one.rate_bps) for one in steps if one.rate_bps is not None),
            "delay_ns": tuple((one.at, one.delay) for one in steps if one.delay is not None),
            "ber": tuple((one.at, one.ber) for one in steps if one.ber is not None),
            "up": tuple((one.at, one.state == "up") for one in steps if one.state is not None),
            "packets": tuple((one.at, one.packets) for one in steps if one.packets is not None),
        }
        return Table().write(Profile(**columns), Options())  # type: ignore[arg-type]  # by their names

    def text(self, folder: Path) -> str:
        """The table; `folder` is the scenario's. Raises ScenarioError and UnfitError."""
        if self.file is None:
            return self.table()
        return decoded(stored.content(stored.planned(folder, self.file), WHAT), self.file)

    def plan(self, folder: Path, until_ns: int) -> tuple[Planned, Profile]:
        """Its part of the plan of a cell that ends at the latest at `until_ns`, and what it says. Raises ScenarioError
        and UnfitError.
        """
        text = self.text(folder)
        profile = of_text(text, self.file or "steps", self.repeat)
        file, sha256 = stored.planned(folder, self.file) if self.file is not None else (None, None)
        planned = Planned(
            columns=tuple(column for column, name in COLUMNS.items() if profile.columns[name]),
            delay=self.delay,
            when_down=self.when_down,
            reorder=self.reorder,
            until_ns=until_ns,
            file=file,
            sha256=sha256,
            table=text if self.file is None else None,
            repeat_ns=self.repeat,
        )
        return planned, profile

    def misfits(self, folder: Path, direction: Direction, packet_bytes: int, until_ns: int) -> Iterator[Problem]:
        """What does not fit of it, in a direction as it is planned."""
        if self.file is not None and (found := stored.misfit(folder, self.file, WHAT, _judge)):
            yield found
            return
        try:
            planned, profile = self.plan(folder, until_ns)
            misfit(profile, direction, planned, packet_bytes)
        except UnfitError as error:
            yield error.at(("file",) if self.file is not None else ("steps",), "Correct the profile.")


def _judge(name: str, data: bytes) -> Problem | None:
    """What is wrong with the content of a table of that name."""
    try:
        Table().read(data, name, Options())
    except UnfitError as error:
        return error.at(("file",), "Correct it.")
    return None


Pairs = list[tuple[int, int]]
COLUMNS: dict[Column, str] = {"rate": "rate_bps", "delay": "delay_ns", "ber": "ber", "up": "up", "packets": "packets"}
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
    chances = chances_of(found[".chances"], direction.overhead_bytes)
    held_ns = longest_wait_ns(chances or tuple(with_sums(found[".rates"])), room, in_chances=bool(chances))
    if held_ns > LONGEST_HELD_S * SECOND_NS:
        raise UnfitError(
            f"a full queue of {room} B that lasts for {seconds(held_ns)} s",
            f"at most {LONGEST_HELD_S} s",
            "Lower the queue's limit, or say when_down: lose.",
        )
