"""Who handed a submission in, as the platform knows it; the submission's own word does not count."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from scpslab.core.errors import ScenarioError
from scpslab.core.names import is_name, shown

COLUMNS = ("file", "student")
LARGEST_BYTES = 1 << 20


def read_submitters(path: Path, submissions: Sequence[Path]) -> Mapping[Path, str]:
    """The students of a CSV file with the columns file and student; a file stands there by its name, or by its path.

    Raises:
        ScenarioError: all errors of the file, one line each.
    """
    try:
        content = path.read_bytes()[: LARGEST_BYTES + 1].decode("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(content, newline=""), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ScenarioError(f"{path}: found {getattr(error, 'strerror', None) or error}; expected CSV with the columns file, student. Correct it.") from error
    wrong = [] if rows and set(COLUMNS) <= set(rows[0]) else [f"{path}:1: found no columns file, student and no line below; expected them. Add them."]
    by_name: dict[str, str] = {}
    for number, row in enumerate(rows if not wrong else [], start=2):
        name, student = (row["file"] or "").strip(), (row["student"] or "").strip()
        if not name or not is_name(student):
            wrong.append(f"{path}:{number}: found {shown(name)}, {shown(student)}; expected a file and a student's id. Correct the line.")
        elif by_name.setdefault(name, student) != student:
            wrong.append(f"{path}:{number}: found {shown(name)} a second time with another student; expected it once. Remove a line.")
    if wrong:
        raise ScenarioError("\n".join(wrong))
    found = {one: by_name.get(str(one), by_name.get(one.name)) for one in submissions}
    return {one: student for one, student in found.items() if student is not None}
