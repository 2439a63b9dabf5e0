"""Clustered bit errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scpslab.plan.error_models.base import ErrorSettings
from scpslab.plan.schema import Range
from scpslab.plan.values import Probability

Mean = Annotated[float, Range(least=1, most=1e15)]


@dataclass(frozen=True, kw_only=True)
class Clustered(ErrorSettings):
    """Error events with several wrong bits each."""

    CHANNEL: ClassVar[Mapping[str, str]] = {"ber": "ber", "mean_errors_per_burst": "burst-errors", "mean_gap_in_burst": "burst-gap"}

    ber: Probability
    mean_errors_per_burst: Mean
    mean_gap_in_burst: Mean


KIND = Clustered
