"""Parts of a plan as dataclasses, and their strict reading and writing: what a class declares is exactly what its JSON
object holds, in that order.

A field's type says what its value may be; rules that a type cannot say stand in Annotated (Range, Text, Kinds …). A
field whose default is None is a key that is left out where there is nothing to say; every other key must be there. Only
the standard library is used: plans are read inside the guest too.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from scpslab.core.strict_json import JsonObject

T = typing.TypeVar("T")
LONGEST_SHOWN = 60
KEYS_SHOWN = 12


@typing.dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Part:
    """The base of whatever JSON says: each class is a frozen dataclass, and its fields are given by name.

    `is_mixin`: its keys are declared again by each class below it, where they stand in its object.
    """

    __dataclass_fields__: typing.ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init_subclass__(cls, *, is_mixin: bool = False) -> None:
        super().__init_subclass__()
        if not is_mixin:
            dataclass(frozen=True, kw_only=True)(cls)


class PlanError(ValueError):
    """A plan that is none: where, what was found, what was expected."""


class Misfit(Exception):
    """What was found and expected, while the way to it is still being gathered: nothing is spent on places as long as
    all is well.
    """

    def __init__(self, said: str, *way: str | int) -> None:
        super().__init__(said)
        self.said, self.way = said, [*way]

    def within(self, step: str | int) -> Misfit:
        """The same, seen from the object or list around."""
        self.way.insert(0, step)
        return self

    def place(self, start: str) -> str:
        """Where it is."""
        for step in self.way:
            start = f"{start}[{step}]" if isinstance(step, int) else at(start, step)
        return start or "the plan"


@dataclass(frozen=True)
class Range:
    """Bounds of a number, both included; `above` excludes its own value."""

    least: float | None = None
    most: float | None = None
    above: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a number is within the bounds."""
        low = (self.least is None or value >= self.least) and (self.above is None or value > self.above)
        return low and (self.most is None or value <= self.most)

    def words(self) -> str:
        """The bounds as an error message states them."""
        bounds = [f"of at least {self.least}"] if self.least is not None else []
        bounds += [f"above {self.above}"] if self.above is not None else []
        return " and ".join([*bounds, *([f"at most {self.most}"] if self.most is not None else [])])


@dataclass(frozen=True)
class Text:
    """What a text must be, in words, and the test of it."""

    what: str
    holds: Callable[[str], bool]


@dataclass(frozen=True)
class OneOf:
    """A name of a registry."""

    names: Collection[str]

    def words(self) -> str:
        """The names, in words."""
        return f"one of {', '.join(map(shown, self.names))}"

    def holds(self, value: object) -> bool:
        """Whether a value is such a name."""
        return isinstance(value, str) and value in self.names


@dataclass(frozen=True)
class Kinds:
    """An object of one of several classes; its value at `key` says which."""

    key: str
    classes: Mapping[str, type]


@dataclass(frozen=True)
class DependsOn:
    """A value whose type is that of the value at `key` beside it."""

    key: str
    types: Mapping[str, Any]


@dataclass(frozen=True)
class Items:
    """How many items a list may have."""

    least: int = 0
    most: int = 1_000_000


@dataclass(frozen=True)
class Scalar:
    """A text, a number, true or false."""


@dataclass(frozen=True)
class Form:
    """How values of a type are read and written; `read(value, object around it)` raises Misfit."""

    what: str
    read: Callable[[Any, Mapping[str, Any]], Any]
    write: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True)
class Key:
    """One key of an object: its name, the field that holds it, the form of its value, and whether it may be missing."""

    name: str
    attribute: str
    form: Form
    may_be_missing: bool


def null() -> None:
    """The default of a field whose key must be there, and says null where there is nothing."""


def read(kind: type[T], value: object, place: str = "") -> T:
    """An object of the class `kind` from what JSON said.

    Raises:
        PlanError: an unknown key, a key that is missing, or a value that cannot be.
    """
    try:
        return _object(kind, value)
    except Misfit as misfit:
        raise PlanError(f"{misfit.place(place)}: {misfit.said}") from None


