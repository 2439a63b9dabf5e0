"""The form of a file of claims (analysis/claims/*.yaml): findings of a paper, each bound to cells of results.csv by
machine checks.

A check has a kind. All kinds but two give one number, and the check states a band for it with a reason; `order` and
`trend` compare means.
"""

import itertools
import math
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from scpslab.core.problems import UnfitError
from scpslab.documents.parts import Band, Part, Spelt, Version, key
from scpslab.documents.quantities import PAIR, AxisValue, OneOrMore, as_several

NAME = Spelt(r"^[a-z0-9][a-z0-9-]{0,59}$", "a name: small letters, digits and -, the first one no -, 60 at most")
Name = Annotated[str, NAME]
Text = Annotated[str, Field(min_length=3)]
Era = Literal["period", "modern"]
# The keys of checks that name cells.
OPERANDS = ("of", "to", "minus", "rising")
# A file with more combinations of `every`, or a paper with more transfers, is a slip of the pen.
MOST_COMBINATIONS, MOST_TRANSFERS = 1000, 100_000


def _as_operand(value: Any) -> Any:
    return {"series": value} if isinstance(value, str) else value


class Series(Part):
    """Cells that belong together: cells of some scenarios whose columns have these values.

    Attributes:
        scenarios: Names of scenarios, without a variant; * stands for anything.
        where: From each column of results.csv to its value, or a list of values.
    """

    scenarios: Annotated[tuple[str, ...], Field(min_length=1)] = key(example=["fy97/fig04"])
    where: dict[str, OneOrMore] = key({}, example={"stack": "scps-rate"})

    def has(self, scenario: str) -> bool:
        """Whether a scenario is one of these."""
        return any(fnmatchcase(scenario, pattern) for pattern in self.scenarios)


class Operand(Part):
    """Cells of a series over which a check takes a mean.

    Attributes:
        series: A name under `series`.
        at: Further columns and their values.
        metric: A column of results.csv, if it differs from the check's.
    """

    series: Name = key(example="tp-1400")
    at: dict[str, OneOrMore] = key({}, example={"ber": 0})
    metric: str | None = key(None, example="rtt_max_s")


# One operand, or the name of a series for all of its cells.
Cells = Annotated[Operand, BeforeValidator(_as_operand)]
Several = Annotated[tuple[Cells, ...], BeforeValidator(as_several), Field(min_length=1)]


class Otherwise(Band):
    """A result that differs from the paper's for a known reason: its band, and the reason.

    Attributes:
        because: Why our result differs.
    """

    because: Text = key(example="A window of the whole path instead of 64 KiB.")


class _Check(Part):
    """The keys of every check. `every` repeats the check for all combinations of values; all must hold.

    Attributes:
        era: Settings of the paper's time, or of today.
        every: Columns and the values at which the check is repeated.
        different: A known deviation from the paper.
    """

    era: Era = key("period", example="modern")
    every: dict[str, Annotated[tuple[AxisValue, ...], Field(min_length=1)]] = key({}, example={"ber": [0, 1e-6]})
    different: Otherwise | None = key(None)

    @model_validator(mode="after")
    def _can_be_counted(self) -> Self:
        if (count := math.prod(map(len, self.every.values()))) > MOST_COMBINATIONS:
            raise UnfitError(f"{count} combinations of values in `every`", f"at most {MOST_COMBINATIONS}")
        return self

    def operands(self) -> tuple[Operand, ...]:
        """All cells that the check looks at."""
        named = (getattr(self, name, ()) for name in OPERANDS)
        several = ((cells,) if isinstance(cells, Operand) else cells for cells in named)
        return tuple(itertools.chain.from_iterable(several))


class _Banded(Band, _Check):
    """A check of one number against a band.

    Attributes:
        because: The reason for the band's width.
    """

    because: Text = key(example="Header sizes and framing are not stated.")

    @model_validator(mode="after")
    def _differs_outside(self) -> Self:
        if self.different is not None and all(map(self.includes, self.different.ends)):
            raise UnfitError("the band of `different` inside the check's own", "numbers that are not in it")
        return self


class Value(_Banded):
    """The mean of a metric.

    Attributes:
        metric: A column of results.csv.
    """

    kind: Literal["value"]
    metric: str = key(example="throughput_report_pct")
    of: Cells


class Ratio(_Banded):
    """A mean divided by a mean.

    If a side names several operands, their product counts, which gives a ratio of ratios.

    Attributes:
        metric: A column of results.csv.
    """

    kind: Literal["ratio"]
    metric: str = key(example="transfer_s")
    of: Several
    to: Several


class Difference(_Banded):
    """A mean minus a mean.

    If a side names several operands, their sum counts, which gives a difference of differences.

    Attributes:
        metric: A column of results.csv.
    """

    kind: Literal["difference"]
    metric: str = key(example="transfer_s")
    of: Several
    minus: Several


class Spread(_Banded):
    """The coefficient of variation of a metric: standard deviation over mean.

    Attributes:
        metric: A column of results.csv.
    """

    kind: Literal["spread"]
    metric: str = key(example="transfer_s")
    of: Cells


