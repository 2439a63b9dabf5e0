"""The base class of every part of a file that a person writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import core_schema


class Part(BaseModel):
    """Strict (no text where a number is meant, nor the other way round), frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=True)


def key(default: Any = ..., *, says: str, example: Any = None, alias: str | None = None, least: float | None = None, most: float | None = None) -> Any:
    """A key of a part: its default (a key without one is required), its meaning (`says`), an example, and its bounds."""
    return Field(default, description=says, examples=None if example is None else [example], alias=alias, ge=least, le=most)


def bases(first: type[Part], kinds: Iterable[type[Part]]) -> tuple[type[Part], ...]:
    """Base classes of a part that has the keys of `first` and then those of every kind, in their order; what kinds share stands once."""
    wanted = list(dict.fromkeys(kinds))
    own = [kind for kind in wanted if not any(kind is not other and issubclass(other, kind) for other in (*wanted, first))]
    # Pydantic puts the keys of the last base first.
    return (*reversed(own), first)


class OneOf:
    """A text that must be one of some names, which a registry knows; the annotation of a field: the form and the complaints of a Literal."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.literal_schema(list(self.names))
