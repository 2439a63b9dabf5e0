"""Reading the JSON files of a folder. What is missing or cannot be read is a ResultError that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scpslab import strict_json
from scpslab.errors import ResultError

FORMAT = 1
AGAIN = 'Run the scenario again: "scpslab run" keeps what is finished and makes the rest anew.'


class NewerFormat(ResultError):
    """A file that a newer program wrote: nothing is wrong with it."""


def json_object(path: Path) -> dict[str, Any]:
    """The object that a file holds.

    Raises:
        ResultError: it cannot be read, or holds something else.
    """
    try:
        fields = strict_json.loads(path.read_bytes())
    except OSError as error:
        raise ResultError(f"{path}: found {error.strerror}; expected one JSON object. See to the file.") from error
    except strict_json.JsonError as error:
        raise ResultError(f"{path}: {error}; expected one JSON object. {AGAIN}") from error
    if not isinstance(fields, dict):
        raise ResultError(f"{path}: found {type(fields).__name__}; expected one JSON object. {AGAIN}")
    return fields


def refuse_newer(path: Path, found: object) -> None:
    """Raises where a file's format number is none, or a newer program's."""
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ResultError(f'{path}: format: found "{str(found)[:40]}"; expected {FORMAT}. {AGAIN}')
    if found > FORMAT:
        raise NewerFormat(f"{path}: format: found {found}; expected at most {FORMAT}. The run was written by a newer scpslab: use that one.")
