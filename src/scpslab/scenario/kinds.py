"""What kinds of all families have on this side: from the keys of a scenario to those of a plan."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from scpslab.core.problems import Problem
from scpslab.documents.parts import Part

T = TypeVar("T")
# What names of fields say of their values, and "_" behind those that are words of Python.
ENDING = re.compile(r"_(ns|bytes|bps)?$", re.ASCII)


def key_of(planned: str) -> str:
    """A scenario's key for a field of a plan's part: the name without the unit, `timeout` for `timeout_ns`."""
    return ENDING.sub("", planned)


def at_keys(problems: Iterable[Problem], **keys: str) -> Iterator[Problem]:
    """What the plan's rules say of a planned part, at the keys of the scenario's part; `keys`: those of other names."""
    return (replace(one, at=tuple(keys.get(str(part)) or key_of(str(part)) for part in one.at)) for one in problems)


def planned_from(planned: Callable[..., T], part: Part, **own: object) -> T:
    """What a plan says of a part: what is given by name here, and the part's own keys."""
    keys = _keys(planned)
    return planned(**{name: own[name] if name in own else getattr(part, key) for name, key in keys})


@cache
def _keys(planned: Any) -> tuple[tuple[str, str], ...]:
    """Each field of a plan's part, and the scenario's key for it."""
    return tuple((field.name, key_of(field.name)) for field in fields(planned))
