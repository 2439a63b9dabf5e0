"""What happens while a cell runs: links that change and commands that are typed. `scpslab shell --transcript` writes this section."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Duration, Name, PositiveDuration, Rate

CHANGES = ("ber", "delay", "rate", "state")


class LinkStep(Part):
    """A link changes while traffic flows."""

    do: Literal["link"] = key(says="What is done.", example="link")
    at: Duration = key(says="When, since the network came up.", example="5 s")
    link: Name = key(says="Link.", example="hop")
    direction: Name | None = key(None, says="Direction; both if not given.", example="data")
    ber: float | None = key(None, says="Bit error rate from then on: independent errors.", least=0, most=0.5, example=1e-5)
    delay: Duration | None = key(None, says="One-way delay from then on.", example="300 ms")
    rate: Rate | None = key(None, says="Rate from then on; the direction has to have one.", example="1 Mbit/s")
    state: Literal["down", "up"] | None = key(None, says="Down: whatever arrives is lost, as outage. Up: no longer.", example="down")

    @model_validator(mode="after")
    def _is_one_change(self) -> Self:
        given = [name for name in CHANGES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"found {' and '.join(given) or 'no change'}; expected exactly one of {', '.join(CHANGES)}")
        return self


class RunStep(Part):
    """A command is typed into a node's shell. What it prints is in the logs, its exit code in records/script.jsonl."""

    do: Literal["run"] = key(says="What is done.", example="run")
    at: Duration = key(says="When, since the network came up.", example="6 s")
    node: Name = key(says="Host or router.", example="ws1")
    command: Annotated[str, Field(min_length=1)] = key(says="The command, for sh.", example="ping -c 3 10.2.0.2")
    patience: PositiveDuration = key("300 s", says="When it is ended, and the cell counts as incomplete.", example="60 s")
    required: bool = key(True, says="Whether the cell waits for it; what it leaves running ends with the cell.", example=False)


Step = Annotated[LinkStep | RunStep, Field(discriminator="do")]
