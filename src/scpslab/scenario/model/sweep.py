"""Sweeps: axes by name. Each axis is a list of values for some paths, or a set of named cases."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import AxisValue


class Values(Part):
    """An axis of values: each value is set at all paths."""

    set: Annotated[tuple[str, ...], Field(min_length=1)] = key(
        says="Paths at which each value is set.", example=["links.hop.*.errors.ber"]
    )
    values: Annotated[tuple[AxisValue, ...], Field(min_length=1)] = key(says="The values.", example=[0, 1e-6, 1e-5])


class Cases(Part):
    """An axis of named cases: each sets several paths."""

    cases: Annotated[dict[str, dict[str, Any]], Field(min_length=1)] = key(
        says="From each label to {path: value}.", example={"bbr": {"hosts.*.congestion": "bbr"}}
    )


def _tag(value: Any) -> str:
    given = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return "cases" if "cases" in given else "values"


Axis = Annotated[Annotated[Values, Tag("values")] | Annotated[Cases, Tag("cases")], Discriminator(_tag)]


def axis_values(axis: Values | Cases) -> tuple[AxisValue, ...]:
    """The values or case labels of an axis."""
    return tuple(axis.cases) if isinstance(axis, Cases) else axis.values


def settings_at(axis: Values | Cases, value: AxisValue) -> dict[str, Any]:
    """The paths that an axis sets at one of its values."""
    return dict(axis.cases[str(value)]) if isinstance(axis, Cases) else dict.fromkeys(axis.set, value)
