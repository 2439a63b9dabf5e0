"""Reads the JSON files of a folder. A missing or unreadable file is a ResultError that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scpslab.core import strict_json
from scpslab.core.errors import NewerFormat, ResultError

FORMAT = 1
AGAIN = 'Run the scenario again: "scpslab run" keeps finished cells and runs the others again.'


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        ResultError: the file cannot be read, or holds something else.
    """
    try:
        fields = strict_json.loads(path.read_bytes())
    except OSError as error:
        raise ResultError(
            f"{path}: found {error.strerror}; expected a file with one JSON object. Check the path and its permissions."
        ) from error
    except strict_json.JsonError as error:
        raise ResultError(f"{path}: {error}; expected one JSON object. {AGAIN}") from error
    if not isinstance(fields, dict):
        raise ResultError(f"{path}: found {type(fields).__name__}; expected one JSON object. {AGAIN}")
    return fields


def check_format(path: Path, found: object, newest: int = FORMAT) -> None:
    """Raises an error if a file's format number is none that this program reads: those from 1 to the one that it writes
    (docs/formats.md).
    """
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ResultError(f'{path}: format: found "{str(found)[:40]}"; expected {newest}. {AGAIN}')
    if found > newest:
        raise NewerFormat(
            f"{path}: format: found {found}; expected {newest}. A newer scpslab wrote the run: use that version."
        )
