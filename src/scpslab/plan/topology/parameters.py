"""Parameters of a topology: a name, a quantity, the paper's value as default, and the source of that value; and former
ones, whose values links have now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scpslab.core import units
from scpslab.plan.topology.network import MOVABLE, Network

Describe = Callable[[dict[str, int | None]], Network]


@dataclass(frozen=True)
class Parameter:
    """One property that a scenario can set.

    `kind` is rate (bit/s), duration (ns), size (bytes) or count (a plain whole number). `moved_to`: where a former
    parameter is below `links` today, such as hop.forward.rate.
    """

    kind: str
    default: int | None
    doc: str
    least: int = 0
    most: int | None = None
    moved_to: tuple[str, ...] = ()

    def read(self, value: object) -> int | None:
        """The value in base units. Raises units.UnitError for anything else."""
        if isinstance(value, str) and value.strip() == "none" and self.default is None and self.kind == "size":
            return None
        number = _whole(value) if self.kind == "count" else units.parse(self.kind, value)
        if number < self.least:
            raise units.UnitError(f'found "{value}"; expected at least {self.text(self.least)}')
        if self.most is not None and number > self.most:
            raise units.UnitError(f'found "{value}"; expected at most {self.text(self.most)}')
        return number

    def text(self, number: int) -> str:
        """A value in base units, in the form in which a person writes it."""
        return str(number) if self.kind == "count" else units.text(self.kind, number)


def _whole(value: object) -> int:
    try:
        return int(str(value))
    except ValueError as error:
        raise units.UnitError(f'found "{value}"; expected a whole number') from error


def rate(default: str, doc: str) -> Parameter:
    """A rate above 0; the default carries its unit."""
    return Parameter("rate", units.parse("rate", default), doc, least=1)


def duration(default: str, doc: str) -> Parameter:
    """A duration; the default carries its unit."""
    return Parameter("duration", units.parse("duration", default), doc)


def size(default: str | None, doc: str, least: int = 1) -> Parameter:
    """A size of at least `least` bytes; None if the topology calculates the value from others."""
    return Parameter("size", None if default is None else units.parse("size", default), doc, least)


def count(default: int, doc: str, least: int = 0, most: int | None = None) -> Parameter:
    """A plain whole number of at least `least` and, where given, at most `most`."""
    return Parameter("count", default, doc, least, most)


def moved(*places: str) -> Parameter:
    """The former name of a property of directions, as `moved("hop.forward.rate")`: files of before may still say it.

    The last words of each place: rate, delay, overhead or queue.limit.
    """
    kind, least = MOVABLE[places[0].split(".", 2)[2]]
    return Parameter(kind, None, f"now {' and '.join(f'links.{place}' for place in places)}", least, moved_to=places)


def moved_hop(link: str) -> dict[str, Parameter]:
    """The former parameters of a hop with a data path forward and an ACK path back."""
    ways = {"data": "forward", "ack": "return"}
    words = {"rate": "rate", "delay": "delay", "buffer": "queue.limit"}
    hop = {f"{way}_{word}": moved(f"{link}.{ways[way]}.{words[word]}") for way in ways for word in words}
    return {**hop, "framing": moved(*(f"{link}.{way}.overhead" for way in ways.values()))}


class Parameters:
    """The declared parameters of one topology; checks given values against them."""

    def __init__(self, **declared: Parameter) -> None:
        self.declared = declared

    @property
    def own(self) -> dict[str, Parameter]:
        """Those of today."""
        return {name: parameter for name, parameter in self.declared.items() if not parameter.moved_to}

    def read(self, given: Mapping[str, object]) -> dict[str, int | None]:
        """Every parameter of today with its value in base units.

        Raises:
            units.UnitError: an unknown name or an invalid value; the message names it.
        """
        values = self._read(given)
        return {name: values.get(name, parameter.default) for name, parameter in self.own.items()}

    def described(self, describe: Describe, given: Mapping[str, object]) -> Network:
        """The network of a topology for given values; what former parameters say is put where it belongs today.

        Raises:
            units.UnitError: an unknown name or an invalid value; the message names it.
            ValueError: a former parameter names a place that the network has not.
        """
        network = describe(self.read(given))
        for name, value in self._read(given).items():
            if value is not None:
                for place in self.declared[name].moved_to:
                    network = network.put(place, value)
        return network

    def _read(self, given: Mapping[str, object]) -> dict[str, int | None]:
        if unknown := [name for name in given if name not in self.declared]:
            raise units.UnitError(f"{unknown[0]}: found no such parameter; expected one of {', '.join(self.declared)}")
        values: dict[str, int | None] = {}
        for name, value in given.items():
            try:
                values[name] = self.declared[name].read(value)
            except units.UnitError as error:
                raise units.UnitError(f"{name}: {error}") from error
        return values
