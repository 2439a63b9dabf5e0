"""Strict reading of JSON from outside: UTF-8, no key twice, no NaN, nothing that cannot be written again.

An error is a ValueError in one line. A value of JSON is a `Json`; `text`, `number`, `count`, `section` and `items`
read a field of an object whose writer is not trusted.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeAlias, TypeVar

T = TypeVar("T")
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]
# Each may take 250 bytes: an object with one key.
MOST_VALUES = 1_000_000
# Python reads whole numbers that no float holds.
LARGEST = 1e308


class JsonError(ValueError):
    """Text that is not JSON, or goes beyond JSON; the message says what was found."""


def loads(text: bytes | str) -> Json:
    """The value of a text.

    Raises:
        JsonError: the text is not UTF-8, not JSON, too large, nested too deeply, or has a key twice or a number that is
            none.
    """
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        # Every value but the first follows one of these.
        if sum(map(decoded.count, ",[{:")) > MOST_VALUES:
            raise JsonError(f"found more than {MOST_VALUES} values")
        value: Json = json.loads(decoded, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except UnicodeDecodeError as error:
        raise JsonError(
            f"found the byte 0x{error.object[error.start]:02x} at {error.start}, which is not UTF-8"
        ) from error
    except json.JSONDecodeError as error:
        raise JsonError(
            "found nothing"
            if not decoded.strip()
            else f"found no JSON in line {error.lineno}, column {error.colno} ({error.msg})"
        ) from error
    except RecursionError as error:
        raise JsonError("found JSON that is nested too deeply") from error
    except ValueError as error:
        # Python's own limit: a whole number of thousands of digits.
        raise (
            error if isinstance(error, JsonError) else JsonError("found a whole number of thousands of digits")
        ) from error
    if "\\ud" in decoded.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise JsonError("found half of a surrogate pair, which is no character") from error
    return value


def text(fields: Mapping[str, object], key: str) -> str | None:
    """The text under `key`, None for anything else."""
    value = fields.get(key)
    return value if isinstance(value, str) else None


def number(fields: Mapping[str, object], key: str) -> float | None:
    """The number under `key`, None for anything else."""
    value = fields.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) <= LARGEST:
        return None
    return float(value)


def count(fields: Mapping[str, object], key: str) -> int | None:
    """The whole number under `key`, None for anything else."""
    value = fields.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def whole(fields: Mapping[str, object], key: str) -> int:
    """The whole number under `key`, where a program of ours must have written one.

    Raises:
        JsonError: it has not.
    """
    if (value := count(fields, key)) is None:
        raise JsonError(f"{key}: found {ascii(fields.get(key))[:60]}; expected a whole number")
    return value


def section(fields: Mapping[str, Json], key: str) -> JsonObject:
    """The object under `key`, an empty one for anything else."""
    value = fields.get(key)
    return value if isinstance(value, dict) else {}


def items(fields: Mapping[str, Json], key: str, kind: type[T]) -> list[T]:
    """The values of a kind in the list under `key`; none for anything else."""
    value = fields.get(key)
    return [item for item in value if isinstance(item, kind)] if isinstance(value, list) else []


def _object(pairs: Sequence[tuple[str, Json]]) -> JsonObject:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonError(f"found the key {ascii(key)[:60]} twice")
            seen.add(key)
    return fields


def _constant(word: str) -> NoReturn:
    raise JsonError(f"found {word}, which is no number of JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError(f"found the number {text[:40]}, which is too large")
    return value
