"""What a scenario says of a profile: the name of its table, or the steps themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scpslab.core import units
from scpslab.core.problems import Problem, UnfitError
from scpslab.documents.parts import Part, exactly_one_of, key
from scpslab.documents.quantities import Count, Duration, PositiveDuration
from scpslab.plan.links import Direction
from scpslab.plan.profiles import Profile as Planned
from scpslab.scenario import stored
from scpslab.scenario.profiles.format import Options
from scpslab.scenario.profiles.profile import Profile, decoded
from scpslab.scenario.profiles.table import Table
from scpslab.scenario.profiles.tables import COLUMNS, misfit, of_text

WHAT = "a profile"


class ProfileStep(Part):
    """What changes at a time."""

    at: Duration = key(says="Time of the step, counted from the epoch.", example="5 s")
    rate: str | None = key(None, says="Rate from then on; 0 bit/s: nothing leaves.", example="2 Mbit/s")
    delay: Duration | None = key(None, says="One-way delay from then on.", example="300 ms")
    ber: float | None = key(None, says="Bit error rate from then on.", least=0, most=0.5, example=1e-6)
    state: Literal["up", "down"] | None = key(None, says="Whether the direction is up from then on.", example="down")
    packets: Count | None = key(
        None, says="How many full packets may leave at that time, in place of a rate.", example=3
    )

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
    """What the direction does over time: its table, or the steps themselves."""

    file: str | None = key(
        None,
        says="Table (CSV) in the scenario's folder, relative to the scenario file; scpslab profile import makes one.",
        example="profiles/pass.csv",
    )
    steps: Annotated[tuple[ProfileStep, ...], Field(max_length=10_000)] | None = key(
        None, says="The steps, in place of a file.", example=[{"at": "0 s", "rate": "2 Mbit/s"}]
    )
    delay: Literal["steps", "linear"] = key(
        "steps",
        says="Between two delays: the earlier one holds (steps), or a straight line (linear).",
        example="linear",
    )
    when_down: Literal["lose", "hold"] = key(
        "lose",
        says="While the direction is down: what arrives is lost and packets leave as before (lose), or packets wait in "
        "the queue and what has left arrives (hold).",
        example="hold",
    )
    repeat: PositiveDuration | None = key(
        None, says="Everything begins again after this time. Default: what the table says.", example="15 s"
    )
    reorder: bool = key(False, says="Packets may overtake others where the delay falls.", example=True)

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
