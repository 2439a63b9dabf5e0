"""Words of 0.3.0: a file in them is read as one in today's.

Each former word stands where today's does: of keys and values at the parts of a scenario (`Part.former_keys`,
`Part.former_values`), of kinds in core/kinds.py, of directions and parameters at the topologies. Models know today's
words alone. `scpslab migrate` puts them into a file (migrated.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeAlias, Union, get_args, get_origin

from pydantic import BaseModel

from scpslab.core.kinds import FORMER
from scpslab.documents.document import Document, read
from scpslab.documents.parts import Mark, OneOfKinds, Part, PartOfKinds
from scpslab.documents.yaml_lines import KeyPath
from scpslab.scenario.model import FORM, ScenarioFile
from scpslab.scenario.paths import Data, mapping_at
from scpslab.scenario.topologies import NoOwn, Topologies, TopologyError

PARAMETERS, LINKS, ANY = "parameters", "links", "*"
# What a parameter said to keep the value that its topology calculates.
TOPOLOGYS_OWN = (None, "none")
# What a swept value may once have been called.
VALUES = frozenset(word for family in FORMER.values() for word in family)


@dataclass(frozen=True)
class Change:
    """A word of a file, the key or the value `at` a place, and what is said today: one word, several paths with the
    same value, or nothing.
    """

    at: KeyPath
    was: str
    now: tuple[str, ...]
    is_key: bool = True

    @property
    def said(self) -> str:
        """What a person is told."""
        return f'"{self.was}" is called "{self.now[0]}" now' if self.now else f'"{self.was}" is not needed any more'


@dataclass(frozen=True)
class Today:
    """A file in today's words with its lines: the file as it is, the former words of its topologies, what is called
    otherwise, and the place in the file of each place in the result.
    """

    document: Document
    file: Document
    words: Words
    changes: tuple[Change, ...]
    origins: Mapping[KeyPath, KeyPath]

    @property
    def notes(self) -> list[str]:
        """What is called otherwise, each word once."""
        places = self.file.places
        first = {change.said: change for change in reversed(self.changes)}
        lines = {change.said: places.lines[change.at] for change in first.values()}
        advice = f"run scpslab migrate {places.path}"
        return [
            f"{places.path}:{lines[said]}: {said}; {advice}" for said in sorted(lines, key=lambda said: lines[said])
        ]


@dataclass(frozen=True)
class Words:
    """The former words of a file's topologies: directions by their links and names, and parameters with the paths below
    `links` that have their values.
    """

    directions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    moved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def direction(self, link: str, word: str) -> str:
        """Today's name of a direction; `link` may be any."""
        of_link = (now for (other, was), now in self.directions.items() if was == word and link in (ANY, other))
        return next(of_link, word)

    def path(self, path: str) -> tuple[str, ...]:
        """The paths that one of 0.3.0 is today."""
        words = path.split(".")
        if words[0] == PARAMETERS and len(words) == 2 and (moved := self.moved.get(words[1])):
            return tuple(f"{LINKS}.{one}" for one in _for_both(moved))
        forms: Forms = (ScenarioFile,)
        for number, word in enumerate(words):
            if Mark.DIRECTION in _keys(forms):
                words[number] = self.direction(words[number - 1], word)
            else:
                words[number] = _former(forms).get(word) or word
            forms = _below(forms, words[number])
        return (".".join(words),)

    def setting(self, path: str, value: Any) -> list[tuple[str, Any]]:
        """A path and its value in today's words; nothing for a parameter that is given its topology's own value."""
        now = () if path.removeprefix(f"{PARAMETERS}.") in self.moved and value in TOPOLOGYS_OWN else self.path(path)
        return [(one, _Translation(self).at_path(one, value, (), ())) for one in now]


def value_today(path: str, value: Any) -> Any:
    """A swept value in today's words. The axis keeps the word that its file has: cells are named by it."""
    return Words().setting(path, value)[0][1] if isinstance(value, str) and value in VALUES else value


