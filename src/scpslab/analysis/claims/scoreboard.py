"""From claims and rows to verdicts: the outcome of each claim, with its number and interval; and the scoreboard:
outcomes counted by paper and era, and every claim as a line of a table, of csv or of json.

- reproduced: the number is in the band; for a band with one side, the whole interval is in it.
- different: the number is outside the band, but in the band of a deviation with a known reason.
- undecided: the number is in neither band, but its interval reaches into the band, or it has no interval (one repeat).
  More repeats would decide it.
- not reproduced: all other cases.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scpslab.analysis.claims.load import Paper
from scpslab.analysis.claims.measured import Cells, Evidence, Measured, decide, measure
from scpslab.analysis.claims.model import Check, Claim, ClaimsFile, Completion, Era, Order, Trend
from scpslab.analysis.output import Column, Document, Report, Row, nine_digits, numbers
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
            paper, claim, tuple(CheckResult(check, _findings(check, paper.file, evidence)) for check in claim.checks)
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
    differs = check.different is not None and estimate is not None and check.different.includes(estimate.number)
    if holds:
        outcome = Outcome.REPRODUCED
    elif differs and (isinstance(check, Order | Trend) or (estimate and not check.includes(estimate.number))):
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
    if measured.agrees is not False or estimate is None:
        return measured.agrees
    low, high = estimate.low, estimate.high
    if check.includes(estimate.number):
        is_tolerance = isinstance(check, Completion) or None not in (check.at_least, check.at_most)
        has_whole = low is not None and high is not None and check.includes(low) and check.includes(high)
        return True if is_tolerance or has_whole else None
    least, most = check.ends
    return None if low is None or high is None or (high >= least and low <= most) else False


FORMAT = 1
ERAS: tuple[Era, ...] = ("period", "modern")
STYLES = {
    Outcome.REPRODUCED: "green",
    Outcome.DIFFERENT: "cyan",
    Outcome.NOT_REPRODUCED: "red",
    Outcome.UNDECIDED: "yellow",
    Outcome.NO_DATA: "dim",
    Outcome.NOT_TESTABLE: "dim",
}
# A stack of today cannot reproduce what a paper says of another one: it can come to the same number.
TODAY = {Outcome.REPRODUCED: "holds", Outcome.DIFFERENT: "differs", Outcome.NOT_REPRODUCED: "does not hold"}
HEAD = "paper claim weight era outcome check check_outcome at number ci95_low ci95_high band paper_says text"


def scores(verdicts: Sequence[Verdict]) -> list[tuple[str, Counter[Outcome], Counter[Outcome]]]:
    """By paper, in the order of the verdicts: its title, and the number of its claims with each outcome under the
    paper's own settings (else today's), and under today's.
    """
    papers: dict[str, tuple[Counter[Outcome], Counter[Outcome]]] = {}
    for verdict in verdicts:
        own, today = papers.setdefault(verdict.paper.file.title, (Counter(), Counter()))
        if (outcome := verdict.outcome()) is not None:
            own[outcome] += 1
        if (outcome := verdict.outcome("modern")) not in (None, Outcome.NOT_TESTABLE):
            today[outcome] += 1
    return [(title, *counts) for title, counts in papers.items()]


def decided(verdicts: Sequence[Verdict]) -> int:
    """The number of claims that the runs decide: all except those without data, undecided or not testable."""
    of_runs = (Outcome.REPRODUCED, Outcome.DIFFERENT, Outcome.NOT_REPRODUCED)
    return sum(verdict.outcome() in of_runs for verdict in verdicts)


def band(check: Any) -> str:
    """The band for a check's number, or the relation between means that it asks for, in words."""
    low, high = getattr(check, "at_least", None), getattr(check, "at_most", None)
    if low is not None and high is not None:
        return f"{low:g}" if low == high else f"{low:g} to {high:g}"
    if low is not None:
        return f"at least {low:g}"
    if high is not None:
        return f"at most {high:g}"
    return f"{check.direction} with {check.along}" if check.kind == "trend" else "in this order"


def at_text(finding: CheckFinding) -> str:
    """The combination of values of a finding: "ber 1e-05, level 150"."""
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in finding.at.items()
    )


def subject(result: CheckResult) -> str:
    """The subject of a check: its kind, the metric, and the series."""
    check = result.check
    names = list(dict.fromkeys(operand.series for operand in check.operands()))
    parts = (check.kind, getattr(check, "metric", ""), f"({', '.join(names)})" if names else "")
    return " ".join(filter(None, parts))


def word(outcome: Outcome, era: Era) -> str:
    """The outcome of a check of an era in words."""
    return TODAY.get(outcome, outcome.value) if era == "modern" else outcome.value


def in_place(verdict: Verdict) -> str:
    """What the checks of today measure instead of what the paper's statement is about: "bbr instead of scps-rate"; ""
    for the same stacks, set as today.
    """
    today, paper = (_stacks(verdict, era) for era in ("modern", "period"))
    new, old = [name for name in today if name not in paper], [name for name in paper if name not in today]
    if not new:
        return ""
    return f"{' and '.join(new)} instead of {' and '.join(old) or 'what the paper measured'}"


