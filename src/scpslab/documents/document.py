"""A file that a person writes: reads it with its line numbers, and checks it against its model, whose complaints become
lines that a person can act on.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from scpslab.core.choices import choice
from scpslab.core.errors import ScenarioError
from scpslab.core.problems import KeyPath, Problem, UnfitError, dotted
from scpslab.documents.parts import NewerVersionError, OneOf, OneOfKinds, PartOfKinds, shown
from scpslab.documents.yaml_lines import Form, read_yaml

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


EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "keys with values",
    "float_type": "a number",
    "int_type": "a whole number",
    "model_type": "keys with values",
    "model_attributes_type": "keys with values",
    "string_type": "text",
    "string_unicode": "text",
    "tuple_type": "a list",
    "finite_number": "a finite number",
    "invalid_key": "a word as key",
}
# Bounds in words, and the key of pydantic's context that has the number.
BOUNDS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
    "multiple_of": ("a multiple of", "multiple_of"),
}
# Of these values the length is wrong.
OF_LENGTH = ("too_short", "too_long", "string_too_short", "string_too_long")

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Document:
    """The data of a file, and the line of every value in it."""

    data: dict[str, Any]
    places: Places

    def held_against(self, model: type[Model], beside: object = None) -> Model:
        """The model of the data. `beside`: what its class takes besides them.

        Raises:
            ScenarioError: all errors of the data, one line each.
        """
        return validated(self.data, self.places, model, beside)

    def extending(self, base: Document, merged: Sequence[str]) -> Document:
        """This document, plus the keys that only the base has.

        Keys in both are this document's; keys in `merged` are merged key by key.

        Complaints name the file that a value is from.
        """
        taken = {key: value for key, value in base.data.items() if key not in self.data}
        inner = {
            key: _beside(base.data[key], self.data[key]) for key in merged if key in base.data and key in self.data
        }
        paths = [
            at
            for at in base.places.lines
            if at[0] in taken or (at[0] in inner and len(at) > 1 and at[1] in inner[at[0]])
        ]
        own = {key: inner[key] | value if inner.get(key) else value for key, value in self.data.items()}
        return Document(taken | own, self.places.over(base.places, paths))


def read(path: Path, form: Form) -> Document:
    """A file's data.

    Raises:
        ScenarioError: no such file, not YAML, a key twice, or not a mapping.
    """
    data, lines = read_yaml(path, form)
    return Document(data, Places(path, lines))


def load(path: Path, form: Form, model: type[Model]) -> tuple[Model, Places]:
    """A file's model, and its places for complaints about conditions between its parts.

    Raises:
        ScenarioError: all errors of the file, one line each.
    """
    document = read(path, form)
    return document.held_against(model), document.places


def _beside(base: Any, own: Any) -> dict[str, Any]:
    """The keys of `base` that `own` lacks; none if one of the two is not a mapping."""
    if not isinstance(base, Mapping) or not isinstance(own, Mapping):
        return {}
    return {key: value for key, value in base.items() if key not in own}


def validated(data: Mapping[str, Any], places: Places, model: type[Model], beside: object = None) -> Model:
    """The model of a file's data.

    Raises:
        ScenarioError: all errors of the data, one line each.
    """
    try:
        return model.model_validate(as_tuples(data), context=beside)
    except ValidationError as error:
        raise places.error(_complaints(error, data, model)) from error


def complaints(data: Mapping[str, Any], model: type[BaseModel]) -> list[Problem]:
    """All errors of a file's data, for a caller that adds errors of its own."""
    try:
        model.model_validate(as_tuples(data))
    except ValidationError as error:
        return _complaints(error, data, model)
    return []


def _complaints(error: ValidationError, data: Mapping[str, Any], model: type[BaseModel]) -> list[Problem]:
    every = error.errors(include_url=False)
    # A file of another kind or version has other keys: complaints about each of them would hide that it is the wrong
    # file.
    for problem in every:
        if problem["loc"] == ("kind",) and problem["type"] == "literal_error":
            advice = "Name a file of this kind, or correct the word."
            return [Problem(("kind",), shown(problem["input"]), problem["ctx"]["expected"], advice)]
        if problem["type"] == "value_error" and isinstance(newer := problem["ctx"]["error"], NewerVersionError):
            return [newer.at(_data_path(problem, data))]
    # pydantic does not count wrong items, and then calls the list too short: the complaints about the items are enough.
    real = [one for one in every if one["type"] != "too_short" or len(one["input"]) < one["ctx"]["min_length"]]
    wishes: dict[KeyPath, list[str]] = {}
    for problem in real:
        if problem["type"] in EXPECTED:
            wishes.setdefault(_data_path(problem, data), []).append(EXPECTED[problem["type"]])
    # If a value fits none of its possible forms, each form complains: one complaint names them all. The caller drops
    # repetitions.
    return [
        _unfit(at, problem, wishes[at]) if problem["type"] in EXPECTED else _told(at, problem, data, model)
        for problem in real
        for at in [_data_path(problem, data)]
    ]


def _unfit(at: KeyPath, problem: ErrorDetails, wishes: list[str]) -> Problem:
    *others, last = dict.fromkeys(wishes)
    several = f"{', '.join(others)} or " if others else ""
    value = problem["input"]
    found = _counted(len(value), value) if problem["type"] in OF_LENGTH and value else shown(value)
    return Problem(at, found, f"{several}{last}", "Correct the value.")


def as_tuples(value: Any) -> Any:
    """The data with tuples for lists: strict and frozen models hold tuples."""
    if isinstance(value, Mapping):
        return {key: as_tuples(inner) for key, inner in value.items()}
    return tuple(as_tuples(inner) for inner in value) if isinstance(value, list | tuple) else value


