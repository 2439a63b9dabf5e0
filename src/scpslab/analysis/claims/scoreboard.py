"""The scoreboard: outcomes counted by paper and era, and every claim as a line of a table, of csv or of json."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from scpslab.analysis.claims.evaluate import CheckResult, Finding, Outcome, Verdict
from scpslab.analysis.claims.model import Era
from scpslab.analysis.csv_text import csv_text

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
COLUMNS = (
    "paper",
    "claim",
    "weight",
    "era",
    "outcome",
    "check",
    "check_outcome",
    "at",
    "number",
    "ci95_low",
    "ci95_high",
    "band",
    "paper_says",
    "text",
)


@dataclass(frozen=True)
class Score:
    """The number of claims of a paper with each outcome, under the settings of an era (None: the paper's own, else
    today's).
    """

    title: str
    era: Era | None
    counts: dict[Outcome, int]

    @property
    def total(self) -> int:
        """Claims counted."""
        return sum(self.counts.values())


def scores(verdicts: Sequence[Verdict], era: Era | None = None) -> list[Score]:
    """One score per paper, in the order of the verdicts."""
    counts: dict[str, dict[Outcome, int]] = {}
    for verdict in verdicts:
        mine = counts.setdefault(verdict.paper.file.title, dict.fromkeys(Outcome, 0))
        outcome = verdict.outcome(era)
        if outcome is not None and (era != "modern" or outcome is not Outcome.NOT_TESTABLE):
            mine[outcome] += 1
    return [Score(title, era, mine) for title, mine in counts.items()]


def decided(verdicts: Sequence[Verdict]) -> int:
    """The number of claims that the runs decide: all except those without data, undecided or not testable."""
    return sum(
        verdict.outcome() in (Outcome.REPRODUCED, Outcome.DIFFERENT, Outcome.NOT_REPRODUCED) for verdict in verdicts
    )


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


def at_text(finding: Finding) -> str:
    """The combination of values of a finding: "ber 1e-05, level 150"."""
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in finding.at.items()
    )


def subject(result: CheckResult) -> str:
    """The subject of a check: its kind, the metric, and the series."""
    check = result.check
    names = list(dict.fromkeys(operand.series for operand in check.operands()))
    return " ".join(
        [
            check.kind,
            *([check.metric] if hasattr(check, "metric") else []),
            *([f"({', '.join(names)})"] if names else []),
        ]
    )


def word(outcome: Outcome, era: Era) -> str:
    """The outcome of a check of an era in words."""
    return TODAY.get(outcome, outcome.value) if era == "modern" else outcome.value


def in_place(verdict: Verdict) -> str:
    """What the checks of today measure in place of what the paper's statement is about: "bbr in place of scps-rate"; ""
    for the same stacks, set as today.
    """
    today, paper = (_stacks(verdict, era) for era in ("modern", "period"))
    new, old = [name for name in today if name not in paper], [name for name in paper if name not in today]
    if not new:
        return ""
    return f"{' and '.join(new)} in place of {' and '.join(old) or 'what the paper measured'}"


def _stacks(verdict: Verdict, era: Era) -> list[str]:
    """The stacks whose cells the checks of an era look at, each once; the name of a series where its cells are chosen
    by something else.
    """
    series = [
        operand.series for result in verdict.results if result.check.era == era for operand in result.check.operands()
    ]
    found = [verdict.paper.file.series[name].where.get("stack", (name,)) for name in series]
    return list(dict.fromkeys(str(stack) for stacks in found for stack in stacks))


def as_table(verdicts: Sequence[Verdict]) -> Table:
    """Outcomes by paper, both eras."""
    table = Table(
        title="Claims by paper: settings of the papers' time; in brackets, stacks of today in their place",
        title_justify="left",
        header_style="bold",
    )
    table.add_column("paper")
    for outcome in Outcome:
        table.add_column(outcome.value, justify="right", style=STYLES[outcome])
    table.add_column("claims", justify="right")
    totals: list[list[int]] = []
    for own, today in zip(scores(verdicts), scores(verdicts, "modern"), strict=True):
        row = [*own.counts.values(), own.total]
        totals.append(row)
        cells = [
            f"{count}" + (f" ({today.counts[outcome]})" if today.counts[outcome] else "")
            for outcome, count in own.counts.items()
        ]
        table.add_row(own.title, *cells, str(own.total))
    if len(totals) > 1:
        table.add_section()
        table.add_row("all", *(str(sum(column)) for column in zip(*totals, strict=True)))
    return table


def as_list(verdicts: Sequence[Verdict]) -> Table:
    """Every claim with its outcomes and the number that decided."""
    table = Table(header_style="bold", show_lines=False)
    for name in ("claim", "period", "today", "number [95 % interval]", "band", "paper"):
        table.add_column(name, overflow="fold")
    for verdict in verdicts:
        shown = _deciding(verdict)
        coloured = [
            Text(word(outcome, era), STYLES[outcome]) if (outcome := verdict.outcome(era)) else Text("") for era in ERAS
        ]
        if verdict.outcome("modern") not in (None, Outcome.NO_DATA, Outcome.NOT_TESTABLE) and (
            said := in_place(verdict)
        ):
            coloured[1].append(f" ({said})")
        # Text and no string: a table reads brackets in strings as styles.
        number = Text(shown[1].text if shown else verdict.claim.not_testable or "")
        table.add_row(
            f"{verdict.paper.name}/{verdict.claim.id}",
            *coloured,
            number,
            band(shown[0].check) if shown else "",
            verdict.claim.paper,
        )
    return table


def as_csv(verdicts: Sequence[Verdict]) -> str:
    """One line for every finding of every check; for claims without checks, one line with the reason."""
    rows: list[Iterable[object]] = [COLUMNS]
    for verdict in verdicts:
        claim = verdict.claim
        if claim.not_testable:
            rows.append(
                [
                    verdict.paper.name,
                    claim.id,
                    claim.weight,
                    "",
                    Outcome.NOT_TESTABLE,
                    *[""] * 7,
                    claim.paper,
                    claim.not_testable,
                ]
            )
        for result in verdict.results:
            era = result.check.era
            for finding in result.findings:
                numbers = [_plain(number) for number in (finding.number, finding.low, finding.high)]
                told = [
                    subject(result),
                    finding.outcome,
                    at_text(finding),
                    *numbers,
                    band(result.check),
                    claim.paper,
                    finding.text,
                ]
                rows.append([verdict.paper.name, claim.id, claim.weight, era, verdict.outcome(era), *told])
    return csv_text(rows)


def as_json(verdicts: Sequence[Verdict]) -> str:
    """The same as one JSON object."""
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
                    "findings": [_finding(finding) for finding in result.findings],
                }
                for result in verdict.results
            ],
        }
        for verdict in verdicts
    ]
    return json.dumps({"format": FORMAT, "decided": decided(verdicts), "claims": claims}, indent=1) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    numbers = {"number": finding.number, "ci95_low": finding.low, "ci95_high": finding.high}
    finite = {
        name: number if number is not None and abs(number) < float("inf") else None for name, number in numbers.items()
    }
    return {"at": dict(finding.at), "outcome": finding.outcome, **finite, "text": finding.text}


def _deciding(verdict: Verdict) -> tuple[CheckResult, Finding] | None:
    """The check that the claim's outcome is from, and its finding."""
    era = "period" if verdict.outcome("period") else "modern"
    for result in verdict.results:
        if result.check.era == era and result.outcome is verdict.outcome():
            return result, result.deciding
    return None


def _plain(number: float | None) -> str:
    return "" if number is None else f"{number:.9g}"