def read_today(path: Path, topologies: Topologies | None = None) -> Today:
    """A scenario file in today's words.

    Raises:
        ScenarioError: no such file, not YAML, a key twice, or not a mapping.
    """
    return today(read(path, FORM), topologies or NoOwn())


def today(file: Document, topologies: Topologies, model: type[Part] = ScenarioFile) -> Today:
    """What a file with this model says in today's words."""
    words = words_of(file.data, file.places.path.parent, topologies)
    translation = _Translation(words)
    data = translation.part((model,), file.data, (), ())
    lines = file.places.lines
    own = {to: lines[at] for to, at in translation.origins.items() if at in lines}
    document = Document(data, replace(file.places, lines=own)) if translation.changes else file
    return Today(document, file, words, tuple(translation.changes), translation.origins)


def words_of(data: object, folder: Path, topologies: Topologies) -> Words:
    """The former words of the topologies that a file names. What is wrong with one is said where it is used."""
    directions: dict[tuple[str, str], str] = {}
    moved: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys(_topologies_in(data)):
        try:
            topology = topologies.find(name, folder)
            network = topology.describe(topology.parameters.read({}))
        except TopologyError:
            continue
        directions = {**network.former, **directions}
        moved = {key: one.moved_to for key, one in topology.parameters.declared.items() if one.moved_to} | moved
    return Words(directions, moved)


def _topologies_in(data: object) -> Iterator[str]:
    """The file's own, and those of cases and variants."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key == "topology" and isinstance(value, str):
                yield value
            yield from _topologies_in(value)


class _Translation:
    """A file on its way: the changes so far, and the place in the file of each place in the result."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.changes: list[Change] = []
        self.origins: dict[KeyPath, KeyPath] = {}

    def part(self, forms: Forms, value: Any, at: KeyPath, to: KeyPath) -> Any:
        """What is `at` a place in the file, for the place `to` in the result; `forms`: what it may be."""
        self.origins[to] = at
        if isinstance(value, list):
            return self._list(_below(forms, 0), value, at, to)
        if not isinstance(value, dict):
            return value
        found: Data = {}
        for key, inner in value.items():
            for name in self._names(forms, value, key, at):
                here, there = (*at, key), (*to, name)
                if Mark.PATH in _keys(forms):
                    found[name] = self.at_path(name, inner, here, there)
                else:
                    found[name] = self._inner(forms, value, name, inner, here, there)
        if not at and isinstance(found.get(PARAMETERS), dict):
            self._move_parameters(found)
        return found

    def at_path(self, path: str, value: Any, at: KeyPath, to: KeyPath) -> Any:
        """The value that a file has for one of today's paths."""
        *before, last = path.split(".")
        forms: Forms = (ScenarioFile,)
        for word in before:
            forms = _below(forms, word)
        return self._inner(forms, {}, last, value, at, to)

    def _list(self, forms: Forms, values: list[Any], at: KeyPath, to: KeyPath) -> list[Any]:
        found: list[Any] = []
        for number, value in enumerate(values):
            here = (*at, number)
            if Mark.PATH in forms and isinstance(value, str):
                now = self.words.path(value)
                self._changed(Change(here, value, now, is_key=False))
                self.origins |= {(*to, len(found) + index): here for index in range(len(now))}
                found += now
            else:
                found.append(self.part(forms, value, here, (*to, len(found))))
        return found

    def _names(self, forms: Forms, beside: Data, key: str, at: KeyPath) -> tuple[str, ...]:
        """The names that a key has today."""
        if Mark.PATH in _keys(forms):
            now = self.words.path(key)
        elif Mark.DIRECTION in _keys(forms):
            now = (self.words.direction(str(at[-1]), key),)
        else:
            today = _former(forms).get(key, key)
            now = () if key and not today else (today,)
        # Who writes both words is told of the one that is not known.
        if any(name in beside for name in now):
            return (key,)
        self._changed(Change((*at, key), key, now))
        return now

    def _inner(self, forms: Forms, beside: Data, name: str, value: Any, at: KeyPath, to: KeyPath) -> Any:
        """The value of a key; `beside`: what it stands among."""
        below = _below(forms, name)
        if not isinstance(value, str):
            return self.part(below, value, at, to)
        now = _former_values(forms, name).get(value, value)
        if Mark.DIRECTION in below:
            now = self.words.direction(str(beside.get("link", ANY)), value)
        self.origins[to] = at
        self._changed(Change(at, value, (now,), is_key=False))
        return now

    def _changed(self, change: Change) -> None:
        if change.now != (change.was,):
            self.changes.append(change)

    def _move_parameters(self, found: Data) -> None:
        """Puts parameters that belong to links there, unless the file has another value for the link."""
        for name in [name for name in found[PARAMETERS] if name in self.words.moved]:
            value = found[PARAMETERS].pop(name)
            del self.origins[PARAMETERS, name]
            for path in self.words.moved[name] if value not in TOPOLOGYS_OWN else ():
                *before, last = (LINKS, *path.split("."))
                here = mapping_at(found, before)
                if last not in here:
                    here[last] = value
                    self.origins[*before, last] = (PARAMETERS, name)
            self.changes.append(Change((PARAMETERS, name), name, self.words.path(f"{PARAMETERS}.{name}")))
        if not found[PARAMETERS]:
            del found[PARAMETERS]


