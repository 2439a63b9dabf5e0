"""How long cells took on this machine, from the manifests of its runs: for cells that ran before, and as a pace for
others.

A manifest says how long each of its cells took on the wall clock (longer beside other work), and under which key it
ran; the key stands for the plan and for all that carries it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from scpslab import plan as plans
from scpslab.core.contents import content_of
from scpslab.core.errors import ResultError
from scpslab.engine import DEFAULT
from scpslab.plan import Plan, PlanError
from scpslab.runs import RunFolder
from scpslab.runs.store import cell_key
from scpslab.scenario.planning import expected

# Of each run, so many cells say how fast others are; reading a plan takes a millisecond.
SAMPLE = 10
# Where a cell's time comes from: its own runs, those of its scenario, those of others, or its plan alone.
EXACT, ALIKE, OTHERS, PLAN = "exact", "alike", "others", "plan"
EVERY = "*"
SOURCES = (EXACT, ALIKE, OTHERS, PLAN)


@dataclass
class Measured:
    """Times of the cells of some runs.

    `counts`: how many cells `wall_s` was asked for, by where their time came from (`SOURCES`).
    """

    _took_s: dict[str, list[float]] = field(default_factory=dict)
    _hashes: set[str] = field(default_factory=set)
    # Seconds that cells took, and that their plans let expect: by scenario, and of all (EVERY).
    _paces: dict[str, tuple[float, float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SOURCES, 0))

    @classmethod
    def of(cls, runs: Path) -> Measured:
        """The times of all runs in a folder; runs that cannot be read have none."""
        found = cls()
        for folder in RunFolder.all_in(runs):
            try:
                found._add(folder)
            except ResultError:
                continue
        return found

    def wall_s(self, scenario: str, plan: Plan) -> float:
        """The seconds of a core that a cell of a scenario takes: as it took before, else as its plan and other cells
        let expect.
        """
        took = [seconds for engine in self._hashes for seconds in self._took_s.get(cell_key(plan, engine), ())]
        if took:
            self.counts[EXACT] += 1
            return sum(took) / len(took)
        for source, name in ((ALIKE, _base(scenario)), (OTHERS, EVERY)):
            took_s, expected_s = self._paces.get(name, (0.0, 0.0))
            if took_s and expected_s:
                self.counts[source] += 1
                return took_s / expected_s * expected(plan).wall_s
        self.counts[PLAN] += 1
        return expected(plan).wall_s

    def _add(self, folder: RunFolder) -> None:
        manifest = folder.manifest()
        took = manifest.took_s
        if manifest.engine != DEFAULT or not took:
            return
        self._hashes |= set(manifest.engine_hashes)
        for cell_id, seconds in took.items():
            if cell_id in manifest.cells:
                self._took_s.setdefault(manifest.cells[cell_id]["key"], []).append(seconds)
        names = (_base(str(manifest.scenario)), EVERY)
        for cell_id in _spread(sorted(took), SAMPLE):
            try:
                expected_s = expected(plans.parse(content_of(folder.cell(cell_id).plan))).wall_s
            except (OSError, PlanError):
                continue
            for name in names:
                before_s, known_s = self._paces.get(name, (0.0, 0.0))
                self._paces[name] = before_s + took[cell_id], known_s + expected_s


def _base(scenario: str) -> str:
    """A scenario without its variant: the variants have the same kinds of cells."""
    return scenario.partition(":")[0]


def _spread(names: list[str], most: int) -> Iterable[str]:
    """At most so many of the names, from everywhere among them."""
    return names if len(names) <= most else [names[number * len(names) // most] for number in range(most)]
