"""The one extension of runs that leave claims undecided: how many repeats more each needs, and what they cost.

docs/statistics.md has the rule. The samples of a check are imagined larger, with the mean, the spread and the share of
completed transfers that were measured, until it would be decided. The verdict is by the new cells alone: how many
there are follows from the values of the others, which must not count a second time (Cox 1975; Proschan & Hunsberger
1995).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from statistics import mode
from typing import Any

from scpslab.analysis.claims.evaluate import Outcome, Verdict, findings, places
from scpslab.analysis.claims.evidence import Evidence, EvidenceRow, same, scenario_of
from scpslab.analysis.claims.measured import Cells, Measurements
from scpslab.analysis.claims.model import Check, Operand
from scpslab.analysis.claims.scoreboard import band, deciding
from scpslab.analysis.output import NOTHING, Column, Report, Row, numbers
from scpslab.analysis.run import manifest_of
from scpslab.analysis.statistics import mean_of
from scpslab.plan import Plan
from scpslab.scenario import cells, planning
from scpslab.scenario.campaign import Entry, Member
from scpslab.scenario.model import axis_values
from scpslab.scenario.paths import read_override
from scpslab.scenario.planning import Cost

# With the repeats that just decide if the mean stays where it is, every second extension decides; with twice as many
# four of five do.
SAFETY = 2
# New repeats at the least, and at the most: a claim that needs more stays undecided.
LEAST, MOST = 5, 100
# A scenario has at most 10,000 repeats: nobody looks further.
LARGEST = 10_000 // SAFETY
HOUR_S = 3600


@dataclass(frozen=True)
class Need:
    """What an undecided claim needs: so many new repeats of what the entries of a campaign say.

    `one`: the cost of one of them.
    """

    verdict: Verdict
    repeats: int
    entries: tuple[Entry, ...]
    one: Cost


@dataclass(frozen=True)
class Imagined(Cells):
    """The cells as they would be with so many repeats, if the samples stayed alike."""

    repeats: int

    def sample(self, operand: Operand, metric: str | None) -> Measurements:
        """The values of an operand."""
        seen = super().sample(operand, metric)
        ended = self.repeats * len({row.point for row in self.rows(operand, metric)})
        completed, number = (round(ended * part / max(1, seen.ended)) for part in (seen.completed, len(seen.values)))
        return Measurements(alike(seen.values, number), completed, ended - completed)


def alike(values: Sequence[float], number: int) -> tuple[float, ...]:
    """So many values with the mean and the standard deviation of these; without spread where these are one."""
    mean = mean_of(values)
    pairs, odd = divmod(number, 2)
    away = (mean.sd or 0.0) * math.sqrt((number - 1) / (2 * pairs)) if pairs else 0.0
    return tuple((mean.mean or 0.0) + step for step in [-away, away] * pairs + [0.0] * odd)


def needs(verdicts: Iterable[Verdict], evidence: Evidence, wall_s: Callable[[str, Plan], float]) -> list[Need]:
    """What each undecided claim needs. `wall_s`: the seconds of a core that a plan of a scenario takes.

    Raises:
        ScenarioError: a scenario of the runs is not valid any more.
    """
    found = []
    for verdict in verdicts:
        rows: list[EvidenceRow] = []
        repeats = LEAST
        for result in verdict.results if verdict.outcome() is Outcome.UNDECIDED else ():
            check: Any = result.check
            at = [
                place
                for place, finding in zip(places(check, verdict.paper.file, evidence), result.findings, strict=True)
                if finding.outcome is Outcome.UNDECIDED and check.era == verdict.era
            ]
            metric = getattr(check, "metric", None)
            mine = [row for place in at for operand in check.operands() for row in place.rows(operand, metric)]
            repeats = max(repeats, SAFETY * enough(check, [replace(place, evidence=Evidence(mine)) for place in at]))
            rows += mine
        if rows:
            again = list(_again(rows, repeats, wall_s))
            entries, costs = zip(*again, strict=True)
            found.append(Need(verdict, repeats, entries, reduce(add, costs)))
    return found


def enough(check: Check, at: Sequence[Cells]) -> int:
    """Repeats with which a check would be decided everywhere, if the samples stayed alike; above LARGEST: none."""

    def decides(repeats: int) -> bool:
        imagined = [Imagined(place.file, place.evidence, place.at, repeats) for place in at]
        return not {Outcome.UNDECIDED, Outcome.NO_DATA} & {finding.outcome for finding in findings(check, imagined)}

    return bisect_left(range(LARGEST + 1), True, lo=2, key=decides)


def _again(
    rows: Sequence[EvidenceRow], repeats: int, wall_s: Callable[[str, Plan], float]
) -> Iterator[tuple[Entry, Cost]]:
    """So many repeats more of the points of the rows, and what one costs; as in the run that has most repeats of a
    point, for others may have had fewer probes.
    """
    runs: dict[object, list[Path]] = {}
    for row in rows:
        runs.setdefault(row.point, []).append(row.run)
    for run in dict.fromkeys(mode(of_point) for of_point in runs.values()):
        mine = [row for row in rows if mode(runs[row.point]) == run]
        manifest = manifest_of(run)
        name, _, variant = scenario_of(run).partition(":")
        file = str((run / manifest.file).resolve()) if manifest.file else name
        named = f"{file}:{variant}" if variant else file
        given = dict(map(read_override, manifest.settings))
        for axis, spec in Member.of(named, given).load().model.sweep.items():
            texts = {row.values.get(axis, "") for row in mine}
            kept = [value for value in axis_values(spec) if any(same(text, value) for text in texts)]
            if 0 < len(kept) < len(axis_values(spec)):
                given[f"sweep.{axis}"] = kept
        plans = planning.plans(cells(Member.of(named, {**given, "repeats": 1}).load()))
        given["repeats"] = repeats + max(int(row.values["repeat"]) for row in mine)
        entry = Entry(scenario=file, variant=(variant,) if variant else (), set=given)
        yield entry, Cost.of(plans.values(), partial(wall_s, name))


def affordable(found: Iterable[Need]) -> list[Need]:
    """Those that are extended."""
    return [need for need in found if need.repeats <= MOST]


def campaign(found: Iterable[Need]) -> dict[str, Any]:
    """The extension, as a campaign's file says it."""
    entries = (entry for need in affordable(found) for entry in need.entries)
    runs = [entry.model_dump(mode="json", exclude_defaults=True) for entry in entries]
    return {"kind": "campaign", "version": 1, "title": "More repeats for undecided claims", "runs": runs}