class _Many(NamedTuple):
    """A list or a mapping: what its keys and its values may be."""

    keys: tuple[Any, ...]
    values: tuple[Any, ...]


# What a value may be: models, lists and mappings of them, marks.
Forms: TypeAlias = tuple[type[Part] | _Many | Mark, ...]


def _forms(annotation: Any) -> Iterator[Any]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from (mark for mark in arguments[1:] if isinstance(mark, Mark))
        of_kinds = [kind for rule in arguments[1:] if isinstance(rule, OneOfKinds) for kind in rule.named.values()]
        yield from of_kinds or _forms(arguments[0])
    elif origin in (Union, UnionType):
        for one in arguments:
            yield from _forms(one)
    elif origin is dict:
        yield _Many(tuple(_forms(arguments[0])), tuple(_forms(arguments[1])))
    elif origin is tuple:
        yield _Many((), tuple(_forms(arguments[0])))
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation


@cache
def _fields(part: type[Part]) -> Mapping[str, Forms]:
    fields = part.keys() if issubclass(part, PartOfKinds) else part.model_fields
    return {
        spec.alias or name: (*(mark for mark in spec.metadata if isinstance(mark, Mark)), *_forms(spec.annotation))
        for name, spec in fields.items()
    }


@cache
def _below(forms: Forms, word: str | int) -> Forms:
    """What the value of a key, or an item of a list, may be."""
    found: list[Any] = []
    for form in forms:
        if isinstance(form, _Many):
            found += form.values
        elif not isinstance(form, Mark):
            found += _fields(form).get(str(word), ())
    return tuple(dict.fromkeys(found))


@cache
def _keys(forms: Forms) -> frozenset[Any]:
    """The marks of a mapping's keys."""
    return frozenset(mark for form in forms if isinstance(form, _Many) for mark in form.keys)


def _parts(forms: Forms) -> Iterator[type[Part]]:
    for form in forms:
        if isinstance(form, type):
            yield form
            yield from form.KINDS.values() if issubclass(form, PartOfKinds) else ()


@cache
def _former(forms: Forms) -> Mapping[str, str]:
    """Keys by the names that they had."""
    return {was: now for part in _parts(forms) for was, now in part.former_keys.items()}


@cache
def _former_values(forms: Forms, key: str) -> Mapping[str, str]:
    """Values of a key by the names that they had."""
    return {was: now for part in _parts(forms) for was, now in part.former_values.get(key, {}).items()}


def _for_both(paths: Iterable[str]) -> tuple[str, ...]:
    """Paths that differ in nothing but the direction as one path to both."""
    by_rest: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        link, _, rest = path.split(".", maxsplit=2)
        by_rest.setdefault((link, rest), []).append(path)
    return tuple(f"{link}.{ANY}.{rest}" if len(same) == 2 else same[0] for (link, rest), same in by_rest.items())
