"""What is wrong with a text that is no YAML, in the words of somebody who looks at its lines."""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

LONGEST = 40  # characters of a line that are repeated
NO_SPACE = re.compile(r"\s*(?:- )?[\w.*-]+:\S")
NO_SPACE_AFTER_DASH = re.compile(r"\s*-[^\s-]")
TWO_COLONS = re.compile(r"\s*(?:- )?[^:]+:\s.*:(?:\s|$)")
BRACKETS = {"while parsing a flow mapping": "{}", "while parsing a flow sequence": "[]"}
AFTER_DASH = '"-" without a space behind it', '"- "', "Add a space."
CANNOT_START = re.compile(r"found character '(.*)' that cannot start any token")


class Words(NamedTuple):
    """The line, counted from 0, if one is known, and what to say of it."""

    line: int | None
    found: str
    expected: str
    advice: str = "Correct the line."


class _Said(NamedTuple):
    """What PyYAML says: its problem and where, in the context of what began where, in these lines."""

    problem: str
    at: yaml.Mark
    context: str
    begun: yaml.Mark
    lines: list[str]

    @property
    def line(self) -> str:
        return self.lines[self.at.line] if self.at.line < len(self.lines) else ""


def in_words(error: yaml.YAMLError, text: str) -> Words:
    """What PyYAML has found, said of the line in which a person would mend it."""
    problem = str(getattr(error, "problem", None) or str(error).splitlines()[0])
    at, begun = (getattr(error, name, None) for name in ("problem_mark", "context_mark"))
    if at is not None:
        said = _Said(problem, at, str(getattr(error, "context", "")), begun or at, text.splitlines())
        for rule in (_token, _no_colon, _open_quote, _second_key, _open_bracket, _indentation):
            if (words := rule(said)) is not None:
                return words
    return Words(None if at is None else at.line, problem.removeprefix("found "), "YAML")


def _token(said: _Said) -> Words | None:
    if "constructor for the tag" in said.problem:
        return Words(said.at.line, "a tag, which begins with !", "the value alone", "Remove the tag.")
    if "expected the node content" in said.problem:
        there = _short(said.line[said.at.column :])
        return Words(said.at.line, f'"{there}"' if there else "the end of the text", "a value")
    if said.line.lstrip(" ").startswith("\t"):
        return Words(said.at.line, "a tab", "spaces in front of a key", "Replace the tab by spaces.")
    if (match := CANNOT_START.fullmatch(said.problem)) is None:
        return None
    return Words(said.at.line, f'a text that begins with "{match[1]}"', "it in quotes", "Write quotes around it.")


def _no_colon(said: _Said) -> Words | None:
    return _without_colon(said, said.begun.line) if "expected ':'" in said.problem else None


def _open_quote(said: _Said) -> Words | None:
    if "quoted scalar" not in said.context or "end of stream" not in said.problem:
        return None
    return Words(said.begun.line, "a quote that does not end", "the same quote after the text", "Add it.")


def _second_key(said: _Said) -> Words | None:
    if not said.problem.startswith("mapping values"):
        return None
    number, line = said.at.line, said.line
    before = next((above for above in reversed(said.lines[:number]) if above.strip()), "")
    if NO_SPACE_AFTER_DASH.match(line):
        return Words(number, *AFTER_DASH)
    if not TWO_COLONS.match(line) and _indent(line) > _indent(before):
        found = f'a key that is indented deeper than "{_short(before)}" above it, which has a value already'
        return Words(number, found, f"{_spaces(_indent(before))} in front of it")
    if NO_SPACE.match(before):
        return _without_colon(said, number - 1)
    return Words(number, 'a second ":" in a line', "the text in quotes", 'Write the value as "…".')


def _open_bracket(said: _Said) -> Words | None:
    if said.context not in BRACKETS:
        return None
    opened, closed = tuple(BRACKETS[said.context])
    if said.begun.line < said.at.line:
        return Words(
            said.begun.line, f'"{opened}" without its "{closed}"', f'"{closed}" after the last value', "Add it."
        )
    there = _short(said.line[said.at.column :]) or "the end of the line"
    return Words(said.at.line, f'"{there}" inside "{opened}{closed}"', f'"," or "{closed}" in front of it')


def _indentation(said: _Said) -> Words | None:
    if not said.context.startswith("while parsing a block"):
        return None
    if NO_SPACE_AFTER_DASH.match(said.line):
        return Words(said.at.line, *AFTER_DASH)
    # The keys of a list's item stand behind its dash.
    column = said.begun.column + (2 if "collection" in said.context and not said.line.lstrip().startswith("-") else 0)
    found = f"a line that begins after {_spaces(said.at.column)}"
    return Words(
        said.at.line, found, f"{_spaces(column)}, as in line {said.begun.line + 1}", "Indent it like that line."
    )


def _without_colon(said: _Said, number: int) -> Words:
    line = said.lines[number]
    if NO_SPACE.match(line):
        return Words(number, f'"{_short(line)}"', 'a space after ":"', "Add the space.")
    return Words(number, f'"{_short(line)}", which is no key with a value', '"key: value"')


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _spaces(count: int) -> str:
    return "no space" if count == 0 else "1 space" if count == 1 else f"{count} spaces"


def _short(line: str) -> str:
    text = line.strip()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
