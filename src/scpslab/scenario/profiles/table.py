"""CSV, the format of profiles here: a row for each time at which something changes.

The first line names the columns: `t_s`, and any of `rate_bit_s`, `delay_s`, `ber`, `up` (1 or 0), `packets`. An empty
cell says that nothing changes. Lines that begin with # are comments, and `# repeat_s: 120` says that everything begins
again.
"""

from __future__ import annotations

import csv
import re
from decimal import Decimal

from scpslab.core.names import shown
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Format, Options
from scpslab.scenario.profiles.profile import SECOND_NS, Imported, Profile, decoded, number, seconds

# Columns, and where a profile has them; base units of one.
COLUMNS = {
    "rate_bit_s": ("rate_bps", 1),
    "delay_s": ("delay_ns", SECOND_NS),
    "ber": ("ber", None),
    "up": ("up", 1),
    "packets": ("packets", 1),
}
REPEAT = re.compile(r"#\s*repeat_s:\s*(\S+)\s*", re.ASCII)


class Table(Format):
    """One direction, with all that a profile can say."""

    name, suffixes = "csv", (".csv",)
    says = "scpslab's own table: each row says what changes at a time"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The table."""
        repeat_ns, header = None, None
        steps: dict[str, list[tuple[int, float]]] = {field: [] for field, _ in COLUMNS.values()}
        for at, line in enumerate(decoded(data, name).splitlines(), 1):
            subject = f"{name}:{at}"
            if found := REPEAT.fullmatch(line):
                repeat_ns = number(found[1], "repeat_s", subject, SECOND_NS)
            if not line.strip() or line.startswith("#"):
                continue
            cells = _cells(line, subject)
            if header is None:
                header = _header(cells, subject)
                continue
            if len(cells) != len(header):
                raise UnfitError(f"{len(cells)} cells", f"{len(header)}, as in the first line", "Correct it.", subject)
            row = dict(zip(header, cells, strict=True))
            t_ns = number(row.pop("t_s"), "t_s", subject, SECOND_NS)
            for column, cell in row.items():
                if cell.strip():
                    field, per_unit = COLUMNS[column]
                    steps[field].append((t_ns, _value(cell, column, subject, per_unit)))
        if header is None:
            raise UnfitError("no line with the names of columns", "t_s and others", "Add one.", name)
        columns = {field: tuple(found) for field, found in steps.items()}
        return Imported({"forward": Profile(**columns, repeat_ns=repeat_ns)})  # type: ignore[arg-type]  # by COLUMNS

    def write(self, profile: Profile, options: Options) -> str:
        """The table of a profile."""
        used = [(column, *place) for column, place in COLUMNS.items() if profile.columns[place[0]]]
        rows: dict[int, dict[str, str]] = {}
        for column, field, per_unit in used:
            for t_ns, value in profile.columns[field]:
                rows.setdefault(t_ns, {})[column] = _text(value, per_unit)
        repeat = [f"# repeat_s: {seconds(profile.repeat_ns)}"] if profile.repeat_ns else []
        header = ",".join(("t_s", *(column for column, *_ in used)))
        lines = (
            ",".join((seconds(t_ns), *(row.get(column, "") for column, *_ in used)))
            for t_ns, row in sorted(rows.items())
        )
        return "\n".join((*repeat, header, *lines)) + "\n"


def _cells(line: str, subject: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise UnfitError(shown(line), "cells that commas separate", "Correct the line.", subject) from error


def _header(cells: list[str], subject: str) -> list[str]:
    header = [cell.strip() for cell in cells]
    expected = f"t_s and one or more of {', '.join(COLUMNS)}, each once"
    if "t_s" not in header or len(header) < 2 or len({*header}) < len(header) or {*header} - {"t_s", *COLUMNS}:
        raise UnfitError(f"the columns {shown(', '.join(header))}", expected, "Correct the first line.", subject)
    return header


def _value(cell: str, column: str, subject: str, per_unit: int | None) -> float:
    if per_unit is not None:
        value = number(cell, column, subject, per_unit)
        if column == "up" and value > 1:
            raise UnfitError(shown(cell), "1 or 0 in the column up", "Correct the line.", subject)
        return bool(value) if column == "up" else value
    try:
        return float(cell)
    except ValueError as error:
        raise UnfitError(shown(cell), f"a number in the column {column}", "Correct the line.", subject) from error


def _text(value: float, per_unit: int | None) -> str:
    return repr(value) if per_unit is None else f"{(Decimal(int(value)) / per_unit).normalize():f}"
