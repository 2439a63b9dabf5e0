"""No bit errors."""

from collections.abc import Mapping
from typing import ClassVar

from scpslab.plan.error_models import ErrorSettings


class NoErrors(ErrorSettings, kind="none"):
    """No bit is ever wrong."""

    CHANNEL: ClassVar[Mapping[str, str]] = {}
