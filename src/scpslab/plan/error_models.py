"""Stage 3 of a direction: bit errors, drop lists and outages. The error models: a folder each in scpslab.kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from scpslab.core.kinds import Registered, Registry
from scpslab.plan.schema import DependsOn, OneOf, Part, Range
from scpslab.plan.values import Amount, Nanoseconds, Probability, Seed, Size

# A vector is in the memory of who draws it, eight bytes for each error.
MOST_VECTOR_ERRORS = 1 << 22
NO_MODEL = "none"


MODELS: Registry[type[ErrorSettings]] = Registry("errors", "plan")


class ErrorSettings(Registered, Part, registry=MODELS):
    """What an error model draws from; the settings of a model that has none.

    `CHANNEL`: what `scps channel`, which draws on serial links, calls the settings of a model that it knows; None: it
    is given the model's bit map. `NAMES_PACKETS`: the model draws numbers of packets, for a drop list, and no bit
    errors.
    """

    NAMES_PACKETS: ClassVar[bool] = False
    CHANNEL: ClassVar[Mapping[str, str] | None] = None

    @property
    def in_time(self) -> bool:
        """Whether what it draws of the channel's states counts nanoseconds, and not bits."""
        return False

    def hit(self, bits: int) -> float | None:
        """The probability that errors hit a packet of so many bits; None where no closed form is known."""
        return None

    @property
    def stored_file(self) -> tuple[str, str] | None:
        """The path of the file that holds the errors, and its SHA-256; None where they are drawn."""
        return None


class BitErrorRate(ErrorSettings):
    """The settings of a model whose mean bit error rate can be said."""

    ber: Probability


Model = Annotated[str, OneOf(MODELS)]


class Errors(Part):
    """What goes wrong in a direction."""

    model: Model
    action: Literal["drop", "flip"]
    settings: Annotated[ErrorSettings, DependsOn("model", MODELS)]
    seed: Seed
    vector_errors: Annotated[int, Range(1, MOST_VECTOR_ERRORS)]
    drop_packets: tuple[Amount, ...]
    drop_min_bytes: Size
    outages: tuple[tuple[Nanoseconds, Nanoseconds], ...]
