"""Stage 3 of a direction: bit errors, drop lists and outages. The error models: a folder each in scpslab.kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from scpslab.core.kinds import Registry
from scpslab.plan.schema import DependsOn, OneOf, Range
from scpslab.plan.values import Amount, Nanoseconds, Probability, Seed, Size

# A vector is in the memory of who draws it, eight bytes for each error.
MOST_VECTOR_ERRORS = 1 << 22
NO_MODEL = "none"


@dataclass(frozen=True, kw_only=True)
class ErrorSettings:
    """What an error model draws from; the settings of a model that has none.

    `CHANNEL`: what `scps channel`, which draws on serial links, calls the settings of a model that it knows; None: it
    is given the model's bit map. `NAMES_PACKETS`: the model draws numbers of packets, for a drop list, and no bit
    errors.
    """

    NAMES_PACKETS: ClassVar[bool] = False
    CHANNEL: ClassVar[Mapping[str, str] | None] = None

    def hit(self, bits: int) -> float | None:
        """The probability that errors hit a packet of so many bits; None where no closed form is known."""
        return None

    @property
    def mean_ber(self) -> float:
        """The mean bit error rate, where it can be said."""
        return 0

    @property
    def stored_file(self) -> tuple[str, str] | None:
        """The path of the file that holds the errors, and its SHA-256; None where they are drawn."""
        return None


@dataclass(frozen=True, kw_only=True)
class BitErrorRate(ErrorSettings):
    """The settings of a model whose mean bit error rate can be said."""

    ber: Probability

    @property
    def mean_ber(self) -> float:
        """As it is said."""
        return self.ber


MODELS: Registry[type[ErrorSettings]] = Registry("errors", "plan")
Model = Annotated[str, OneOf(MODELS)]


@dataclass(frozen=True, kw_only=True)
class Errors:
    """What goes wrong in a direction."""

    model: Model
    action: Literal["drop", "flip"]
    settings: Annotated[ErrorSettings, DependsOn("model", MODELS)]
    seed: Seed
    vector_errors: Annotated[int, Range(1, MOST_VECTOR_ERRORS)]
    drop_packets: tuple[Amount, ...]
    drop_min_bytes: Size
    outages: tuple[tuple[Nanoseconds, Nanoseconds], ...]
