"""Where a value comes from: a line of the file, or what set it there (a variant, a sweep axis, --set). Errors begin with it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from scpslab.documents.yaml_lines import KeyPath, dotted
from scpslab.errors import ScenarioError

LONGEST_LIST = 24


@dataclass(frozen=True)
class Places:
    """The lines of a file, and who set what since."""

    path: Path
    lines: Mapping[KeyPath, int]
    set_by: Mapping[KeyPath, str] = field(default_factory=dict)

    def of(self, at: KeyPath) -> str:
        """`file:line: key.path` of the nearest key that the file has, or `<what set it>: key.path`."""
        key = dotted(at)
        prefixes = [at[:length] for length in range(len(at), 0, -1)]
        # Lines below a key path that was set since are those of what it replaced.
        for prefix in prefixes:
            if prefix in self.set_by:
                return f"{self.set_by[prefix]}: {key}"
        for prefix in prefixes:
            if prefix in self.lines:
                return f"{self.path}:{self.lines[prefix]}: {key}"
        return f"{self.path}: {key}" if key else str(self.path)

    def set_from(self, source: str, changed: Iterable[KeyPath]) -> Places:
        """The same after `source` set these key paths."""
        return replace(self, set_by={**self.set_by, **dict.fromkeys(changed, source)})

    def over(self, base: Places, taken: Iterable[KeyPath]) -> Places:
        """The same for data that has the values at `taken` from another file."""
        own = {at: f"{self.path}:{line}" for at, line in self.lines.items()}
        return replace(self, set_by={**{at: f"{base.path}:{base.lines[at]}" for at in taken}, **own})

    def error(self, problems: Iterable[tuple[KeyPath, str]]) -> ScenarioError:
        """One error of all problems, a line each."""
        return ScenarioError("\n".join(dict.fromkeys(f"{self.of(at)}: {message}" for at, message in problems)))


def one_of(word: object, choices: Iterable[object]) -> str:
    """`expected one of …` with what to do: the likeliest when there is one."""
    names = [str(choice) for choice in choices]
    close = difflib.get_close_matches(str(word), names, n=1)
    listed = ", ".join(names[:LONGEST_LIST]) + (", …" if len(names) > LONGEST_LIST else "")
    expected = f"expected one of {listed}" if names else "expected none here"
    return f"{expected}. Did you mean {close[0]}?" if close else f"{expected}. Choose one of these." if names else f"{expected}. Remove it."
