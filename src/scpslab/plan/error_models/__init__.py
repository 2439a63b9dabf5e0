"""Stage 3 of a direction: bit errors, drop lists and outages. The error models: a folder each in scpslab.kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from scpslab.core.kinds import Layer
from scpslab.plan.error_models.base import ErrorSettings
from scpslab.plan.schema import DependsOn, Range, Text
from scpslab.plan.values import Amount, Nanoseconds, Seed, Size

# A vector is in the memory of who draws it, eight bytes for each error.
MOST_VECTOR_ERRORS = 1 << 22
NO_MODEL = "none"
# The error models. What one draws from is in the module of its name here, all else in that of scpslab/scenario/errors.
MODELS: Layer[type[ErrorSettings]] = Layer("errors", "plan")
Model = Annotated[str, Text(f"one of {', '.join(MODELS)}", MODELS.__contains__)]


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
