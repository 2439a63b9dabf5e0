"""Stored bit errors."""

from __future__ import annotations

from dataclasses import dataclass

from scpslab.plan.error_models import MODELS, ErrorSettings
from scpslab.plan.values import AbsolutePath, Seed


@dataclass(frozen=True, kw_only=True)
class VectorFile(ErrorSettings):
    """A stored error vector, and the digest that its content must have."""

    file: AbsolutePath
    sha256: Seed

    @property
    def stored_file(self) -> tuple[str, str]:
        """The vector."""
        return self.file, self.sha256


MODELS.register("vector-file", VectorFile)
