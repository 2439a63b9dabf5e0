"""The base class of every part of a file that a person writes."""

import math
import re
from collections.abc import Callable, Collection, Mapping
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, Self, Union

import pydantic
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticKnownError, core_schema

from scpslab.core.contents import parted
from scpslab.core.problems import UnfitError

LONGEST_SHOWN = 60


class Part(pydantic.BaseModel):
    """Strict (no text where a number is meant, nor the other way round), frozen, unknown keys refused."""

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=True, defer_build=True
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: pydantic.GetJsonSchemaHandler) -> JsonSchemaValue:
        made = handler(core)
        schema = handler.resolve_ref_schema(made)
        schema["description"], keys = said_of(cls)
        for name, text in keys.items():
            schema["properties"][cls.model_fields[name].alias or name]["description"] = text
        return made


def said_of(part: type[pydantic.BaseModel]) -> tuple[str, dict[str, str]]:
    """What a part's docstring says of the part itself, and, under "Attributes:", of each of its keys."""
    summary, keys = "", dict[str, str]()
    for each in reversed(part.__mro__):
        summary, said = parted(each.__dict__.get("__doc__"), "Attributes")
        keys |= said
    return summary, {name: text for name, text in keys.items() if name in part.model_fields}


def key(
    default: Any = ...,
    *,
    says: str | None = None,
    example: Any = None,
    alias: str | None = None,
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """A key of a part: its default (a key without one is required), its meaning (`says`) where the docstring of the
    part does not say it, an example, and its bounds.
    """
    return pydantic.Field(
        default, description=says, examples=None if example is None else [example], alias=alias, ge=least, le=most
    )


class Band(Part):
    """A range of numbers with one end or both.

    Attributes:
        at_least: Lower end of the band.
        at_most: Upper end of the band.
    """

    at_least: float | None = key(None, example=62)
    at_most: float | None = key(None, example=70)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends; an infinite one where the band has none."""
        return -math.inf if self.at_least is None else self.at_least, math.inf if self.at_most is None else self.at_most

    def includes(self, number: float) -> bool:
        """Whether a number is in the band."""
        return self.ends[0] <= number <= self.ends[1]

    @pydantic.model_validator(mode="after")
    def _has_band(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise UnfitError("no band", "at_least, at_most or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise UnfitError(f"at_least {self.at_least:g} above at_most {self.at_most:g}", "a band")
        return self


class NewerVersionError(UnfitError):
    """A file for a newer scpslab: whatever else is strange in it may be right there."""


def _known_version(value: object) -> object:
    # Python takes true and 1.0 for 1.
    if type(value) is int and value > 1:
        advice = "It is for a newer scpslab: use that one."
        raise NewerVersionError(str(value), "at most 1, what this scpslab knows", advice)
    if type(value) is not int or value != 1:
        raise UnfitError(shown(value), "1")
    return value


def shown(value: object) -> str:
    """A value of a file in a message."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "keys with values" if value else "no keys"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, bool):
        return str(value).lower()
    text = f'"{value}"' if isinstance(value, str) else f"the date {value}" if isinstance(value, date) else repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


Version = Annotated[Literal[1], pydantic.BeforeValidator(_known_version)]


class PartOfKinds(Part):
    """A part with keys of its own and, flat beside them, those of all kinds of a registry; its own choose a kind.

    `KINDS`: each kind's own model. What is said of kinds that are not chosen waits for a sweep that chooses them.
    """

    KINDS: ClassVar[Mapping[str, type[Part]]] = {}
    _parts: dict[str, Part] = pydantic.PrivateAttr(default_factory=dict)

    @classmethod
    def keys(cls) -> dict[str, FieldInfo]:
        """Its own keys, then those of the kinds; what kinds share stands once."""
        of_kinds = (field for kind in cls.KINDS.values() for field in kind.model_fields.items())
        return cls.model_fields | dict(of_kinds)

    @classmethod
    def said_by_kinds(cls, key: str) -> str:
        """What the kinds add to the meaning of one of its own keys."""
        return ""

    @pydantic.model_validator(mode="wrap")
    @classmethod
    def _divide(cls, data: object, read_own: pydantic.ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, Mapping):
            return read_own(data)
        of_kinds = {name for kind in cls.KINDS.values() for name in kind.model_fields}
        readers: dict[str, Callable[[object], Part]] = {name: kind.model_validate for name, kind in cls.KINDS.items()}
        parts, wrong = {}, []
        for name, read in {"": read_own, **readers}.items():
            wanted = cls.KINDS[name].model_fields.keys() if name else data.keys() - of_kinds
            try:
                parts[name] = read({key: value for key, value in data.items() if key in wanted})
            except pydantic.ValidationError as error:
                wrong += error.errors(include_url=False)
        if wrong:
            raise pydantic.ValidationError.from_exception_data(cls.__name__, [_again(one) for one in wrong])
        self = parts.pop("")
        assert isinstance(self, cls)  # what its own reader makes
        self._parts.update(parts)
        return self

    @pydantic.model_serializer(mode="wrap")
    def _flat(self, own: pydantic.SerializerFunctionWrapHandler, info: pydantic.SerializationInfo) -> dict[str, Any]:
        kinds = (part.model_dump(mode=info.mode, exclude_none=info.exclude_none) for part in self._parts.values())
        flat: dict[str, Any] = own(self)
        return flat | {name: value for kind in kinds for name, value in kind.items()}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: pydantic.GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(super().__get_pydantic_json_schema__(core, handler))
        for name, spec in schema["properties"].items():
            spec["description"] = f"{spec['description'].removesuffix('.')}{cls.said_by_kinds(name)}."
        for kind in cls.KINDS.values():
            schema["properties"] |= kind.model_json_schema()["properties"]
        return schema

    def of(self, kind: str) -> Any:
        """What is said of a kind: its own model, with the kind's defaults."""
        return self._parts[kind]


def _again(error: ErrorDetails) -> InitErrorDetails:
    """An error of a part as one of the whole."""
    return InitErrorDetails(type=error["type"], loc=error["loc"], input=error["input"], ctx=error.get("ctx", {}))


class OneOf:
    """A text that must be one of some names, which a registry knows; the annotation of a field: the form and the
    complaints of a Literal.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    def __get_pydantic_core_schema__(
        self, _source: Any, _handler: pydantic.GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(
        self, _core: CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(core_schema.literal_schema(list(self.names)))

    def _check(self, value: object) -> object:
        if not isinstance(value, str) or value not in self.names:
            *others, last = map(repr, self.names)
            raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})
        return value


class OneOfKinds:
    """A part that is one of the kinds of a registry, of those that have keys; the annotation of a field.

    `discriminator`: the key that says which one, or a function that finds its value.
    """

    def __init__(self, kinds: Mapping[str, type[Part]], discriminator: Any = "kind") -> None:
        self.kinds, self.discriminator = kinds, discriminator
        # The names of the kinds that it reads; others may come.
        self._read_by: tuple[list[str], pydantic.TypeAdapter[Any]] | None = None

    @property
    def named(self) -> dict[str, type[Part]]:
        """The kinds that files name."""
        return {name: kind for name, kind in self.kinds.items() if kind.model_fields}

    @property
    def _reader(self) -> pydantic.TypeAdapter[Any]:
        named = self.named
        if self._read_by is None or self._read_by[0] != [*named]:
            members = tuple(Annotated[kind, pydantic.Tag(name)] for name, kind in named.items())
            union: Any = Annotated[Union[members], pydantic.Discriminator(self.discriminator)]  # noqa: UP007 (made while the program runs)
            self._read_by = [*named], pydantic.TypeAdapter(union)
        return self._read_by[1]

    def __get_pydantic_core_schema__(
        self, _source: Any, _handler: pydantic.GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(
        self, _core: CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(self._reader.core_schema)

    def _read(self, value: object) -> Part:
        part: Part = self._reader.validate_python(value)
        return part


class Spelt:
    """A text of a pattern, which `means` says in words; the annotation of a field."""

    def __init__(self, pattern: str, means: str) -> None:
        self.pattern, self.means = pattern, means

    def __get_pydantic_core_schema__(
        self, source: Any, handler: pydantic.GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: pydantic.GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(core) | {"pattern": self.pattern}

    def _check(self, value: str) -> str:
        if re.fullmatch(self.pattern, value) is None:
            raise UnfitError(shown(value), self.means)
        return value


def exactly_one_of(first: str, second: str) -> Any:
    """A validator of a part: exactly one of two keys is said."""

    def check(part: Any) -> Any:
        said = [name for name in (first, second) if getattr(part, name) is not None]
        if len(said) != 1:
            raise UnfitError(f"{'both' if said else 'neither'} of {first} and {second}", "exactly one of them")
        return part

    return pydantic.model_validator(mode="after")(check)


def one_line(least: int, most: int) -> pydantic.AfterValidator:
    """A text of one line with so many characters, all of which can be shown; line ends around it are taken away."""

    def check(value: str) -> str:
        text = value.strip()
        strange = [letter for letter in text if not letter.isprintable()]
        if strange or not least <= len(text) <= most:
            found = f"the character {strange[0]!a}" if strange else f"{len(text)} characters"
            raise UnfitError(found, f"one line of {least} to {most} characters")
        return text

    return pydantic.AfterValidator(check)
