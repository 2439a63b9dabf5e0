"""From claims and rows to verdicts: the outcome of each claim, with its number and interval.

- reproduced: the number is in the band; for a band with one side, the whole interval is in it.
- different: the number is outside the band, but in the band of a deviation with a known reason.
- undecided: the number is in neither band, but its interval reaches into the band, or it has no interval (one repeat).
  More repeats would decide it.
- not reproduced: all other cases.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scpslab.analysis.claims.evidence import Evidence
from scpslab.analysis.claims.load import Paper
from scpslab.analysis.claims.measured import Cells, Measured, decide, measure
from scpslab.analysis.claims.model import Check, Claim, ClaimsFile, Completion, Era, Order, Trend
from scpslab.documents.quantities import AxisValue


class Outcome(StrEnum):
    """The outcome of a claim, a check, or a check at one combination of values."""

    REPRODUCED = "reproduced"
    DIFFERENT = "different"
    NOT_REPRODUCED = "not reproduced"
    UNDECIDED = "undecided"
    NO_DATA = "no data yet"
    NOT_TESTABLE = "not testable"


# If several things must hold together, the first of these outcomes that one of them has decides.
DECIDES = (Outcome.NOT_REPRODUCED, Outcome.DIFFERENT, Outcome.UNDECIDED, Outcome.NO_DATA, Outcome.REPRODUCED)


@dataclass(frozen=True)
class CheckFinding:
    """A check at one combination of the values of `every`. `text` says number and interval, or what is missing."""

    at: Mapping[str, AxisValue]
    outcome: Outcome
    text: str
    number: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class CheckResult:
    """A check and its findings, combination by combination."""

    check: Check
    findings: tuple[CheckFinding, ...]

    @property
    def outcome(self) -> Outcome:
        """All combinations together."""
        return together(finding.outcome for finding in self.findings)

    @property
    def deciding(self) -> CheckFinding:
        """The combination that the outcome is from."""
        return next(finding for finding in self.findings if finding.outcome is self.outcome)


@dataclass(frozen=True)
class Verdict:
    """A claim with the results of its checks."""

    paper: Paper
    claim: Claim
    results: tuple[CheckResult, ...] = field(default=())

    def outcome(self, era: Era | None = None) -> Outcome | None:
        """The claim's outcome under the settings of an era (None: the paper's own, else today's); None if it has no
        check of that era.
        """
        if self.claim.not_testable:
            return Outcome.NOT_TESTABLE
        outcomes = [result.outcome for result in self.results if result.check.era == (era or self.era)]
        return together(outcomes) if outcomes else None

    @property
    def era(self) -> Era:
        """The era whose checks decide the claim: the paper's own, else today's."""
        return "period" if any(result.check.era == "period" for result in self.results) else "modern"


def together(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of several things that must all hold."""
    different = set(outcomes)
    return next(outcome for outcome in DECIDES if outcome in different)


def evaluate(papers: Sequence[Paper], evidence: Evidence) -> list[Verdict]:
    """A verdict for every claim, in the order of the files."""
    return [
        Verdict(
            paper,
            claim,
            tuple(CheckResult(check, _findings(check, paper.file, evidence)) for check in claim.checks),
        )
        for paper in papers
        for claim in paper.file.claims
    ]


def _findings(check: Check, file: ClaimsFile, evidence: Evidence) -> tuple[CheckFinding, ...]:
    """What a check finds for each combination of the values of `every`."""
    combinations = itertools.product(*([(name, (value,)) for value in values] for name, values in check.every.items()))
    places = [Cells(file, evidence, dict(at)) for at in combinations]
    measured = [measure(check, cells) for cells in places]
    return tuple(map(_finding, itertools.repeat(check), places, measured, decide(measured)))


def _finding(check: Check, cells: Cells, measured: Measured, rises: bool | None) -> CheckFinding:
    """`rises`: whether the means of a relation do."""
    at = {name: value for name, (value,) in cells.at.items()}
    if measured.is_missing:
        return CheckFinding(at, Outcome.NO_DATA, measured.text)
    estimate = measured.estimate
    holds = rises if isinstance(check, Order | Trend) else _holds(check, measured)
    if holds:
        outcome = Outcome.REPRODUCED
    elif (
        check.different is not None
        and estimate is not None
        and check.different.includes(estimate.number)
        and (isinstance(check, Order | Trend) or not check.includes(estimate.number))
    ):
        outcome = Outcome.DIFFERENT
    else:
        outcome = Outcome.UNDECIDED if holds is None else Outcome.NOT_REPRODUCED
    if estimate is None:
        return CheckFinding(at, outcome, measured.text)
    return CheckFinding(at, outcome, measured.text, estimate.number, estimate.low, estimate.high)


def _holds(check: Any, measured: Measured) -> bool | None:
    """Whether the number is in the check's band; None if more repeats would decide it.

    "More than" states a difference, and a difference must be certain: the whole interval keeps to a band with one side.
    A band with two sides is a tolerance around the paper's number: only the mean must be inside. Completion is judged
    by its count. One repeat has no interval, so nobody knows how far the interval would reach.
    """
    estimate = measured.estimate
    if measured.agrees or estimate is None:
        return measured.agrees
    low, high = estimate.low, estimate.high
    if check.includes(estimate.number):
        is_tolerance = isinstance(check, Completion) or None not in (check.at_least, check.at_most)
        has_whole = low is not None and high is not None and check.includes(low) and check.includes(high)
        return True if is_tolerance or has_whole else None
    least, most = check.ends
    return None if low is None or high is None or (high >= least and low <= most) else False
