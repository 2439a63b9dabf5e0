"""Topologies as descriptions: nodes and links with parameters. This package touches no kernel.

Standard library only, because topology files are read on the user's machine (to plan) and inside the guest (`mn
--custom`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scpslab.core import units
from scpslab.plan.disciplines import OneProduct, Queue
from scpslab.plan.links import Direction, Link
from scpslab.plan.nodes import Node
from scpslab.plan.topology.network import Network, Serial


@dataclass(frozen=True)
class Parameter:
    """One property that a scenario can set.

    `kind` is rate (bit/s), duration (ns), size (bytes) or count (a plain whole number).
    """

    kind: str
    default: int | None
    doc: str
    least: int = 0
    most: int | None = None

    def read(self, value: object) -> int | None:
        """The value in base units. Raises units.UnitError for anything else."""
        if isinstance(value, str) and value.strip() == "none" and self.default is None and self.kind == "size":
            return None
        number = _whole(value) if self.kind == "count" else units.parse(self.kind, value)
        if number < self.least:
            raise units.UnitError(f'"{value}"', f"at least {self.text(self.least)}")
        if self.most is not None and number > self.most:
            raise units.UnitError(f'"{value}"', f"at most {self.text(self.most)}")
        return number

    def text(self, number: int) -> str:
        """A value in base units, in the form in which a person writes it."""
        return str(number) if self.kind == "count" else units.text(self.kind, number)


def _whole(value: object) -> int:
    try:
        return int(str(value))
    except ValueError as error:
        raise units.UnitError(f'"{value}"', "a whole number") from error


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


class Parameters:
    """The declared parameters of one topology; checks given values against them."""

    def __init__(self, **declared: Parameter) -> None:
        self.declared = declared

    def read(self, given: Mapping[str, object]) -> dict[str, int | None]:
        """Every parameter with its value in base units.

        Raises:
            units.UnitError: an unknown name or an invalid value; the message names it.
        """
        if unknown := [name for name in given if name not in self.declared]:
            raise units.UnitError("no such parameter", f"one of {', '.join(self.declared)}", subject=unknown[0])
        values = {name: parameter.default for name, parameter in self.declared.items()}
        for name, value in given.items():
            try:
                values[name] = self.declared[name].read(value)
            except units.UnitError as error:
                raise units.UnitError(error.problem.found, error.problem.expected, subject=name) from error
        return values
