"""One file of a mix: a bulk transfer."""

from scpslab.kinds.workloads.bulk.lab import Bulk


class File(Bulk, kind="mix"):
    """As any other bulk transfer."""
