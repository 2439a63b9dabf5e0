"""Ends of a transfer that may be `scps` programs: the rule for whoever has `from_scps` and `to_scps`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scpslab.plan.places import Places, Problem
from scpslab.plan.stacks import SCPS, STACKS

if TYPE_CHECKING:
    from scpslab.kinds.workloads.bulk.plan import Bulk
    from scpslab.kinds.workloads.fp.plan import Fp


def problems_of_ends(workload: Bulk | Fp, places: Places) -> Iterator[Problem]:
    """An end is a program exactly where its host's stack is scps."""
    for key, name, end in (
        ("from_scps", workload.from_, workload.from_scps),
        ("to_scps", workload.to, workload.to_scps),
    ):
        stack = places.stacks[name]
        if (end is not None) != (STACKS[stack] is SCPS):
            yield (
                key,
                (
                    f"found {'null' if end is None else 'an object'} for a host of stack {stack}; "
                    "expected an object for scps only"
                ),
            )
