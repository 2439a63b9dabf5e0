"""One file of a mix: a bulk transfer."""

from __future__ import annotations

from scpslab.kinds.workloads.bulk.lab import Bulk


class File(Bulk, kind="mix"):
    """As any other bulk transfer."""
