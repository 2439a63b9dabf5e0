"""Steps while a cell runs: changes of links, and commands in nodes. `scpslab shell --keep` writes this section."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Duration, Name, PositiveDuration, Rate
from scpslab.plan.script import CHANGES


class LinkStep(Part):
    """A link changes while traffic flows."""

    do: Literal["link"] = key(says="The kind of step.", example="link")
    at: Duration = key(says="Time of the step, counted from the epoch.", example="5 s")
    link: Name = key(says="Link.", example="hop")
    direction: Name | None = key(None, says="Direction. Default: both.", example="data")
    ber: float | None = key(
        None, says="Bit error rate from then on, with independent errors.", least=0, most=0.5, example=1e-5
    )
    delay: Duration | None = key(None, says="One-way delay from then on.", example="300 ms")
    rate: Rate | None = key(None, says="Rate from then on; the direction must already have a rate.", example="1 Mbit/s")
    state: Literal["down", "up"] | None = key(
        None, says="down: start an outage, in which everything that arrives is lost; up: end it.", example="down"
    )

    @model_validator(mode="after")
    def _is_one_change(self) -> Self:
        given = [name for name in CHANGES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"found {' and '.join(given) or 'no change'}; expected exactly one of {', '.join(CHANGES)}"
            )
        return self


class RunStep(Part):
    """A command runs in a node's shell. Its output is in the logs, its exit code in records/script.jsonl."""

    do: Literal["run"] = key(says="The kind of step.", example="run")
    at: Duration = key(says="Time of the step, counted from the epoch.", example="6 s")
    node: Name = key(says="Host or router.", example="ws1")
    command: Annotated[str, Field(min_length=1)] = key(says="The command; sh runs it.", example="ping -c 3 10.2.0.2")
    patience: PositiveDuration = key(
        "300 s", says="Time after which the command is ended, and the cell counts as incomplete.", example="60 s"
    )
    required: bool = key(
        True,
        says="Whether the cell waits for the command; programs that it leaves running end with the cell.",
        example=False,
    )


Step = Annotated[LinkStep | RunStep, Field(discriminator="do")]
