"""The place a value comes from: a line of the file, or the variant, sweep axis or --set that set it.

Errors begin with the place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from scpslab.core.errors import ScenarioError
from scpslab.core.problems import KeyPath, Problem, dotted

T = TypeVar("T")


@dataclass(frozen=True)
class Places:
    """The lines of a file, and what has set each key path since."""

    path: Path
    lines: Mapping[KeyPath, int]
    set_by: Mapping[KeyPath, str] = field(default_factory=dict)

    def of(self, at: KeyPath) -> str:
        """`file:line: key.path` of the nearest key that the file has, or `<what set it>: key.path`."""
        key = dotted(at)
        prefixes = [at[:length] for length in range(len(at), 0, -1)]
        # Lines below a key path that was set later are the lines of the value that it replaced.
        for prefix in prefixes:
            if prefix in self.set_by:
                return f"{self.set_by[prefix]}: {key}"
        for prefix in prefixes:
            if prefix in self.lines:
                return f"{self.path}:{self.lines[prefix]}: {key}"
        return f"{self.path}: {key}" if key else str(self.path)

    def set_from(self, source: str, changed: Iterable[KeyPath]) -> Places:
        """These places after `source` has set these key paths."""
        return replace(self, set_by={**self.set_by, **dict.fromkeys(changed, source)})

    def without(self, section: str, gone: Collection[int]) -> Places:
        """These places after parts of a list have gone, by their numbers."""

        def moved(at: KeyPath) -> KeyPath:
            if len(at) > 1 and at[0] == section and isinstance(number := at[1], int):
                return section, number - sum(one < number for one in gone), *at[2:]
            return at

        def kept(known: Mapping[KeyPath, T]) -> dict[KeyPath, T]:
            return {
                moved(at): what for at, what in known.items() if len(at) < 2 or at[0] != section or at[1] not in gone
            }

        return replace(self, lines=kept(self.lines), set_by=kept(self.set_by))

    def over(self, base: Places, taken: Iterable[KeyPath]) -> Places:
        """These places for data whose values at `taken` come from another file."""
        own = {at: f"{self.path}:{line}" for at, line in self.lines.items()}
        return replace(self, set_by={**{at: f"{base.path}:{base.lines[at]}" for at in taken}, **own})

    def error(self, problems: Iterable[Problem]) -> ScenarioError:
        """One error for all problems, one line each, in the order of the file's lines: first what is nowhere in it,
        last what something else set.
        """
        in_order = sorted(problems, key=lambda problem: self._line(problem.at))
        # Otherwise a command would fail without a word.
        assert in_order, f"an error of {self.path} without a problem"
        return ScenarioError("\n".join(dict.fromkeys(f"{self.of(problem.at)}: {problem}" for problem in in_order)))

    def _line(self, at: KeyPath) -> float:
        prefixes = [at[:length] for length in range(len(at), 0, -1)]
        if any(prefix in self.set_by for prefix in prefixes):
            return math.inf
        return next((self.lines[prefix] for prefix in prefixes if prefix in self.lines), 0)