class Completion(_Banded):
    """The share of completed transfers in percent, with its exact interval; Fisher's exact test compares it with a
    paper's count.

    Attributes:
        paper_count: The paper's numbers of completed and of tried transfers.
    """

    kind: Literal["completion"]
    of: Cells
    paper_count: Annotated[tuple[int, int], PAIR] | None = key(None, example=[8, 10])

    @model_validator(mode="after")
    def _counts(self) -> Self:
        completed, tried = self.paper_count or (0, 1)
        if not (0 <= completed <= tried <= MOST_TRANSFERS and tried > 0):
            expected = f"completed of tried transfers, of at most {MOST_TRANSFERS}, such as [8, 10]"
            raise UnfitError(f"the paper_count {completed} of {tried}", expected)
        return self


class Crossover(_Banded):
    """The value of an axis from which on the ratio of two means stays at or above a threshold; interpolated on a
    logarithmic axis.

    Attributes:
        metric: A column of results.csv.
        along: The axis.
        ratio: The threshold.
    """

    kind: Literal["crossover"]
    metric: str = key(example="throughput_report_pct")
    along: str = key(example="rate")
    of: Cells
    to: Cells
    ratio: Annotated[float, Field(gt=0)] = key(example=1.25)


class Arithmetic(_Banded):
    """A number that follows from other numbers of the paper; needs no run.

    Attributes:
        multiply: Factors.
        divide: Divisors.
    """

    kind: Literal["arithmetic"]
    multiply: Annotated[tuple[float, ...], Field(min_length=1)] = key(example=[2e6, 0.01])
    divide: tuple[float, ...] = key((), example=[8])

    @property
    def number(self) -> float:
        """The product over the product."""
        return math.prod(self.multiply) / math.prod(self.divide)

    @model_validator(mode="after")
    def _is_a_number(self) -> Self:
        below = math.prod(self.divide)
        if not below or not math.isfinite(below) or not math.isfinite(self.number):
            what = "a number too large to count with" if below else "a product of 0 in `divide`"
            raise UnfitError(what, "factors and divisors that give a finite number")
        return self


class Order(_Check):
    """Means that rise from each operand to the next, by Welch's test with Holm's correction.

    Attributes:
        metric: A column of results.csv.
    """

    kind: Literal["order"]
    metric: str = key(example="transfer_s")
    rising: Annotated[tuple[Cells, ...], Field(min_length=2)]


class Trend(_Check):
    """Means that rise or fall along an axis: Welch's test confirms no step in the other direction, and confirms that
    the ends differ.

    Attributes:
        metric: A column of results.csv.
        along: The axis.
    """

    kind: Literal["trend"]
    metric: str = key(example="transfer_s")
    of: Cells
    along: str = key(example="ber")
    direction: Literal["rising", "falling"]


Check = Annotated[
    Value | Ratio | Difference | Spread | Completion | Crossover | Arithmetic | Order | Trend,
    Field(discriminator="kind"),
]


class Claim(Part):
    """One finding of a paper, in our words, with its checks; or the reason why it cannot be tested.

    Attributes:
        id: Unique within the paper.
        weight: The weight of the finding in the paper.
        source: The place in the paper.
        says: The finding.
        paper: The paper's number, with its unit.
        why: The explanation, in plain language.
        figure: The figure recipe that shows it.
        checks: The tests of the finding.
        not_testable: The reason why the finding cannot be tested.
    """

    id: Name = key(example="fig04-tp-clean")
    weight: Literal["headline", "supporting", "context"] = key(example="headline")
    source: Text = key(example="3.1.5.1, Fig 4")
    says: Text = key(example="SCPS-TP fills 93 % of the link.")
    paper: str = key("", example="93 %")
    why: str = key("", example="Nothing but headers is in the way.")
    figure: str | None = key(None, example="fy97-fig04")
    checks: tuple[Check, ...] = key(())
    not_testable: str | None = key(None, example="The claim is a hope.")

    @model_validator(mode="after")
    def _is_tested_or_not(self) -> Self:
        if bool(self.checks) == bool(self.not_testable):
            raise UnfitError("neither or both of checks and not_testable", "one of them")
        return self


class ClaimsFile(Part):
    """All findings of one paper.

    Attributes:
        title: Short name of the paper.
        year: Year of publication; papers are listed in this order.
        reference: Authors, title, year.
        series: Names for cells that several checks look at.
    """

    kind: Literal["claims"]
    version: Version
    title: Text = key(example="MITRE FY97")
    year: int = key(example=1998, least=1, most=9999)
    reference: Text
    series: dict[Name, Series] = key({})
    claims: Annotated[tuple[Claim, ...], Field(min_length=1)]


class Contradiction(Part):
    """Claims that cannot all hold, and the probable reason.

    Attributes:
        title: The question in dispute.
        says: What each paper finds.
        likely: The probable reason for the difference.
        claims: The claims, as PAPER/ID.
    """

    title: Text = key(example="Does delay out to geostationary orbit cost anything?")
    says: Text = key(example="SmallSat 2000 finds no penalty, JZUS 2005 a significant one.")
    likely: Text = key(example="The response to loss.")
    claims: Annotated[tuple[str, ...], Field(min_length=1)] = key(example=["smallsat2000/delay-3-vs-120-same"])


class ContradictionsFile(Part):
    """All contradictions between or within the papers (analysis/contradictions.yaml)."""

    kind: Literal["contradictions"]
    version: Version
    contradictions: tuple[Contradiction, ...]
