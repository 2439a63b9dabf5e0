"""What a format of profiles is: a class, with a line in the list of formats. And the one that is ours: CSV."""

import csv
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import ClassVar

from scpslab.core import strict_json
from scpslab.core.names import shown
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.profile import (
    MS_NS,
    NUMBER,
    SECOND_NS,
    Imported,
    Profile,
    check,
    decoded,
    number,
    seconds,
)

LARGEST_BYTES = 64 << 20


@dataclass(frozen=True)
class Pass:
    """Who sees whom: stations (degrees, degrees, metres), from when and for how long, at which steps and least
    elevation. `hand_over_ns`: so often the best satellite is chosen anew; 0: at every step.
    """

    stations: tuple[tuple[float, float, float], ...]
    start: datetime
    lasts_ns: int
    step_ns: int = SECOND_NS // 10
    least_deg: float = 25.0
    hand_over_ns: int = 0
    by_elevation: tuple[tuple[float, int, float], ...] = ()


@dataclass(frozen=True)
class Options:
    """What a person says of a file that the file does not. `delays`: the file of delays beside one of opportunities,
    and its name; `every_ns`: the time between lines without times, `nodes`: the ends of what is written.
    """

    delays: tuple[str, bytes] | None = None
    delay_every_ns: int = 10 * MS_NS
    probe_every_ns: int = SECOND_NS
    one_way: bool = False
    nodes: tuple[int, int] = (1, 2)
    orbit: Pass | None = None


class Format(ABC):
    """A format: `says` explains it in a line."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    says: ClassVar[str]

    @abstractmethod
    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The profiles of a file of that name.

        Raises:
            UnfitError: it is none; the error's subject is the file with its line.
        """

    def write(self, profile: Profile, options: Options) -> str:
        """The text of a profile.

        Raises:
            UnfitError: the format cannot say it.
        """
        raise UnfitError(f"the format {self.name}", "one that can be written", "Choose csv, hdtn, ion or mahimahi.")


def json_value(data: bytes, name: str) -> object:
    """What a JSON file says. Raises UnfitError."""
    try:
        return strict_json.loads(data)
    except strict_json.JsonError as error:
        raise UnfitError(str(error).removeprefix("found "), "JSON", "Correct the file.", name) from error


def json_object(data: bytes, name: str) -> strict_json.JsonObject:
    """The object of a JSON file. Raises UnfitError."""
    value = json_value(data, name)
    if not isinstance(value, dict):
        raise UnfitError("JSON without keys", "an object", "Choose another format.", name)
    return value


# Columns, and where a profile has them; base units of one.
COLUMNS = {
    "rate_bit_s": ("rate_bps", 1),
    "delay_s": ("delay_ns", SECOND_NS),
    "ber": ("ber", None),
    "up": ("up", 1),
    "packets": ("packets", 1),
}
REPEAT = re.compile(r"#\s*repeat_s:\s*(\S+)\s*", re.ASCII)
# A comment that looks like a key with its value; one that is nearly repeat_s is misspelt.
LIKE_KEY = re.compile(r"#\s*([\w-]+)\s*(?:[:=]|[\d.]).*", re.ASCII)


class Table(Format):
    """One direction, with all that a profile can say: a row for each time at which something changes.

    The first line names the columns: `t_s`, and any of `rate_bit_s`, `delay_s`, `ber`, `up` (1 or 0), `packets`. An
    empty cell says that nothing changes. Lines that begin with # are comments, and `# repeat_s: 120` says that
    everything begins again. Times are rounded to nanoseconds.
    """

    name, suffixes = "csv", (".csv",)
    says = "scpslab's own table: each row says what changes at a time"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The table."""
        repeat_ns, header = None, None
        steps: dict[str, list[tuple[int, float]]] = {field: [] for field, _ in COLUMNS.values()}
        for at, line in enumerate(decoded(data, name).splitlines(), 1):
            subject = f"{name}:{at}"
            if not line.strip() or line.startswith("#"):
                repeat_ns = _repeat_ns(line, subject, repeat_ns)
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
                    check(field, steps[field][-2:], subject, "Correct the line.")
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


def _repeat_ns(line: str, subject: str, former_ns: int | None) -> int | None:
    """What is known of `repeat_s` after a comment."""
    if found := REPEAT.fullmatch(line):
        if former_ns is not None:
            raise UnfitError(f"repeat_s again, {seconds(former_ns)} s before", "it once", "Remove one.", subject)
        return number(found[1], "repeat_s", subject, SECOND_NS)
    if (word := LIKE_KEY.fullmatch(line)) and get_close_matches(word[1].lower(), ["repeat_s"], 1, 0.7):
        raise UnfitError(shown(line), "# repeat_s: 15, or a comment", "Correct the line.", subject)
    return former_ns


def _cells(line: str, subject: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise UnfitError(shown(line), "cells that commas separate", "Correct the line.", subject) from error


def _header(cells: list[str], subject: str) -> list[str]:
    header = [cell.strip() for cell in cells]
    expected = f"t_s and one or more of {', '.join(COLUMNS)}, each once"
    if "t_s" not in header or len(header) < 2 or len({*header}) < len(header) or {*header} - {"t_s", *COLUMNS}:
        do = "Correct the first line, or convert another tool's file: scpslab profile import."
        raise UnfitError(f"the columns {shown(', '.join(header))}", expected, do, subject)
    return header


def _value(cell: str, column: str, subject: str, per_unit: int | None) -> float:
    if per_unit is not None:
        value = number(cell, column, subject, per_unit)
        if column == "up" and value > 1:
            raise UnfitError(shown(cell), "1 or 0 in the column up", "Correct the line.", subject)
        return bool(value) if column == "up" else value
    if NUMBER.fullmatch(cell.strip()) is None:
        raise UnfitError(shown(cell), "ber, a number from 0 to 0.5", "Correct the line.", subject)
    return float(cell)


def _text(value: float, per_unit: int | None) -> str:
    return repr(value) if per_unit is None else f"{(Decimal(int(value)) / per_unit).normalize():f}"
