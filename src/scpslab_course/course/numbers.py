"""What formulas may read: the parameters of a variant in base units, and the results of its runs (rows of results.csv by scenario).

Functions of results name the scenario, a column of results.csv, and the cells by `axis=value`: mean("transfer", "goodput_bps", "stack=cubic"). Only
completed cells count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from scpslab.core import units
from scpslab.core.choices import one_of
from scpslab.documents.quantities import AxisValue
from scpslab_course.course.expression import MATHEMATICS, FormulaError, Function, Value

Row = Mapping[str, str]
Rows = Mapping[str, Sequence[Row]]
NANOSECONDS = 10**9
# Functions whose first argument is a scenario; the second of most is a column.
OF_RESULTS = ("best", "cells", "completed", "highest", "lowest", "mean", "nth", "total", "worst")
NAMES = (*MATHEMATICS, *OF_RESULTS, "drawn")


def base_value(value: AxisValue) -> Value:
    """A parameter in a formula: a quantity in bit/s, s or bytes, another number as it is, and any other text as text."""
    if isinstance(value, str):
        kind = kind_of(value)
        if kind is None:
            return value
        number = units.parse(kind, value)
        return number / NANOSECONDS if kind == "duration" else float(number)
    return float(value)


def kind_of(text: str) -> str | None:
    """The kind of quantity that a text is: rate, duration or size; None for any other text."""
    for kind in units.KINDS:
        try:
            units.parse(kind, text)
        except units.UnitError:
            continue
        return kind
    return None


def functions(rows: Rows, drawn: Mapping[str, AxisValue]) -> dict[str, Function]:
    """The functions of formulas over these results and this variant."""

    def taken(scenario: Value, where: tuple[Value, ...]) -> list[Row]:
        return _cells(rows, scenario, where)

    def over(reduce: Callable[[Sequence[float]], float]) -> Function:
        return lambda scenario, column, *where: reduce(_numbers(taken(scenario, where), scenario, column, where))

    def along(choose: Callable[..., str]) -> Function:
        def found(scenario: Value, column: Value, axis: Value, *where: Value) -> Value:
            values = list(dict.fromkeys(row.get(str(axis), "") for row in taken(scenario, where)))
            means = {value: _mean(_numbers(taken(scenario, (*where, f"{axis}={value}")), scenario, column, where)) for value in values}
            return choose(means, key=means.__getitem__)

        return found

    def nth(scenario: Value, column: Value, number: Value, *where: Value) -> Value:
        words = [word for row in taken(scenario, where) for word in row.get(str(column), "").split()]
        if isinstance(number, str) or not 1 <= number <= len(words):
            raise FormulaError(f"found no word {number} among the {len(words)} of {column} in {scenario}; expected a number from 1 to {len(words)}")
        return words[int(number) - 1]

    def text_of(name: Value) -> Value:
        if name not in drawn:
            raise FormulaError(f'found drawn("{name}"); {one_of(name, drawn)}')
        return str(drawn[str(name)])

    return {
        **MATHEMATICS,
        "mean": over(_mean),
        "total": over(sum),
        "lowest": over(min),
        "highest": over(max),
        "best": along(max),
        "worst": along(min),
        "nth": nth,
        "cells": lambda scenario, *where: float(len(taken(scenario, where))),
        "completed": lambda scenario, *where: float(sum(row.get("status") == "completed" for row in taken(scenario, where))),
        "drawn": text_of,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _cells(rows: Rows, scenario: Value, where: tuple[Value, ...]) -> list[Row]:
    if scenario not in rows:
        raise FormulaError(f'found the scenario "{scenario}" without results; {one_of(scenario, rows)}')
    found = list(rows[str(scenario)])
    for condition in where:
        axis, equals, value = str(condition).partition("=")
        if not equals or (found and axis not in found[0]):
            known = list(rows[str(scenario)][0])[:12] if rows[str(scenario)] else []
            raise FormulaError(f'found the condition "{condition}"; expected AXIS=VALUE with an axis of {scenario}, such as {", ".join(known)}')
        found = [row for row in found if _same(row[axis], value)]
    if not found:
        raise FormulaError(f"found no cell of {scenario} with {' and '.join(map(str, where))}; expected at least one")
    return found


def _numbers(found: Sequence[Row], scenario: Value, column: Value, where: tuple[Value, ...]) -> list[float]:
    if str(column) not in found[0]:
        raise FormulaError(f'found no column "{column}" in the results of {scenario}; {one_of(column, found[0])}')
    texts = [row[str(column)] for row in found if row.get("status") == "completed" and row[str(column)] != ""]
    try:
        numbers = [float(text) for text in texts]
    except ValueError as error:
        raise FormulaError(f'found "{texts[0]}" in column {column} of {scenario}; expected a column of numbers') from error
    if not numbers:
        raise FormulaError(f"found no completed cell of {scenario} {' and '.join(map(str, where))} with {column}; expected at least one".replace("  ", " "))
    return numbers


def _same(found: str, wanted: str) -> bool:
    if found == wanted:
        return True
    try:
        return float(found) == float(wanted)
    except ValueError:
        return False
