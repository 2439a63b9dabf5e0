"""Strict reading of JSON from outside: UTF-8, no key twice, no NaN, nothing that cannot be written again.

An error is a ValueError in one line.
"""

from __future__ import annotations

import json
import math
from typing import Any

# Each may take 250 bytes: an object with one key.
MOST_VALUES = 1_000_000


class JsonError(ValueError):
    """Text that is not JSON, or goes beyond JSON; the message says what was found."""


def loads(text: bytes | str) -> Any:
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
        value = json.loads(decoded, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise JsonError(f"found the key {ascii(twice)[:60]} twice")
    return fields


def _constant(word: str) -> Any:
    raise JsonError(f"found {word}, which is no number of JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError(f"found the number {text[:40]}, which is too large")
    return value
