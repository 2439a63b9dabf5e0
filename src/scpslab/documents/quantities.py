"""Quantities in files that people write: whole numbers of base units that remember their text, so that a resolved
scenario reads like its source.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Self

import pydantic
from pydantic_core import CoreSchema, core_schema

from scpslab.core import units
from scpslab.core.problems import UnfitError
from scpslab.documents.parts import Spelt

PACKETS = re.compile(r"^\s*(\d+)\s*packets?\s*$")
PRODUCTS = re.compile(r"^\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*BDP\s*$", re.ASCII)
MOST_PRODUCTS = 1000
# A name of the project's, or the path of a file: "mine.py" alone could be either.
TOPOLOGY = re.compile(r"^([a-z][a-z0-9_-]{0,39}|(\.{1,2}/|/)[^\x00-\x1f]*\.py)$")
PERCENTAGE = re.compile(r"^\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*%\s*$", re.ASCII)
NUMBER_PATTERN = r"[0-9.]+([eE][+-]?[0-9]+)?"


class Quantity(int):
    """A whole number of base units (rate: bit/s, duration: ns, size: bytes) that remembers the text it was written
    as.
    """

    kind: ClassVar[str]
    least: ClassVar[int] = 0
    step: ClassVar[tuple[int, str]] = (1, "base units")
    text: str

    def __new__(cls, value: object) -> Self:
        """The quantity of a text with its unit, or of a number of base units.

        Raises:
            UnfitError: it is none of this kind (see units.parse), less than the least one, or between two steps.
        """
        if isinstance(value, Quantity):
            value = value.text
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        quantity = super().__new__(cls, units.parse(cls.kind, value) if number is None else number)
        if quantity < cls.least:
            above = "above 0" if cls.least == 1 else f"of at least {units.text(cls.kind, cls.least)}"
            raise UnfitError(f'"{value}"', f'a {cls.kind} {above}, such as "{units.EXAMPLES[cls.kind]}"')
        if quantity % cls.step[0]:
            raise UnfitError(f'"{value}"', f"whole {cls.step[1]}")
        quantity.text = str(value) if number is None else units.text(cls.kind, quantity)
        return quantity

    @property
    def written(self) -> object:
        """What a file says."""
        return self.text

    @classmethod
    def of_file(cls, value: object) -> Self:
        """The quantity that a file gives: never a bare number."""
        return cls(value if isinstance(value, str | Quantity) else units.parse(cls.kind, value))

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.of_file, serialization=core_schema.plain_serializer_function_ser_schema(lambda value: value.written)
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: CoreSchema, _handler: pydantic.GetJsonSchemaHandler
    ) -> dict[str, Any]:
        names = "|".join(units.KINDS[cls.kind])
        return {
            "type": "string",
            "format": cls.kind,
            "pattern": rf"^\s*{NUMBER_PATTERN}\s*({names})\s*$",
            "examples": [units.EXAMPLES[cls.kind]],
        }


class Rate(Quantity):
    """Bit/s, above 0."""

    kind, least = "rate", 1


class Duration(Quantity):
    """Nanoseconds."""

    kind = "duration"


class Start(Duration):
    """Nanoseconds, or `{random: 0 s..5 s}`, which is drawn for each repeat: as a number, the latest that may be."""

    earliest: Duration | None = None

    @classmethod
    def of_file(cls, value: object) -> Self:
        """The start that a file gives."""
        if isinstance(value, cls) or not isinstance(value, Mapping):
            return value if isinstance(value, cls) else super().of_file(value)
        ends = str(value.get("random")).split("..")
        if value.keys() != {"random"} or len(ends) != 2:
            raise UnfitError("other keys or values", "a duration, or {random: FROM..TO}, such as {random: 0 s..5 s}")
        earliest, latest = map(Duration.of_file, ends)
        if earliest >= latest:
            raise UnfitError(f'"{value["random"]}"', "an end after its beginning")
        start = cls(latest.text)
        start.earliest, start.text = earliest, f"{earliest.text}..{latest.text}"
        return start

    def at(self, draw: float) -> int:
        """The start for a number from 0 to 1."""
        return int(self) if self.earliest is None else self.earliest + int(draw * (self - self.earliest))

    @property
    def written(self) -> object:
        """What a file says."""
        return self.text if self.earliest is None else {"random": self.text}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: pydantic.GetJsonSchemaHandler) -> dict[str, Any]:
        drawn = {"type": "object", "properties": {"random": {"type": "string"}}, "required": ["random"]}
        fixed = super().__get_pydantic_json_schema__(schema, handler)
        return {"anyOf": [fixed, drawn | {"format": "{random: FROM..TO}"}]}


class PositiveDuration(Quantity):
    """Nanoseconds, above 0."""

    kind, least = "duration", 1


class Milliseconds(Duration):
    """Nanoseconds, for programs that count in milliseconds."""

    step = (10**6, "milliseconds")


class PositiveMilliseconds(Milliseconds):
    """Nanoseconds above 0, for programs that count in milliseconds."""

    least = 1


class Seconds(PositiveDuration):
    """Nanoseconds above 0, for programs that count in seconds."""

    step = (10**9, "seconds")


class Size(Quantity):
    """Bytes, above 0."""

    kind, least = "size", 1


class ProbeInterval(Quantity):
    """Nanoseconds between samples: more would be samples of a lab than packets pass."""

    kind, least = "duration", 10**6


class Snaplen(Quantity):
    """Bytes kept of a packet, at least an Ethernet frame's headers up to those of TCP."""

    kind, least = "size", 54


