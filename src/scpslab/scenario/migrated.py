"""A file's text in today's words: nothing but the words changes, and what belongs elsewhere moves there.

The words are replaced at the marks that YAML's reader leaves; comments, order and layout stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from scpslab.core.errors import ScenarioError
from scpslab.documents.document import Document
from scpslab.documents.places import Places
from scpslab.documents.yaml_lines import KeyPath, content_of, read_content
from scpslab.scenario.campaign import CampaignFile
from scpslab.scenario.former import LINKS, PARAMETERS, Change, Today, today
from scpslab.scenario.model import FORM, ScenarioFile
from scpslab.scenario.paths import mapping_at
from scpslab.scenario.topologies import Topologies

INDENT = "  "


class _Entry(NamedTuple):
    """A value in the text, its key, and what both are in."""

    key: yaml.Node | None
    value: yaml.Node
    parent: yaml.CollectionNode


class _Edit(NamedTuple):
    """What stands instead of a piece of the text."""

    start: int
    end: int
    text: str


def migrated(path: Path, topologies: Topologies) -> tuple[str, str]:
    """A scenario's or campaign's text, and its text in today's words.

    Raises:
        ScenarioError: no such file or none of its kind, or a layout in which the words cannot be replaced.
    """
    content = _content(path)
    found = _today(content, path, topologies)
    text = content.decode("utf-8")
    new = _Text(text, found).edited()
    again = _today(new.encode(), path, topologies)
    if again.changes or again.document.data != found.document.data:
        raise ScenarioError(
            f"{path}: found a layout in which words cannot be replaced; expected one value to a key, as "
            "scpslab new writes it. Replace them by hand: scpslab validate names them."
        )
    return text, new


def _content(path: Path) -> bytes:
    try:
        return content_of(path)
    except OSError as error:
        raise ScenarioError(f"{path}: found {error.strerror}; expected a scenario file. Correct the path.") from error


def _today(content: bytes, path: Path, topologies: Topologies) -> Today:
    data, lines = read_content(content, path, FORM)
    model = CampaignFile if data.get("kind") == "campaign" else ScenarioFile
    found = today(Document(data, Places(path, lines)), topologies, model)
    # A file with both words of one thing means nothing; it stays as it is until a person has chosen.
    found.document.held_against(model)
    return found


class _Text:
    """The text of a file, and where its values are."""

    def __init__(self, text: str, found: Today) -> None:
        self.text, self.found = text, found
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        assert isinstance(root, yaml.CollectionNode)  # it was read as a mapping
        self.entries = dict(_entries(root, ()))
        self.entries[()] = _Entry(None, root, root)

    def edited(self) -> str:
        """The text in today's words."""
        moved = [change for change in self.found.changes if change.at[0] == PARAMETERS]
        edits = [edit for change in self.found.changes if change not in moved for edit in self._edits(change)]
        edits += self._moves(moved) if moved else []
        text = self.text
        for edit in sorted(edits, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text

    def _edits(self, change: Change) -> Iterator[_Edit]:
        entry = self.entries[change.at]
        node = entry.key if change.is_key else entry.value
        assert node is not None  # a key that has another name is in the text
        if not change.now:
            yield self._without(change.at)
            return
        start, end = node.start_mark.index, node.end_mark.index
        quote = self.text[start] if self.text[start] in "'\"" else ""
        first, *more = (f"{quote}{word}{quote}" for word in change.now)
        yield _Edit(start, end, first)
        if more:
            value = self.text[entry.value.start_mark.index : entry.value.end_mark.index]
            words = [f"{word}: {value}" for word in more] if change.is_key else more
            between = ", " if entry.parent.flow_style else f"\n{self._column(node)}{'' if change.is_key else '- '}"
            yield _Edit(entry.value.end_mark.index, entry.value.end_mark.index, "".join(between + one for one in words))

    def _column(self, node: yaml.Node) -> str:
        """The indent of an item or key of a block."""
        start = node.start_mark.index
        line = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        return " " * (len(line) - len(line.lstrip(" ")))

    def _without(self, at: KeyPath) -> _Edit:
        """The edit by which a key and its value go; a comment in their line stays."""
        entry = self.entries[at]
        assert entry.key is not None
        assert isinstance(entry.parent, yaml.MappingNode)
        start, end = entry.key.start_mark.index, self._end(entry.value)
        names = [key.value for key, _ in entry.parent.value]
        is_last = names[-1] == at[-1]
        if entry.parent.flow_style:
            if not is_last:
                return _Edit(start, self._start_of((*at[:-1], names[names.index(str(at[-1])) + 1])), "")
            return _Edit(self._end(entry.parent.value[-2][1]) if len(names) > 1 else start, end, "")
        line_start, rest = self.text.rfind("\n", 0, start) + 1, re.compile(r"[ \t]*(#?)").match(self.text, end)
        assert rest is not None
        if self.text[line_start:start].strip():
            # Behind the dash of a list's item: what follows moves up, or the comment stays there.
            return _Edit(start, rest.end() - 1 if rest[1] else self._start_of((*at[:-1], names[1])), "")
        return _Edit(start, rest.end() - 1, "") if rest[1] else _Edit(line_start, self.text.find("\n", end) + 1, "")

    def _start_of(self, at: KeyPath) -> int:
        key = self.entries[at].key
        assert key is not None
        return int(key.start_mark.index)

    def _end(self, node: yaml.Node) -> int:
        """Where a value ends; the mark of a block's end is behind comments and empty lines."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            return self._end(last[1] if isinstance(last, tuple) else last)
        return int(node.end_mark.index)

    def _moves(self, changes: list[Change]) -> Iterator[_Edit]:
        """What takes parameters to the links to which they belong."""
        moved = {change.at for change in changes}
        added: dict[str, Any] = {}
        for to, at in self.found.origins.items():
            if at in moved:
                *before, last = map(str, to)
                mapping_at(added, before)[last] = self._said(at)
        everything = all((PARAMETERS, key) in moved for key in self.found.file.data[PARAMETERS])
        if not everything:
            yield from (self._without(at) for at in moved)
            yield from self._additions(self.entries[()].value, (), added)
            return
        section = self.entries[PARAMETERS,]
        start, end = self._start_of((PARAMETERS,)), self._end(section.value)
        comments = [line.strip() for line in self.text[start:end].splitlines() if line.strip().startswith("#")]
        kept = "".join(f"{line}\n" for line in comments)
        if LINKS in self.found.file.data:
            yield _Edit(start, self.text.find("\n", end) + 1 or len(self.text), kept)
            yield from self._additions(self.entries[()].value, (), added)
        else:
            yield _Edit(start, end, kept + _block(added, ""))

    def _said(self, at: KeyPath) -> str:
        node = self.entries[at].value
        return self.text[node.start_mark.index : node.end_mark.index]

    def _additions(self, node: yaml.Node, to: KeyPath, added: Mapping[str, Any]) -> Iterator[_Edit]:
        """What puts keys into a mapping of the text, `to` today's place of which they belong."""
        new: dict[str, Any] = {}
        for key, value in added.items():
            at = self.found.origins.get((*to, key))
            known = self.entries.get(at) if at is not None and isinstance(value, dict) else None
            if known is not None and isinstance(known.value, yaml.MappingNode) and known.value.value:
                yield from self._additions(known.value, (*to, key), value)
            elif known is not None:
                start = known.value.start_mark.index
                # Nothing may stand there, right behind the colon.
                space = " " if self.text[start - 1] == ":" else ""
                yield _Edit(start, known.value.end_mark.index, space + _flow(value))
            else:
                new[key] = value
        assert isinstance(node, yaml.MappingNode)
        parts = {key: value for key, value in new.items() if isinstance(value, dict)}
        plain = {key: value for key, value in new.items() if key not in parts}
        first, last = node.value[0][0], node.value[-1][1]
        start, end, indent = first.start_mark.index, self._end(last), " " * first.start_mark.column
        # Plain values before what is there, parts behind it: a comment in its line stays there.
        if plain:
            yield _Edit(start, start, f"{_flow(plain)[1:-1]}, " if node.flow_style else _block(plain, indent, indent))
        if parts and node.flow_style:
            yield _Edit(end, end, f", {_flow(parts)[1:-1]}")
        elif parts:
            end = self.text.find("\n", end) if "\n" in self.text[end:] else len(self.text)
            yield _Edit(end, end, f"\n{indent}{_block(parts, indent)}")


def _entries(node: yaml.Node, at: KeyPath) -> Iterator[tuple[KeyPath, _Entry]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*at, key.value), _Entry(key, value, node)
            yield from _entries(value, (*at, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*at, number), _Entry(None, value, node)
            yield from _entries(value, (*at, number))


def _flow(value: Any) -> str:
    """A part with its values as the file writes them, in one line."""
    if not isinstance(value, dict):
        return str(value)
    return f"{{{', '.join(f'{key}: {_flow(inner)}' for key, inner in value.items())}}}"


def _block(value: Mapping[str, Any], indent: str, after: str | None = None) -> str:
    """The same in lines, each direction of a link in one; `after`: the indent of what follows, if anything does."""
    deeper = indent + INDENT
    lines = [
        f"{key}:\n{deeper}{_block(inner, deeper)}" if len(deeper) <= 2 * len(INDENT) else f"{key}: {_flow(inner)}"
        for key, inner in value.items()
    ]
    return f"\n{indent}".join(lines) + ("" if after is None else f"\n{after}")
