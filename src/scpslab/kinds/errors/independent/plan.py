"""Independent bit errors."""

from collections.abc import Mapping
from typing import ClassVar

from scpslab.plan.error_models import BitErrorRate


class Independent(BitErrorRate, kind="independent"):
    """Every bit is wrong with the same probability."""

    CHANNEL: ClassVar[Mapping[str, str]] = {"ber": "ber"}

    def hit(self, bits: int) -> float:
        """Any of the bits."""
        return 1 - (1 - self.ber) ** bits
