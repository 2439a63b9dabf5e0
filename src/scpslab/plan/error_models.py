"""Stage 3 of a direction: bit errors, drop lists and outages. One class a model, one line in MODELS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from scpslab.plan.schema import DependsOn, Range, Text
from scpslab.plan.values import AbsolutePath, Amount, Nanoseconds, Probability, Seed, Size

# A vector is in the memory of who draws it, eight bytes for each error.
MOST_VECTOR_ERRORS = 1 << 22
Transition = Annotated[float, Range(above=0, most=1)]
Mean = Annotated[float, Range(least=1, most=1e15)]


@dataclass(frozen=True, kw_only=True)
class NoErrors:
    """No bit is ever wrong."""


@dataclass(frozen=True, kw_only=True)
class Independent:
    """Every bit is wrong with the same probability."""

    ber: Probability


@dataclass(frozen=True, kw_only=True)
class Clustered:
    """Error events with several wrong bits each."""

    ber: Probability
    mean_errors_per_burst: Mean
    mean_gap_in_burst: Mean


@dataclass(frozen=True, kw_only=True)
class GilbertElliott:
    """A good and a bad state."""

    p_good_bad: Transition
    p_bad_good: Transition
    ber_good: Probability
    ber_bad: Probability


@dataclass(frozen=True, kw_only=True)
class VectorFile:
    """A stored error vector, and the digest that its content must have."""

    file: AbsolutePath
    sha256: Seed


MODELS: dict[str, type] = {
    "none": NoErrors,
    "independent": Independent,
    "clustered": Clustered,
    "gilbert-elliott": GilbertElliott,
    "vector-file": VectorFile,
}
Model = Annotated[str, Text(f"one of {', '.join(MODELS)}", MODELS.__contains__)]
Settings = Annotated[NoErrors | Independent | Clustered | GilbertElliott | VectorFile, DependsOn("model", MODELS)]


@dataclass(frozen=True, kw_only=True)
class Errors:
    """What goes wrong in a direction."""

    model: Model
    action: Literal["drop", "flip"]
    settings: Settings
    seed: Seed
    vector_errors: Annotated[int, Range(1, MOST_VECTOR_ERRORS)]
    drop_packets: tuple[Amount, ...]
    drop_min_bytes: Size
    outages: tuple[tuple[Nanoseconds, Nanoseconds], ...]