class SizeOrZero(Quantity):
    """Bytes."""

    kind = "size"


class Packets(int):
    """A number of packets, as the limit of a queue."""

    @property
    def text(self) -> str:
        """As a file has it."""
        return f"{self} packet{'' if self == 1 else 's'}"


class Products(Decimal):
    """A number of bandwidth-delay products, as the limit of a queue."""

    @property
    def text(self) -> str:
        """As a file has it."""
        return f"{self:f} BDP"

    def of_bytes(self, rate_bps: int, rtt_ns: int) -> int:
        """Bytes at a rate and a round trip, rounded down."""
        return int(self * rate_bps * rtt_ns / (8 * 10**9))


def _queue_limit(value: object) -> Size | Packets | Products:
    if isinstance(value, Size | Packets | Products):
        return value
    if isinstance(value, str) and value.rstrip().endswith("BDP"):
        match = PRODUCTS.match(value)
        if match is None or not 0 < Decimal(match[1]) <= MOST_PRODUCTS:
            raise UnfitError(f'"{value}"', f'a number of BDP above 0, at most {MOST_PRODUCTS}, such as "0.25 BDP"')
        return Products(match[1])
    if isinstance(value, str) and (match := PACKETS.match(value)):
        if not 0 < int(match[1]) <= units.LARGEST:
            raise UnfitError(f'"{value}"', f'at least "1 packet", and at most {units.LARGEST}')
        return Packets(match[1])
    try:
        return Size.of_file(value)
    except UnfitError as error:
        expected = f'{error.problem.expected}, a number of packets such as "50 packets", or of BDP such as "0.5 BDP"'
        raise UnfitError(error.problem.found, expected) from error


def _topology(value: str) -> str:
    if not TOPOLOGY.fullmatch(value):
        hint = f"For a file, write ./{value}. Correct the value." if value.endswith(".py") and "/" not in value else ""
        raise UnfitError(
            f'"{value}"',
            "the name of a topology, or the path of a Python file that begins with ./, ../ or / and ends with .py",
            hint,
        )
    return value


def as_several(value: Any) -> Any:
    """A value as the only one of several."""
    return value if isinstance(value, tuple) else (value,)


def _two(value: object) -> object:
    if isinstance(value, tuple) and len(value) != 2:
        raise UnfitError("one value" if len(value) == 1 else f"{len(value)} values", "2")
    return value


def as_share(value: Any) -> Any:
    """The probability that a percentage is, to the last digit: 0.7 % is 0.007."""
    match = PERCENTAGE.fullmatch(value) if isinstance(value, str) else None
    return value if match is None else float(Decimal(match[1]) / 100)


def _unsigned(limit: int) -> Callable[[object], object]:
    """Refuses booleans and numbers of absurd length before anything prints them."""

    def check(value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > limit:
            raise UnfitError(f"a number of {len(hex(value)) * 4 - 8} bits", f"at most {limit}")
        return value

    return check


QueueLimit = Annotated[
    Size | Packets | Products,
    pydantic.PlainValidator(_queue_limit),
    pydantic.PlainSerializer(lambda value: value.text, return_type=str),
    pydantic.WithJsonSchema(
        {
            "type": "string",
            "format": "size, packets or BDP",
            "pattern": rf"^\s*({NUMBER_PATTERN}\s*({'|'.join(units.SIZE)})|[0-9]+\s*packets?|[0-9.]+\s*BDP)\s*$",
            "examples": ["132.5 kB", "50 packets", "0.25 BDP"],
        }
    ),
]
Count = Annotated[int, pydantic.BeforeValidator(_unsigned(units.LARGEST)), pydantic.Field(ge=1, le=units.LARGEST)]
Seed = Annotated[int, pydantic.BeforeValidator(_unsigned(units.LARGEST)), pydantic.Field(ge=0, le=units.LARGEST)]
Port = Annotated[int, pydantic.Field(ge=1, le=65535)]
Precedence = Annotated[int, pydantic.Field(ge=0, le=15)]
# Of segments, packets or timeouts; and a first window, which has one at least.
UpToThousand = Annotated[int, pydantic.Field(ge=0, le=1000)]
Window = Annotated[int, pydantic.Field(ge=1, le=1000)]
Probability = Annotated[
    float,
    pydantic.BeforeValidator(as_share),
    pydantic.Field(ge=0, le=1),
    pydantic.WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "format": "percentage", "pattern": PERCENTAGE.pattern, "examples": ["1 %"]},
            ]
        }
    ),
]
# Names become file names and parts of paths into the scenario.
NAME = Spelt(
    r"^[a-z][a-z0-9_-]{0,39}$", "a name: a small letter first, then small letters, digits, - and _, 40 at most"
)
Name = Annotated[str, NAME]
TopologyName = Annotated[
    str,
    pydantic.AfterValidator(_topology),
    pydantic.WithJsonSchema(
        {"type": "string", "format": "name or path", "pattern": TOPOLOGY.pattern, "examples": ["fy97", "./mine.py"]}
    ),
]
# Of tuple[X, Y].
PAIR = pydantic.BeforeValidator(_two)
AxisValue = bool | int | float | str
# A list, or a value for a list of it alone.
OneOrMore = Annotated[tuple[AxisValue, ...], pydantic.BeforeValidator(as_several), pydantic.Field(min_length=1)]