def report(found: Sequence[Need]) -> Report:
    """What each undecided claim needs; those last that stay undecided."""
    columns = [Column(name, folds=True) for name in ("undecided claim", "number [95 % interval]", "band")]
    more = affordable(found)
    rows: list[Row] = []
    for need in sorted(found, key=lambda need: need.repeats > MOST):
        verdict, number = need.verdict, need.repeats
        result, finding = deciding(verdict) or (verdict.results[0], verdict.results[0].deciding)
        size = [f"{number}", f"{number * need.one.cells}", f"{number * need.one.busy_s / HOUR_S:.2f}"]
        if number > SAFETY * LARGEST:
            size = [f"more than {SAFETY * LARGEST}", NOTHING, NOTHING]
        said = [f"{verdict.paper.name}/{verdict.claim.id}", finding.text, band(result.check)]
        rows.append(Row([*said, *size], begins_section=len(rows) == len(more)))
    total, busy_s = (sum(need.repeats * getattr(need.one, name) for need in more) for name in ("cells", "busy_s"))
    cost = f"at most {total} new cells, {busy_s / HOUR_S:.2g} hours of a core: what several need runs once"
    note = f"{len(more)} of {len(found)} undecided claims are extended ({cost}); more than {MOST} repeats are not run."
    return Report("", [*columns, *numbers("new repeats", "cells", "hours of a core")], rows, [note], [], {})
