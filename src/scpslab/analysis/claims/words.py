"""The words of a file of claims, held against the runs that it is tested on: what neither has would be "no data yet"
for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from scpslab.analysis.claims.evidence import Evidence, Row
from scpslab.analysis.claims.load import Paper
from scpslab.analysis.figures.source import axis_number
from scpslab.core.choices import one_of
from scpslab.documents import Complaint
from scpslab.scenario import names


def strange_words(paper: Paper, evidence: Evidence) -> Iterator[Complaint]:
    """Scenarios that do not exist, columns that the runs of a series do not have, and axes whose values are words."""
    beside = [path.stem for folder in paper.places.path.resolve().parents[:2] for path in folder.glob("*.yaml")]
    known = sorted({*names(), *beside, *(row.scenario for row in evidence.rows)})
    columns: dict[str, set[str]] = {}
    of_series: dict[str, list[Row]] = {}
    for name, series in paper.file.series.items():
        for number, pattern in enumerate(series.scenarios):
            if not any(fnmatchcase(scenario, pattern) for scenario in known):
                yield ("series", name, "scenarios", number), f'found "{pattern}"; {one_of(pattern, known)}'
        of_series[name] = [
            row for row in evidence.rows if any(fnmatchcase(row.scenario, pattern) for pattern in series.scenarios)
        ]
        columns[name] = {column for row in of_series[name] for column in row.values}
        yield from ((("series", name, "where", word), text) for word, text in _unknown(series.where, columns[name]))
    for index, claim in enumerate(paper.file.claims):
        for number, check in enumerate(claim.checks):
            metric, along = getattr(check, "metric", None), getattr(check, "along", None)
            at = ("claims", index, "checks", number)
            for operand in check.operands():
                words = [*check.every, *operand.at, *filter(None, [operand.metric or metric, along])]
                yield from ((at, text) for _, text in _unknown(words, columns[operand.series]))
                found = {row.values.get(along, "") for row in of_series[operand.series]} - {""} if along else set()
                if found and all(axis_number(text) is None for text in found):
                    said = f'found the axis "{along}", whose values are words such as "{min(found)}"; expected numbers'
                    yield at, f"{said}. Name another axis in `along`."


def _unknown(words: Iterable[str], columns: set[str]) -> Iterator[tuple[str, str]]:
    if columns:
        yield from ((word, f'found "{word}"; {one_of(word, sorted(columns))}') for word in words if word not in columns)