def _object(kind: type[T], value: object) -> T:
    if not isinstance(value, dict):
        raise wrong(value, "an object")
    keys = keys_of(kind)
    if not value.keys() <= keys.keys():
        unknown = next(name for name in value if name not in keys)
        known = list(keys)
        more = ", …" if len(known) > KEYS_SHOWN else ""
        raise Misfit(f"found an unknown key; expected one of {', '.join(known[:KEYS_SHOWN])}{more}", unknown)
    values: dict[str, object] = {}
    for name, wanted in keys.items():
        if name in value:
            try:
                values[wanted.attribute] = wanted.form.read(value[name], value)
            except Misfit as misfit:
                raise misfit.within(name) from None
        elif not wanted.may_be_missing:
            raise Misfit(f"found no such key; expected {wanted.form.what}", name)
    return kind(**values)


def write(part: Any) -> JsonObject:
    """What JSON is to say of a part."""
    written: JsonObject = {}
    for name, wanted in keys_of(type(part)).items():
        value = getattr(part, wanted.attribute)
        if value is not None or not wanted.may_be_missing:
            written[name] = wanted.form.write(value)
    return written


def keys_of(kind: Any) -> dict[str, Key]:
    """The keys of a class by name, in the order in which they are written."""
    return _keys_of(kind)


@cache
def _keys_of(kind: Any) -> dict[str, Key]:
    hints = typing.get_type_hints(kind, include_extras=True)
    keys: dict[str, Key] = {}
    for declared in dataclasses.fields(kind):
        may_be_missing = declared.default is None
        hint = _without_none(hints[declared.name]) if may_be_missing else hints[declared.name]
        # "from", "bytes" and "filter" are words of Python: the fields have an underscore behind them.
        name = declared.name.removesuffix("_")
        keys[name] = Key(name, declared.name, form_of(hint), may_be_missing)
    return keys


def form_of(hint: Any) -> Form:
    """The form of a type."""
    rules: tuple[Any, ...] = ()
    if typing.get_origin(hint) is Annotated:
        hint, *added = typing.get_args(hint)
        rules = tuple(added)
    for rule in rules:
        if isinstance(rule, Kinds):
            return _by_kind(rule)
        if isinstance(rule, DependsOn):
            return _by_neighbour(rule)
        if isinstance(rule, OneOf):
            return _tested(rule.words(), rule.holds)
        if isinstance(rule, Scalar):
            return _tested("a text, a number, true or false", _is_scalar)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _or_null(form_of(_annotated(_without_none(hint), rules)))
    return _of_many(hint, rules) or _plain(hint, rules)


def _of_many(hint: Any, rules: tuple[Any, ...]) -> Form | None:
    """The form of a choice, a list or an object; None for a plain value."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return _choice(inner)
    if origin is tuple:
        return _list(inner, rules)
    if origin is dict:
        return _mapping(inner)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return Form("an object", lambda value, _: _object(hint, value), write)
    return None


def at(place: str, key: str) -> str:
    """The place of a key within an object."""
    shown_key = key if key.isidentifier() and len(key) <= LONGEST_SHOWN else shown(key)
    return f"{place}.{shown_key}" if place else shown_key


def shown(value: object) -> str:
    """A value as a message shows it: on one line, in ASCII, not too long."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"a whole number of {value.bit_length()} bits"
    text = json.dumps(value)
    if len(text) <= LONGEST_SHOWN:
        return text
    return text[:LONGEST_SHOWN] + ('…"' if isinstance(value, str) else "…")


def wrong(value: object, expected: str) -> Misfit:
    """The misfit of a value."""
    return Misfit(f"found {shown(value)}; expected {expected}")


def _annotated(hint: Any, rules: tuple[Any, ...]) -> Any:
    return Annotated[(hint, *rules)] if rules else hint


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) is Annotated:
        inner, *rules = typing.get_args(hint)
        return _annotated(_without_none(inner), tuple(rules))
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    rest = [inner for inner in typing.get_args(hint) if inner is not type(None)]
    return rest[0] if len(rest) == 1 else typing.Union[tuple(rest)]  # noqa: UP007 (made while the program runs)


