"""How much room the maps of the links' stages have. A cell's vectors, windows and lists are put into maps that a template of its network has made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from scpslab.core.names import file_name
from scpslab.plan import Plan
from scpslab.plan.schema import Range

# Room kept for the bit errors of each direction of a lab whose links can change; then they repeat.
GAPS_KEPT = 1 << 16
NUMBER_BYTES = 8
VERDICT_LOG_ENTRIES = 1 << 18
Entries = Annotated[int, Range(1)]


@dataclass(frozen=True, kw_only=True)
class Space:
    """Entries of the maps `gaps`, `windows`, `drop_list` and `verdicts`, powers of two: cells that differ a little share a template."""

    gaps: Entries
    windows: Entries
    drops: Entries
    verdicts: Entries

    @classmethod
    def of(cls, plan: Plan, vectors: Path) -> Self:
        """The space that a plan needs whose vectors of bit errors are in a folder."""
        gaps = windows = drops = 0
        spare = spare_gaps(plan)
        for link in plan.network.links:
            for direction in link.directions:
                errors = plan.cell.errors(link.name, direction.name)
                gaps += spare + _numbers(vectors / file_name(link.name, direction.name, suffix=".u64"))
                windows += bool(spare) + len(errors.outages if errors else ())
                drops += len(errors.drop_packets if errors else ())
                drops += _numbers(vectors / file_name(link.name, direction.name, suffix=".drops"))
        logged = any(probe.logged_direction for probe in plan.cell.probes)
        return cls(gaps=_power(gaps), windows=_power(windows), drops=_power(drops), verdicts=VERDICT_LOG_ENTRIES if logged else 1)


def spare_gaps(plan: Plan) -> int:
    """How many gaps each direction has room for besides its plan's: only links that can change need it."""
    return GAPS_KEPT if plan.cell.script or plan.cell.shell or plan.cell.mininet else 0


def _numbers(path: Path) -> int:
    return path.stat().st_size // NUMBER_BYTES if path.exists() else 0


def _power(entries: int) -> int:
    return 1 << max(entries - 1, 0).bit_length()
