"""What students write as answers and predictions: numbers with or without units, intervals, words."""

from __future__ import annotations

import math
import re

from scpslab.core import units
from scpslab.core.names import shown

# Possessive: whatever follows a number, spaces are looked at once. What is before and behind is stripped first.
NUMBER = re.compile(r"([+-]?(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][+-]?\d{1,3})?)\s*+((?!\d).*)", re.ASCII | re.DOTALL)
COMMA = re.compile(r"\s*[+-]?\d+,\d+.*", re.ASCII | re.DOTALL)
BETWEEN = ".."


class GivenError(ValueError):
    """A text that is no answer to the question; the message says what was found and expected."""


def number(given: object, unit: str) -> float:
    """A number in the unit of the question. A text may have that unit or another one of its kind: 250 ms where the unit is s.

    Raises:
        GivenError: no number, or another unit.
    """
    if isinstance(given, int | float) and not isinstance(given, bool):
        found = _finite(given)
        if found is None:
            raise GivenError(f"found a number without end; expected {_example(unit)}")
        return found
    has_comma = isinstance(given, str) and COMMA.fullmatch(given) is not None
    match = NUMBER.fullmatch(given.strip()) if isinstance(given, str) and not has_comma else None
    if match is None:
        hint = ", with a point where you have a comma" if has_comma else ""
        raise GivenError(f"found {_said(given)}; expected {_example(unit)}{hint}")
    found = _finite(float(match[1]))
    if found is None:
        raise GivenError(f"found {_said(given)}; expected {_example(unit)}")
    in_unit = _finite(found * _factor(match[2], unit, given))
    if in_unit is None:
        raise GivenError(f"found {_said(given)}, which is too large; expected {_example(unit)}")
    return in_unit


def interval(given: object, unit: str) -> tuple[float, float]:
    """The ends of LOW..HIGH; a unit behind the second number is also that of the first.

    Raises:
        GivenError: no interval, or one that is upside down or not above 0.
    """
    first, between, second = given.partition(BETWEEN) if isinstance(given, str) else ("", "", "")
    if not between:
        raise GivenError(f"found {_said(given)}; expected LOW{BETWEEN}HIGH, such as 10{BETWEEN}20 {unit}".rstrip())
    last = NUMBER.fullmatch(second.strip())
    if last is not None and last[2] and (match := NUMBER.fullmatch(first.strip())) is not None and not match[2]:
        first = f"{first} {last[2]}"
    low, high = number(first, unit), number(second, unit)
    if not 0 < low <= high:
        raise GivenError(f"found {_said(given)}; expected LOW{BETWEEN}HIGH with 0 < LOW <= HIGH")
    return low, high


def _finite(value: float) -> float | None:
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _factor(found: str, wanted: str, given: object) -> float:
    if found in ("", wanted):
        return 1.0
    for table in units.KINDS.values():
        if wanted in table and (unit := next((one for one in table if _is_unit(one, found)), None)) is not None:
            return table[unit] / table[wanted]
    kind = next((table for table in units.KINDS.values() if wanted in table), {wanted: 1})
    expected = f"one of {', '.join(kind)}" if wanted else "a number alone"
    raise GivenError(f"found {_said(given)} with the unit {shown(found)}; expected {expected}")


def _is_unit(unit: str, found: str) -> bool:
    """Whether a student's word is a unit, whatever its case; but b is not B: a bit is no byte."""
    return found.casefold() == unit.casefold() and found.endswith("B") == unit.endswith("B")


def _example(unit: str) -> str:
    return f"a number in {unit}, such as 12.5 or 12.5 {unit}" if unit else "a number, such as 12.5"


def _said(given: object) -> str:
    if given is None:
        return "nothing"
    if isinstance(given, bool):
        return f"the word {str(given).lower()}"
    return shown(given) if isinstance(given, str) else "a list or keys" if isinstance(given, list | dict) else shown(str(given))