def _stacks(verdict: Verdict, era: Era) -> list[str]:
    """The stacks whose cells the checks of an era look at, each once; the name of a series where its cells are chosen
    by something else.
    """
    series = [
        operand.series for result in verdict.results if result.check.era == era for operand in result.check.operands()
    ]
    found = [verdict.paper.file.series[name].where.get("stack", (name,)) for name in series]
    return list(dict.fromkeys(str(stack) for stacks in found for stack in stacks))


def by_paper(verdicts: Sequence[Verdict], notes: Sequence[str] = ()) -> Report:
    """Outcomes by paper, both eras."""
    outcomes = [Column(outcome.value, is_number=True, style=STYLES[outcome]) for outcome in Outcome]
    rows: list[Row] = []
    whole: Counter[Outcome] = Counter()
    for title, own, today in scores(verdicts):
        whole += own
        cells = [f"{own[item]}{f' ({today[item]})' if today[item] else ''}" for item in Outcome]
        rows.append(Row([title, *cells, str(own.total())]))
    if len(rows) > 1:
        sums = [str(whole[item]) for item in Outcome]
        rows.append(Row(["all", *sums, str(whole.total())], begins_section=True))
    heading = "Claims by paper: settings of the papers' time; in brackets, stacks of today in their place"
    columns = [Column("paper"), *outcomes, *numbers("claims")]
    return Report(heading, columns, rows, notes, _records(verdicts), _document(verdicts))


def by_claim(verdicts: Sequence[Verdict], notes: Sequence[str] = ()) -> Report:
    """Every claim with its outcomes and the number that decided."""
    names = ("claim", "period", "today", "number [95 % interval]", "band", "paper")
    columns = [Column(name, folds=True) for name in names]
    rows = [_row(verdict) for verdict in verdicts]
    return Report("", columns, rows, notes, _records(verdicts), _document(verdicts))


def _row(verdict: Verdict) -> Row:
    claim, decided_by = verdict.claim, deciding(verdict)
    outcomes = []
    for era in ERAS:
        outcome = verdict.outcome(era)
        is_known = outcome not in (None, Outcome.NO_DATA, Outcome.NOT_TESTABLE)
        stacks = in_place(verdict) if era == "modern" and is_known else ""
        shown = f"{word(outcome, era)}{f' ({stacks})' if stacks else ''}" if outcome else ""
        outcomes.append((shown, STYLES[outcome] if outcome else ""))
    number, wanted = (decided_by[1].text, band(decided_by[0].check)) if decided_by else (claim.not_testable or "", "")
    return Row([f"{verdict.paper.name}/{claim.id}", *outcomes, number, wanted, claim.paper])


def _records(verdicts: Sequence[Verdict]) -> list[Sequence[object]]:
    """A line for every finding of every check; for claims without checks, one line with the reason."""
    records: list[Sequence[object]] = [HEAD.split()]
    for verdict in verdicts:
        claim = verdict.claim
        named = [verdict.paper.name, claim.id, claim.weight]
        if claim.not_testable:
            records.append([*named, "", Outcome.NOT_TESTABLE, *[""] * 7, claim.paper, claim.not_testable])
        for result in verdict.results:
            era = result.check.era
            for finding in result.findings:
                judged = [era, verdict.outcome(era), subject(result), finding.outcome, at_text(finding)]
                digits = [nine_digits(number) for number in (finding.number, finding.low, finding.high)]
                records.append([*named, *judged, *digits, band(result.check), claim.paper, finding.text])
    return records


def _document(verdicts: Sequence[Verdict]) -> Document:
    claims = [
        {
            "paper": verdict.paper.name,
            "claim": verdict.claim.id,
            "weight": verdict.claim.weight,
            "says": verdict.claim.says,
            "paper_says": verdict.claim.paper,
            "outcomes": {era: outcome for era in ERAS if (outcome := verdict.outcome(era))},
            "not_testable": verdict.claim.not_testable,
            "checks": [
                {
                    "era": result.check.era,
                    "check": subject(result),
                    "band": band(result.check),
                    "because": getattr(result.check, "because", None),
                    "outcome": result.outcome,
                    "findings": [_in_json(finding) for finding in result.findings],
                }
                for result in verdict.results
            ],
        }
        for verdict in verdicts
    ]
    return {"format": FORMAT, "decided": decided(verdicts), "claims": claims}


def _in_json(finding: CheckFinding) -> Document:
    numbers = {"number": finding.number, "ci95_low": finding.low, "ci95_high": finding.high}
    finite = {name: one if one is not None and math.isfinite(one) else None for name, one in numbers.items()}
    return {"at": dict(finding.at), "outcome": finding.outcome, **finite, "text": finding.text}


def deciding(verdict: Verdict) -> tuple[CheckResult, CheckFinding] | None:
    """The check that the claim's outcome is from, and its finding."""
    for result in verdict.results:
        if result.check.era == verdict.era and result.outcome is verdict.outcome():
            return result, result.deciding
    return None
