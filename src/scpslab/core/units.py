"""Quantities with units: text such as "2 Mbit/s" or "255.5 ms" to whole numbers of a base unit, and back.

Only the standard library is used here: topologies import this module inside the guest too.
Base units: rate bit/s, duration ns, size bytes, ratio a plain float between 0 and 1.
"""

import re
from decimal import Decimal

from scpslab.core.problems import UnfitError

_NUMBER = re.compile(r"^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s].*?)?\s*$")

RATE = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
DURATION = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
SIZE = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

# Units that nobody counts decimals of.
NOT_DECIMAL = ("min", "h", "KiB", "MiB", "GiB")
# The largest number of 64 signed bits, which every consumer of a plan can hold.
LARGEST = 2**63 - 1

KINDS = {"rate": RATE, "duration": DURATION, "size": SIZE}
EXAMPLES = {"rate": "2 Mbit/s", "duration": "255.5 ms", "size": "1400 B"}

# What a metric counts in, by the end of its name: a kind, and base units in one of it.
OF_METRICS = {"_s": ("duration", 10**9), "_ms": ("duration", 10**6), "_bps": ("rate", 1), "bytes": ("size", 1)}
PERCENT = "%"


class UnitError(UnfitError):
    """A quantity that cannot be read; the message says what was found, what was expected and an example."""


def parse(kind: str, value: object) -> int:
    """The whole number of base units (rate: bit/s, duration: ns, size: bytes) in `value`.

    Raises:
        UnitError: no unit, an unknown unit, no number, a negative number, a number beyond 64 bits, or a fraction of a
            base unit.
    """
    units = KINDS[kind]
    example = EXAMPLES[kind]
    match = _NUMBER.match(value) if isinstance(value, str) else None
    if match is None:
        found = f'"{value}"' if isinstance(value, str) else f"{value!r} (no unit)"
        raise UnitError(found, f'a {kind} such as "{example}"')
    number, unit = match.group(1), match.group(2)
    if unit is None:
        raise UnitError(f'"{value}" (no unit)', f'a {kind} such as "{example}"')
    if unit not in units:
        raise UnitError(f'"{value}" (unit "{unit}")', f'one of {", ".join(units)}, as in "{example}"')
    try:
        exact = Decimal(number) * units[unit]
    except ArithmeticError as error:
        raise UnitError(f'"{value}"', f'a {kind} such as "{example}"') from error
    if exact < 0:
        raise UnitError(f'"{value}" (negative)', f'a {kind} of 0 or more, such as "{example}"')
    if exact > LARGEST:
        raise UnitError(f'"{value}"', f"a {kind} of at most {text(kind, LARGEST)}")
    if exact != exact.to_integral_value():
        base = next(iter(units))
        raise UnitError(f'"{value}"', f"a whole number of {base}")
    return int(exact)


def of_metric(metric: str) -> tuple[str, int] | None:
    """What a metric counts in: a kind, and base units in one of it; None for plain numbers."""
    return next((found for end, found in OF_METRICS.items() if metric.endswith(end) and "_per_" not in metric), None)


def text(kind: str, number: int) -> str:
    """The shortest text that `parse` reads back to `number`: the largest unit with at most six decimals."""
    if number == 0:
        return f"0 {'s' if kind == 'duration' else next(iter(KINDS[kind]))}"
    for name, factor in sorted(KINDS[kind].items(), key=lambda item: -item[1]):
        if number >= factor and name not in NOT_DECIMAL:
            exact = Decimal(number) / factor
            if exact == round(exact, 6):
                return f"{exact.normalize():f} {name}"
    return f"{number} {next(iter(KINDS[kind]))}"
