"""Stored bit errors."""

from scpslab.plan.error_models import ErrorSettings
from scpslab.plan.values import AbsolutePath, Seed


class VectorFile(ErrorSettings, kind="vector-file"):
    """A stored error vector, and the digest that its content must have."""

    file: AbsolutePath
    sha256: Seed

    @property
    def stored_file(self) -> tuple[str, str]:
        """The vector."""
        return self.file, self.sha256
