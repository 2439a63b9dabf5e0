"""Quantities in scenario files: text with a unit, checked by units.py, kept as text so that a resolved scenario reads like its source."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from scpslab import units

PACKETS = re.compile(r"^\s*(\d+)\s*packets?\s*$")
# A name of the project's, or the path of a file: "mine.py" alone could be either.
TOPOLOGY = re.compile(r"^([a-z][a-z0-9_-]{0,39}|(\.{1,2}/|/)[^\x00-\x1f]*\.py)$")
NUMBER_PATTERN = r"[0-9.]+([eE][+-]?[0-9]+)?"


def _quantity(kind: str, least: int = 0) -> tuple[BeforeValidator, WithJsonSchema]:
    """Validator and schema of a quantity of at least `least` base units."""

    def check(value: object) -> str:
        if units.parse(kind, value) < least:
            raise ValueError(f'found "{value}"; expected a {kind} above 0, such as "{units.EXAMPLES[kind]}"')
        return str(value)

    names = "|".join(units.KINDS[kind])
    schema = {"type": "string", "format": kind, "pattern": rf"^\s*{NUMBER_PATTERN}\s*({names})\s*$", "examples": [units.EXAMPLES[kind]]}
    return BeforeValidator(check), WithJsonSchema(schema)


def _queue_limit(value: object) -> str:
    if isinstance(value, str) and (match := PACKETS.match(value)):
        if int(match[1]) == 0:
            raise ValueError(f'found "{value}"; expected at least "1 packet"')
        return value
    try:
        found = units.parse("size", value)
    except units.UnitError as error:
        raise ValueError(f'{error} or a number of packets such as "50 packets"') from error
    if found == 0:
        raise ValueError(f'found "{value}"; expected a limit above 0, such as "132.5 kB" or "50 packets"')
    return str(value)


def queue_limit(value: str) -> tuple[int | None, int | None]:
    """A queue limit as (bytes, None) or (None, packets)."""
    match = PACKETS.match(value)
    return (None, int(match[1])) if match else (units.parse("size", value), None)


def _topology(value: str) -> str:
    if not TOPOLOGY.fullmatch(value):
        hint = f". For a file, write ./{value}" if value.endswith(".py") and "/" not in value else ""
        raise ValueError(
            f'found "{value}"; expected the name of a topology, or the path of a Python file that begins with ./, ../ or / and ends with .py{hint}'
        )
    return value


def as_several(value: Any) -> Any:
    """A value as the only one of several."""
    return value if isinstance(value, tuple) else (value,)


def _unsigned(limit: int) -> Callable[[object], object]:
    """Refuses booleans and numbers of absurd length before anything prints them."""

    def check(value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > limit:
            raise ValueError(f"found a number of {len(hex(value)) * 4 - 8} bits; expected at most {limit}")
        return value

    return check


Rate = Annotated[str, *_quantity("rate", 1)]
Duration = Annotated[str, *_quantity("duration")]
PositiveDuration = Annotated[str, *_quantity("duration", 1)]
Size = Annotated[str, *_quantity("size", 1)]
SizeOrZero = Annotated[str, *_quantity("size")]
QueueLimit = Annotated[
    str,
    BeforeValidator(_queue_limit),
    WithJsonSchema(
        {
            "type": "string",
            "format": "size or packets",
            "pattern": rf"^\s*({NUMBER_PATTERN}\s*({'|'.join(units.SIZE)})|[0-9]+\s*packets?)\s*$",
            "examples": ["132.5 kB", "50 packets"],
        }
    ),
]
Count = Annotated[int, BeforeValidator(_unsigned(units.LARGEST)), Field(ge=1, le=units.LARGEST)]
Seed = Annotated[int, BeforeValidator(_unsigned(units.LARGEST)), Field(ge=0, le=units.LARGEST)]
Port = Annotated[int, Field(ge=1, le=65535)]
Probability = Annotated[float, Field(ge=0, le=1)]
# Names become file names and parts of paths into the scenario.
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
TopologyName = Annotated[
    str, AfterValidator(_topology), WithJsonSchema({"type": "string", "format": "name or path", "pattern": TOPOLOGY.pattern, "examples": ["fy97", "./mine.py"]})
]
AxisValue = bool | int | float | str
# A list, or a value for a list of it alone.
OneOrMore = Annotated[tuple[AxisValue, ...], BeforeValidator(as_several), Field(min_length=1)]
