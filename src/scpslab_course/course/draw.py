"""Draws a student's parameters from the course's secret.

No clocks and no files: the same secret and names give the same values for ever (decision 0702).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from scpslab.core import units
from scpslab.documents.quantities import AxisValue
from scpslab_course.course.formulas import NAMES, NANOSECONDS, FormulaError, base_value, functions, kind_of, parse
from scpslab_course.course.model import Choice, Formula, Parameter, Range, Seed

LARGEST_SEED = 999_999_999
MOST_VALUES = 1_000_000
QUANTITY_OF = {"bit/s": "rate", "s": "duration", "B": "size"}


class DrawError(ValueError):
    """A parameter from which no value can be drawn; the message says what was found and expected.

    `name`: which one, if the draw was of several.
    """

    def __init__(self, said: str, name: str = "") -> None:
        super().__init__(said)
        self.name = name


@dataclass(frozen=True)
class Whose:
    """The name under which a variant is drawn: a student's, or `group/NAME`."""

    term: str
    assignment: str
    student: str


def drawn(secret: bytes, whose: Whose, parameters: Mapping[str, Parameter], attempt: int) -> dict[str, AxisValue]:
    """A value for every parameter.

    Raises:
        DrawError: a range or a formula without values.
    """
    values: dict[str, AxisValue] = {}
    for name, parameter in parameters.items():
        if isinstance(parameter, Formula):
            values[name] = _computed(name, parameter, values)
            continue
        said = json.dumps([whose.term, whose.assignment, whose.student, name, attempt], ensure_ascii=False)
        number = int.from_bytes(hmac.digest(secret, said.encode(), hashlib.sha256))
        values[name] = value_at(parameter, number % count_of(parameter))
    return values


def count_of(parameter: Choice | Range | Seed) -> int:
    """The number of values that can be drawn.

    Raises:
        DrawError: none, or too many.
    """
    match parameter:
        case Choice(values=values):
            return len(values)
        case Seed():
            return LARGEST_SEED
    first, last, step, _ = _bounds(parameter)
    if step <= 0 or last < first:
        raise DrawError(
            f"found from {parameter.from_} to {parameter.to} in steps of {parameter.step}; "
            'expected "to" above "from", and a step above 0'
        )
    count = int((last - first) / step) + 1
    if count > MOST_VALUES:
        raise DrawError(f"found {count} values; expected at most {MOST_VALUES}. Choose a larger step")
    return count


def value_at(parameter: Choice | Range | Seed, index: int) -> AxisValue:
    """The value of that index, counted from 0."""
    match parameter:
        case Choice(values=values):
            return values[index]
        case Seed():
            return index + 1
    first, _, step, kind = _bounds(parameter)
    number = first + step * index
    if kind is not None:
        return units.text(kind, int(number))
    return (
        int(number)
        if number == number.to_integral_value() and not isinstance(parameter.from_, float)
        else float(number)
    )


def _bounds(parameter: Range) -> tuple[Decimal, Decimal, Decimal, str | None]:
    """First, last and step in base units, and their kind of quantity."""
    given = (parameter.from_, parameter.to, parameter.step)
    kinds = {kind_of(value) if isinstance(value, str) else None for value in given}
    kind = next(iter(kinds))
    if len(kinds) > 1 or (kind is None and any(isinstance(value, str) for value in given)):
        shown = ", ".join(map(str, given))
        raise DrawError(
            f"found {shown}; expected three numbers, or three quantities of one kind, such as 150 ms, 350 ms, 5 ms"
        )
    numbers = [Decimal(units.parse(kind, value)) if kind else Decimal(str(value)) for value in given]
    return numbers[0], numbers[1], numbers[2], kind


def _computed(name: str, parameter: Formula, values: Mapping[str, AxisValue]) -> AxisValue:
    try:
        known: dict[str, Any] = {other: base_value(value) for other, value in values.items()}
        number = parse(parameter.value, known, NAMES).value(known, functions({}, values))
    except FormulaError as error:
        raise DrawError(str(error), name) from error
    if isinstance(number, str):
        raise DrawError(f'found the text "{number}" as value of {name}; expected a number', name)
    most = units.LARGEST / (NANOSECONDS if parameter.unit == "s" else 1)
    if abs(number) > most or abs(number / parameter.step) > units.LARGEST:
        said = f"found {number:g} as value of {name}, in steps of {parameter.step:g}"
        raise DrawError(f"{said}; expected at most {most:g}, and at most {units.LARGEST:g} steps", name)
    rounded = Decimal(round(number / parameter.step)) * Decimal(str(parameter.step))
    if parameter.unit:
        in_base = rounded * NANOSECONDS if parameter.unit == "s" else rounded
        if in_base < 1:
            raise DrawError(f"found {rounded} {parameter.unit} as value of {name}; expected more than 0", name)
        return units.text(QUANTITY_OF[parameter.unit], int(in_base))
    return int(rounded) if rounded == rounded.to_integral_value() else float(rounded)
