"""The base class of every part of a file that a person writes."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Part(BaseModel):
    """Strict (no text where a number is meant, nor the other way round), frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def key(default: Any = ..., *, says: str, example: Any = None, alias: str | None = None, least: float | None = None, most: float | None = None) -> Any:
    """A key of a part: its default (a key without one is required), its meaning (`says`), an example, and its bounds."""
    return Field(default, description=says, examples=None if example is None else [example], alias=alias, ge=least, le=most)
