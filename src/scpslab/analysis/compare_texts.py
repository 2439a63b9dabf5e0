"""A comparison as a table for a person, as CSV and as JSON, and what a reader needs to know beside the numbers."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

from scpslab.analysis.compare import RATIO_DIGITS, SIGNIFICANT, Comparison, Differing, Key, Pair
from scpslab.analysis.effects import Method, least_rank_sum_p, least_signed_rank_p, needed
from scpslab.analysis.output import NOTHING, Column, Report, Row, numbers
from scpslab.analysis.statistics import Estimate, Mean
from scpslab.analysis.table import OF_PARTS, of_mixture, with_interval

FORMAT = 2
# So many settings that differ, or points, are named; --format json has all.
MOST_SETTINGS = 8
MOST_POINTS = 5
LONGEST_VALUE = 40
TESTS = {
    Method.MEANS: (
        "Student's test of pairs, Welch's of groups; means ± 95 % or (least to greatest), ratios of means with 95 %"
    ),
    Method.RANKS: (
        "Wilcoxon's exact tests of signed ranks (pairs) and of rank sums (groups); "
        "medians, differences and ratios by Hodges and Lehmann with 95 %"
    ),
}


def report(comparison: Comparison) -> Report:
    """The comparison as it is shown: certain differences are bold; the CSV has a line for each pair, the JSON also all
    settings that differ.
    """
    contrasts = list(dict.fromkeys(pair.sides for pair in comparison.pairs))
    has_many = len(contrasts) > 1
    first, second = contrasts[0] if comparison.axis is not None and len(contrasts) == 1 else ("first", "second")
    names = [*comparison.by, *(("first", "second") if has_many else ()), "metric"]
    sides = [f"of {name}" if has_many else name for name in (first, second)]
    columns = [*map(Column, names), *numbers(*sides, f"{second} - {first}", "ratio", "n", "p", "p (Holm)")]
    fields = [_fields(pair) for pair in comparison.pairs]
    notes = _notes(comparison)
    document = {
        "format": FORMAT,
        "sides": comparison.names,
        "axis": comparison.axis,
        "by": comparison.by,
        "test": comparison.options.test,
        "same_rows": comparison.is_same,
        "pairs": [
            {"axes": dict(zip(comparison.by, pair.key, strict=True)), **values}
            for pair, values in zip(comparison.pairs, fields, strict=True)
        ],
        "conditions": [asdict(item) for item in comparison.conditions],
        "notes": notes,
    }
    records: list[Sequence[object]] = [[*comparison.by, *(fields[0] if fields else ())]]
    records += [[*pair.key, *values.values()] for pair, values in zip(comparison.pairs, fields, strict=True)]
    rows = [_row(pair, comparison.options.test, has_sides=has_many) for pair in comparison.pairs]
    return Report(comparison.title, columns, rows, notes, records, document)


def _row(pair: Pair, test: Method, *, has_sides: bool) -> Row:
    cells = [*pair.key, *(pair.sides if has_sides else ()), pair.metric]
    cells += [_center(part, test) for part in (pair.first, pair.second)]
    cells += [_difference(pair.effect.difference, test), _bracketed(pair.effect.ratio, f".{RATIO_DIGITS}g")]
    cells += [_number(pair), "exact" if pair.is_exact else _p(pair.effect.p), _p(pair.p_holm)]
    return Row(cells, is_bold=pair.is_certain)


def _notes(comparison: Comparison) -> list[str]:
    """What a reader must know beside the numbers."""
    certain = sum(pair.is_certain for pair in comparison.pairs)
    tested = sum(pair.effect.p is not None for pair in comparison.pairs)
    certainty = f"{certain} of {tested} differences are certain: p below {SIGNIFICANT} after Holm's correction"
    notes = [
        f"{certainty} for {_counted(tested, 'comparison')}. {TESTS[comparison.options.test]}.",
        *_pairings(comparison),
        *_too_few(comparison, tested),
        *_missing(comparison),
        *_unfinished(comparison),
    ]
    which = "Both" if len(comparison.names) == 2 else "All"
    notes += [f"{which} runs have the same rows."] if comparison.is_same else []
    notes += of_mixture(comparison.pooled)
    notes += [f"only in {name}: {_points(comparison.by, keys)}" for name, keys in comparison.not_shared.items() if keys]
    left_out = ((name, names) for name, names in comparison.metrics_left_out.items() if names)
    notes += [f"not in every run: {', '.join(names)} of {name}" for name, names in left_out]
    return notes + list(_conditions(comparison.conditions))


def _fields(pair: Pair) -> dict[str, str | float | int | bool | None]:
    return {
        "first": pair.sides[0],
        "second": pair.sides[1],
        "metric": pair.metric,
        **{
            f"{name}_{key}": value
            for name, part in (("first", pair.first), ("second", pair.second))
            for key, value in (("n", part.n), ("mean", part.mean), ("median", _finite(part.median)))
        },
        "first_unfinished": pair.unfinished[0],
        "second_unfinished": pair.unfinished[1],
        "paired": pair.pairing.is_paired,
        "why": pair.pairing.why,
        **_ends("difference", "ci95", pair.effect.difference),
        **_ends("ratio", "ratio_ci95", pair.effect.ratio),
        "p": pair.effect.p,
        "p_holm": pair.p_holm,
        "least_p": pair.effect.least_p,
    }


def _ends(name: str, interval: str, estimate: Estimate | None) -> dict[str, float | None]:
    """An estimate as three fields, empty where there is none."""
    numbers = (estimate.number, estimate.low, estimate.high) if estimate else (None, None, None)
    return dict(zip((name, f"{interval}_low", f"{interval}_high"), numbers, strict=True))


def _pairings(comparison: Comparison) -> Iterator[str]:
    """At how many points cells are in pairs or not, and why."""
    points: dict[tuple[bool, str], list[Key]] = {}
    for (key, _), pairs in groupby(comparison.pairs, key=lambda pair: (pair.key, pair.sides)):
        pairing = next(pairs).pairing
        points.setdefault((pairing.is_paired, pairing.why), []).append(key)
    for (is_paired, why), keys in points.items():
        where = f" ({_points(comparison.by, tuple(dict.fromkeys(keys)))})" if len(points) > 1 else ""
        yield f"{'in pairs of one repeat' if is_paired else 'not in pairs'}{where}: {why}."
    if comparison.left_out_repeats:
        yield f"left out: {_counted(comparison.left_out_repeats, 'cell')} whose repeat the other side does not have."


def _too_few(comparison: Comparison, tested: int) -> Iterator[str]:
    """Comparisons that cannot be certain, whatever their values are."""
    exact = sum(pair.is_exact for pair in comparison.pairs)
    if exact:
        yield f"{_counted(exact, 'comparison')} exact: n 1, nothing is drawn, so that no chance is in the difference."
    untested = sum(pair.effect.p is None and min(pair.numbers) == 1 for pair in comparison.pairs) - exact
    if untested:
        yield (
            f"{_counted(untested, 'comparison')} with one value on a side and no p; expected at least two. Repeat more."
        )
    bounded = [pair for pair in comparison.pairs if pair.effect.least_p]
    hopeless = Counter((_number(pair), least) for pair in bounded if (least := pair.effect.least_p or 0) >= SIGNIFICANT)
    for (number, least), count in hopeless.items():
        yield (
            f"too few: with {number} the smallest possible p is {_p(least)}, so {_counted(count, 'comparison')} "
            "cannot be certain, whatever the values are."
        )
    known = [pair.effect.least_p for pair in comparison.pairs if pair.effect.least_p is not None]
    if min(known, default=0.0) * tested >= SIGNIFICANT:
        limit, paired = SIGNIFICANT / tested, {pair.pairing.is_paired for pair in bounded}
        wanted = [f"{needed(least_signed_rank_p, limit)} pairs"] if True in paired else []
        wanted += [f"{needed(lambda n: least_rank_sum_p(n, n), limit)} cells a side"] if False in paired else []
        advice = f"Take {' or '.join(wanted)}, or compare less (--metric, --by)."
        yield (
            f"too few: after correction for {_counted(tested, 'comparison')} no p can be below {SIGNIFICANT}. {advice}"
        )


def _missing(comparison: Comparison) -> Iterator[str]:
    """Sides that have no value of a metric."""
    missing: dict[tuple[str, str], list[Key]] = {}
    for pair in comparison.pairs:
        # In pairs both sides are empty when one of them is: the side cannot be told.
        empty = [name for name, n in zip(pair.sides, pair.numbers, strict=True) if not n]
        names = [" or ".join(pair.sides)] if pair.pairing.is_paired else empty
        for name in names if 0 in pair.numbers else ():
            missing.setdefault((pair.metric, name), []).append(pair.key)
    for (metric, name), keys in missing.items():
        yield f"no value of {metric} of {name}: {_points(comparison.by, tuple(dict.fromkeys(keys)))}"


def _unfinished(comparison: Comparison) -> Iterator[str]:
    """What is said of cells that ended without a value."""
    ranked = [pair for pair in comparison.pairs if any(pair.unfinished)]
    if ranked:
        yield (
            f"{_counted(len(ranked), 'comparison')} with transfers that did not finish: each ranks behind every "
            "finished one, nobody knows how far, so there is a p, and no difference or ratio."
        )
    if any(part.is_partial and part.n for pair in comparison.pairs for part in (pair.first, pair.second)):
        yield OF_PARTS


def _conditions(conditions: Sequence[Differing]) -> Iterator[str]:
    for (first, second), group in groupby(conditions, key=lambda item: (item.first, item.second)):
        items = list(group)
        yield f"conditions that differ between {first} and {second}:"
        for item in items[:MOST_SETTINGS]:
            where = f" (at {item.points} points)" if item.points else ""
            yield f"  {item.setting}: {_short(item.first_value)} -> {_short(item.second_value)}{where}"
        if len(items) > MOST_SETTINGS:
            yield f"  and {len(items) - MOST_SETTINGS} more (--format json has all)"


def of_axis(axis: str, value: str) -> str:
    """A value of an axis in a sentence: a name says itself what it is."""
    return value if value[:1].isalpha() else f"{axis} {value}"


def _points(by: Sequence[str], keys: Sequence[Key]) -> str:
    shown = "; ".join(", ".join(map(of_axis, by, key)) or "the whole run" for key in keys[:MOST_POINTS])
    return f"{shown}; and {len(keys) - MOST_POINTS} more" if len(keys) > MOST_POINTS else shown


def _short(value: str | None) -> str:
    text = "not there" if value is None else value
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _center(part: Mean, test: Method) -> str:
    if test is Method.MEANS or part.median is None:
        return with_interval(part)
    if _finite(part.median) is None:
        return "unfinished"
    return with_interval(Mean(part.n, part.median, None, None, is_partial=part.is_partial))


def _finite(number: float | None) -> float | None:
    """A number that CSV and JSON can have."""
    return number if number is not None and math.isfinite(number) else None


def _difference(estimate: Estimate | None, test: Method) -> str:
    if estimate is not None and test is Method.MEANS:
        half = None if estimate.high is None else estimate.high - estimate.number
        return with_interval(Mean(2, estimate.number, None, half))
    return _bracketed(estimate, ",.4g")


def _bracketed(estimate: Estimate | None, digits: str) -> str:
    if estimate is None:
        return NOTHING
    number = format(estimate.number, digits)
    if estimate.low is None or estimate.high is None:
        return number
    return f"{number} [{estimate.low:{digits}}, {estimate.high:{digits}}]"


def _number(pair: Pair) -> str:
    return _counted(pair.numbers[0], "pair") if pair.pairing.is_paired else f"{pair.numbers[0]} and {pair.numbers[1]}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _p(p: float | None) -> str:
    return NOTHING if p is None else f"{p:.2g}"