def _plain(hint: Any, rules: tuple[Any, ...]) -> Form:
    bounds = next((rule for rule in rules if isinstance(rule, Range)), Range())
    text = next((rule for rule in rules if isinstance(rule, Text)), None)
    if hint is bool:
        return _tested("true or false", lambda value: isinstance(value, bool))
    if hint in (int, float):
        name, numbers = ("a whole number", (int,)) if hint is int else ("a number", (int, float))
        return _tested(
            f"{name} {bounds.words()}".strip(),
            lambda value: isinstance(value, numbers) and not isinstance(value, bool) and bounds.holds(value),
        )
    if hint is str and text is not None:
        return _tested(text.what, lambda value: isinstance(value, str) and text.holds(value))
    raise TypeError(f"{hint}: expected a type that a plan can hold")


def _tested(what: str, holds: Callable[[Any], bool]) -> Form:
    def take(value: Any, _around: Mapping[str, Any]) -> Any:
        if not holds(value):
            raise wrong(value, what)
        return value

    return Form(what, take)


def _is_scalar(value: object) -> bool:
    return isinstance(value, bool | int | float) or (isinstance(value, str) and "\0" not in value)


def _choice(choices: tuple[Any, ...]) -> Form:
    what = " or ".join(map(shown, choices)) if len(choices) < 3 else f"one of {', '.join(map(shown, choices))}"
    # True == 1: a choice is its type too.
    kinds, typed = {type(choice) for choice in choices}, {(type(choice), choice) for choice in choices}
    return _tested(what, lambda value: type(value) in kinds and (type(value), value) in typed)


def _or_null(form: Form) -> Form:
    return Form(
        f"{form.what}, or null",
        lambda value, around: None if value is None else form.read(value, around),
        lambda value: None if value is None else form.write(value),
    )


def _list(inner: tuple[Any, ...], rules: tuple[Any, ...]) -> Form:
    """A list of any length, or where no `...` follows its one item, of exactly these items."""
    is_open = inner[-1] is ...
    forms = [form_of(item) for item in (inner[:-1] if is_open else inner)]
    sizes = next(
        (rule for rule in rules if isinstance(rule, Items)), Items() if is_open else Items(len(forms), len(forms))
    )
    number = f"{sizes.least}" if sizes.least == sizes.most else f"{sizes.least} to {sizes.most}"
    what = "a list" if sizes == Items() else f"a list of {number}"

    def take(value: Any, around: Mapping[str, Any]) -> Any:
        if not isinstance(value, list) or not sizes.least <= len(value) <= sizes.most:
            raise wrong(value, what)
        taken = []
        for index, item in enumerate(value):
            try:
                taken.append(forms[0 if is_open else index].read(item, around))
            except Misfit as misfit:
                raise misfit.within(index) from None
        return tuple(taken)

    return Form(
        what, take, lambda value: [forms[0 if is_open else index].write(item) for index, item in enumerate(value)]
    )


def _mapping(inner: tuple[Any, ...]) -> Form:
    names, form = form_of(inner[0]), form_of(inner[1])

    def take(value: Any, around: Mapping[str, Any]) -> Any:
        if not isinstance(value, dict):
            raise wrong(value, "an object")
        taken = {}
        for key, item in value.items():
            try:
                taken[names.read(key, around)] = form.read(item, around)
            except Misfit as misfit:
                raise misfit.within(key) from None
        return taken

    return Form("an object", take, lambda value: {key: form.write(item) for key, item in value.items()})


def _by_kind(rule: Kinds) -> Form:
    def take(value: Any, _around: Mapping[str, Any]) -> Any:
        if not isinstance(value, dict):
            raise wrong(value, "an object")
        kind = value.get(rule.key)
        if not isinstance(kind, str) or kind not in rule.classes:
            raise wrong(kind, f"one of {', '.join(rule.classes)}").within(rule.key)
        return _object(rule.classes[kind], value)

    return Form("an object", take, write)


def _by_neighbour(rule: DependsOn) -> Form:
    forms: dict[str, Form] = {}

    def take(value: Any, around: Mapping[str, Any]) -> Any:
        kind = around.get(rule.key)
        if not isinstance(kind, str) or kind not in rule.types:
            raise Misfit(f"found {shown(kind)} at {rule.key} beside it; expected one of {', '.join(rule.types)}")
        if kind not in forms:
            forms[kind] = form_of(rule.types[kind])
        return forms[kind].read(value, around)

    return Form(
        f"what fits its {rule.key}", take, lambda value: write(value) if dataclasses.is_dataclass(value) else value
    )
