"""Workload `mix`: one file of a mix, which is a bulk transfer."""

from typing import Literal

from scpslab.plan.values import Name

from scpslab.kinds.workloads.bulk.plan import Bulk


class File(Bulk, kind="mix"):
    """One file of a mix, a bulk transfer of its own. Its start and size were drawn when the plan was made.

    `mix`: the workload of the scenario that it is of.
    """

    kind: Literal["mix"] = "mix"  # type: ignore[assignment]
    mix: Name

    @property
    def part_of(self) -> str:
        """The mix."""
        return self.mix

    @property
    def drawn(self) -> tuple[float, ...]:
        """Its start and size."""
        return (self.start_ns, self.bytes_)
