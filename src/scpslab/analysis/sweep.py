"""The order in which a scenario names the values of its axes: tables, legends and figures follow it. Rows of
results.csv stand in the order of texts and numbers, which needs no scenario.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scpslab.analysis.run import natural
from scpslab.analysis.statistics import ResultRow
from scpslab.core.errors import ScenarioError
from scpslab.core.problems import UnfitError
from scpslab.documents.quantities import value_text
from scpslab.documents.yaml_lines import read_value, text_of
from scpslab.runs import RunFolder


def in_order(run: RunFolder, axes: Sequence[str], rows: Sequence[ResultRow]) -> tuple[ResultRow, ...]:
    """The rows in the order of the scenario's sweep, the first axis slowest; values that it does not name come behind
    the others. As they are where the run has no scenario that can be read.
    """
    places = {axis: values for axis, values in _places(run).items() if axis in axes}
    if not places:
        return tuple(rows)

    def key(row: ResultRow) -> list[tuple[Any, ...]]:
        return [_place(places.get(axis, {}), row[axis]) for axis in axes]

    return tuple(sorted(rows, key=key))


def _place(values: dict[str | float, int], text: str) -> tuple[Any, ...]:
    at = values.get(text, values.get(_number(text), -1))
    return (1, natural(text)) if at < 0 else (0, at)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _places(run: RunFolder) -> dict[str, dict[str | float, int]]:
    """The places of the values of each axis, by their texts, and by what these are as numbers."""
    if not run.resolved.is_file():
        return {}
    try:
        fields = read_value(text_of(run.resolved, "the scenario that was run"))
    except (ScenarioError, UnfitError):
        return {}
    sweep = fields.get("sweep") if isinstance(fields, dict) else None
    found: dict[str, dict[str | float, int]] = {}
    for axis, spec in sweep.items() if isinstance(sweep, dict) else ():
        values = (spec.get("cases") or spec.get("values") or ()) if isinstance(spec, dict) else ()
        texts = [value_text(value) for value in values] if isinstance(values, dict | list | tuple) else []
        found[axis] = {name: place for place, text in enumerate(texts) for name in (text, _number(text))}
    return found
