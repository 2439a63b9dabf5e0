"""What is said of a place of a plan that does not fit, and of a name that a plan has not, or has twice."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from scpslab.core.problems import KeyPath, Problem
from scpslab.plan.schema import shown

NAMES_SHOWN = 12
At = TypeVar("At")
Named = TypeVar("Named", bound=Hashable)


def unknown(at: KeyPath, found: str, known: Iterable[str]) -> Problem:
    """A name that is none of those that there are."""
    # A lab, whose plan has been read before, has no use for it.
    from scpslab.core import choices  # noqa: PLC0415

    return Problem(at, shown(found), *choices.choice(found, known))


def listed(names: Sequence[str]) -> str:
    """The first of some names."""
    if not names:
        return "none, for there is none"
    return ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")


def twice(named: Iterable[tuple[At, Named]]) -> Iterator[tuple[At, Named]]:
    """Those of some places whose name, or whatever else must be their own, an earlier one has."""
    seen: set[Named] = set()
    for place, name in named:
        if name in seen:
            yield place, name
        seen.add(name)
