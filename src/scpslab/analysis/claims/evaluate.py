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

from scpslab.analysis.claims.evidence import Evidence
from scpslab.analysis.claims.load import Paper
from scpslab.analysis.claims.model import Check, Claim, ClaimsFile, Completion, Era, Order, Trend
from scpslab.analysis.claims.numbers import NUMBERS, Measured
from scpslab.analysis.claims.relations import RELATIONS, Relation, decide
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
class Finding:
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
    findings: tuple[Finding, ...]

    @property
    def outcome(self) -> Outcome:
        """All combinations together."""
        return together(finding.outcome for finding in self.findings)

    @property
    def deciding(self) -> Finding:
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
        if era is None:
            return self.outcome("period") or self.outcome("modern")
        found = [result.outcome for result in self.results if result.check.era == era]
        return together(found) if found else None


def together(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of several things that must all hold."""
    found = set(outcomes)
    return next(outcome for outcome in DECIDES if outcome in found)


def evaluate(papers: Sequence[Paper], evidence: Evidence) -> list[Verdict]:
    """A verdict for every claim, in the order of the files."""
    return [
        Verdict(paper, claim, tuple(_result(check, paper.file, evidence) for check in claim.checks))
        for paper in papers
        for claim in paper.file.claims
    ]


def _result(check: Check, file: ClaimsFile, evidence: Evidence) -> CheckResult:
    combinations = [dict(zip(check.every, values, strict=True)) for values in itertools.product(*check.every.values())]
    if isinstance(check, Order | Trend):
        relations = [RELATIONS[check.kind](check, file, evidence, _as_tuples(at)) for at in combinations]
        return CheckResult(
            check,
            tuple(
                _relation_finding(check, *item) for item in zip(combinations, relations, decide(relations), strict=True)
            ),
        )
    return CheckResult(
        check,
        tuple(
            _number_finding(check, at, NUMBERS[check.kind](check, file, evidence, _as_tuples(at)))
            for at in combinations
        ),
    )


def _as_tuples(at: Mapping[str, AxisValue]) -> dict[str, tuple[AxisValue, ...]]:
    return {name: (value,) for name, value in at.items()}


def _number_finding(check: Check, at: Mapping[str, AxisValue], measured: Measured) -> Finding:
    if measured.estimate is None:
        return Finding(at, Outcome.NO_DATA, measured.text)
    number, low, high = measured.estimate.number, measured.estimate.low, measured.estimate.high
    # One repeat has no interval, so nobody knows how far the interval would reach.
    reaches = low is None or high is None or _overlaps(check, low, high)
    if measured.agrees or (_within(check, number) and _is_certain(check, low, high)):
        outcome = Outcome.REPRODUCED
    elif _within(check, number):
        outcome = Outcome.UNDECIDED
    elif check.different is not None and _within(check.different, number):
        outcome = Outcome.DIFFERENT
    else:
        outcome = Outcome.UNDECIDED if reaches else Outcome.NOT_REPRODUCED
    return Finding(at, outcome, measured.text, number, low, high)


def _relation_finding(
    check: Order | Trend, at: Mapping[str, AxisValue], relation: Relation, holds: bool | None
) -> Finding:
    if relation.missing:
        return Finding(at, Outcome.NO_DATA, relation.missing)
    if holds:
        outcome = Outcome.REPRODUCED
    elif check.different is not None and relation.number is not None and _within(check.different, relation.number):
        outcome = Outcome.DIFFERENT
    else:
        outcome = Outcome.UNDECIDED if holds is None else Outcome.NOT_REPRODUCED
    return Finding(at, outcome, relation.text, relation.number)


def _is_certain(check: Check, low: float | None, high: float | None) -> bool:
    """Whether the whole interval keeps to a band with one side: "more than" states a difference, and a difference must
    be certain.

    A band with two sides is a tolerance around the paper's number: only the mean must be inside. Completion is judged
    by its count.
    """
    if isinstance(check, Completion) or None not in (getattr(check, "at_least", None), getattr(check, "at_most", None)):
        return True
    return low is not None and high is not None and _within(check, low) and _within(check, high)


def _within(band: object, number: float) -> bool:
    low, high = getattr(band, "at_least", None), getattr(band, "at_most", None)
    return (low is None or number >= low) and (high is None or number <= high)


def _overlaps(band: object, low: float, high: float) -> bool:
    least, most = getattr(band, "at_least", None), getattr(band, "at_most", None)
    return (least is None or high >= least) and (most is None or low <= most)
