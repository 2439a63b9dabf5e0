"""No bit errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from scpslab.plan.error_models import MODELS, ErrorSettings


@dataclass(frozen=True, kw_only=True)
class NoErrors(ErrorSettings):
    """No bit is ever wrong."""

    CHANNEL: ClassVar[Mapping[str, str]] = {}


MODELS.register("none", NoErrors)