def _told(at: KeyPath, problem: ErrorDetails, data: Mapping[str, Any], model: type[BaseModel]) -> Problem:
    kind, context, found = problem["type"], problem.get("ctx", {}), problem["input"]
    if kind == "extra_forbidden":
        return _unwanted_key(at, data, model)
    if kind == "missing":
        return Problem(at, "nothing", "this key", "Add it.")
    if kind in ("literal_error", "union_tag_invalid"):
        words = _words_at(at, data, model)
        value = found.get(_tag_of(problem)) if kind == "union_tag_invalid" and isinstance(found, Mapping) else found
        return Problem(at, shown(value), *choice(value, words))
    if kind == "union_tag_not_found":
        return Problem(at, f"no {_tag_of(problem)}", "this key", "Add it.")
    if kind == "value_error" and isinstance(error := context["error"], UnfitError):
        return error.at(at, "Correct the value.")
    return _unfit(at, problem, [_wish(problem)])


def _unwanted_key(at: KeyPath, data: Mapping[str, Any], model: type[BaseModel]) -> Problem:
    keys = sorted(
        {field.alias or name for found in _models_at(at[:-1], data, model) for name, field in _fields(found).items()}
    )
    if at[-1] in keys:
        # A key of another form of the same part: an axis has cases, or values.
        found = f'"{at[-1]}" together with keys of another form'
        return Problem(at, found, "the keys of one form", "Remove it, or the other keys.")
    key, colon, value = str(at[-1]).partition(":")
    if colon and key in keys:
        return Problem((*at[:-1], key), f'"{at[-1]}"', f'"{key}: {value}"', "Add the space.")
    return Problem(at, f'the unknown key "{at[-1]}"', *choice(at[-1], keys))


def _wish(problem: ErrorDetails) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in BOUNDS:
        words, key = BOUNDS[kind]
        return f"{words} {context[key]:g}" if isinstance(context[key], float) else f"{words} {context[key]}"
    match kind:
        case "too_short" | "string_too_short":
            return f"at least {_counted(context['min_length'], problem['input'])}"
        case "too_long" | "string_too_long":
            return f"at most {_counted(context['max_length'], problem['input'])}"
    return f"another value ({problem['msg']})"


def _counted(number: int, value: object) -> str:
    """A number of what a value is made of."""
    part = "key" if isinstance(value, Mapping) else "character" if isinstance(value, str) else "value"
    return f"{'one' if number == 1 else number} {part}{'' if number == 1 else 's'}"


def _tag_of(problem: ErrorDetails) -> str:
    """The key that distinguishes the members of a union; a function that reads the key has the same name."""
    return str(problem["ctx"]["discriminator"]).strip("'()")


def _data_path(problem: ErrorDetails, data: Any) -> KeyPath:
    """The model's location without the words that are not keys of the file (names of union members)."""
    location, kept = problem["loc"], []
    if problem["type"] == "union_tag_invalid":
        location = (*location, _tag_of(problem))
    here: Any = data
    for index, part in enumerate(location):
        if isinstance(here, Mapping):
            if part in here or (problem["type"] == "missing" and index == len(location) - 1):
                kept.append(part)
                here = here.get(part)
        elif isinstance(here, list | tuple) and isinstance(part, int) and part < len(here):
            kept.append(part)
            here = here[part]
    return tuple(kept)


def _models_at(at: KeyPath, data: Any, model: type[BaseModel]) -> list[type[BaseModel]]:
    """The models whose keys may stand at a path.

    Where there are several models, the kind of the part or the stack of the host decides.
    """
    models: list[type[BaseModel]] = [model]
    here: Any = data
    for part in at:
        here = here[part]
        following = [
            found
            for model in models
            for name, field in model.model_fields.items()
            if part == (field.alias or name)
            for found in _models_in(field.annotation)
        ]
        models = following or models
    for tag in ("kind", "stack"):
        if isinstance(here, Mapping) and any(tag in model.model_fields for model in models):
            models = [
                model
                for model in models
                if tag in model.model_fields and here.get(tag, model.model_fields[tag].default) in _choices(model, tag)
            ] or models
    return models


def _words_at(at: KeyPath, data: Any, model: type[BaseModel]) -> list[object]:
    """The words that the nearest key of a path may have as its value, or within it."""
    for length in range(len(at), 0, -1):
        fields = (
            field
            for found in _models_at(at[: length - 1], data, model)
            for name, field in _fields(found).items()
            if at[length - 1] == (field.alias or name)
        )
        if words := [word for field in fields for word in _words_in(field.annotation, field.metadata)]:
            return list(dict.fromkeys(words))
    return []


def _words_in(annotation: Any, rules: Sequence[Any] = ()) -> list[object]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    named = (rule.names for rule in (*rules, *getattr(annotation, "__metadata__", ())) if isinstance(rule, OneOf))
    return [*chain.from_iterable(named), *chain.from_iterable(map(_words_in, get_args(annotation)))]


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return model.keys() if issubclass(model, PartOfKinds) else model.model_fields


def _choices(model: type[BaseModel], tag: str) -> tuple[Any, ...]:
    """The values that a model's `kind` or `stack` may have."""
    field = model.model_fields.get(tag)
    return getattr(field.annotation, "__args__", ()) if field else ()


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    of_kinds = (rule for rule in getattr(annotation, "__metadata__", ()) if isinstance(rule, OneOfKinds))
    return [model for rule in of_kinds for model in rule.named.values()] or [
        model for argument in getattr(annotation, "__args__", ()) for model in _models_in(argument)
    ]
