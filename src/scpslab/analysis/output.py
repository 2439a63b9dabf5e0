"""What commands show, as one value: a `Report` has the table for a person, the notes below it, the records of the CSV
and the document of the JSON. cli/tables.py prints it.
Pages of HTML have one frame and one style: page.html.j2 and page.css.

CSV and JSON have the same bytes for the same numbers on every machine.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from scpslab.core.errors import harmless
from scpslab.core.names import is_formula

if TYPE_CHECKING:
    from jinja2 import Environment

NOTHING = "–"
# What a document of JSON says, by key: values that the JSON writer takes.
Document: TypeAlias = Mapping[str, object]


@dataclass(frozen=True)
class Column:
    """A column of the table. Numbers stand at the right; `style` colours a column on the terminal; a long text is
    folded where `folds`, and cut where not.
    """

    name: str
    is_number: bool = False
    style: str | None = None
    folds: bool = False


@dataclass(frozen=True)
class Row:
    """A line of the table; a cell is a text, or a text and its style on the terminal. `begins_section`: a line is drawn
    above it.
    """

    cells: Sequence[str | tuple[str, str]]
    is_bold: bool = False
    begins_section: bool = False


@dataclass(frozen=True)
class Report:
    """Numbers as they are shown. `records`: the lines of the CSV, the header first."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str]
    records: Sequence[Sequence[object]]
    document: Document
    json_indent: int = 1

    @property
    def csv(self) -> str:
        """The records as CSV; texts of a stranger's run are no formulas."""
        return csv_text([[no_formula(one) if isinstance(one, str) else one for one in row] for row in self.records])

    @property
    def json(self) -> str:
        """The document as JSON."""
        return json.dumps(self.document, indent=self.json_indent) + "\n"


def numbers(*names: str) -> list[Column]:
    """Columns of numbers."""
    return [Column(name, is_number=True) for name in names]


def nine_digits(value: float | None) -> str:
    """A number for a CSV that people read too: nine significant digits; "" for None."""
    return "" if value is None else f"{value:.9g}"


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """The rows, the header among them, each on a line that ends in a line feed. None is an empty cell."""
    text = io.StringIO()
    written = ([str(cell).lower() if isinstance(cell, bool) else cell for cell in row] for row in rows)
    csv.writer(text, lineterminator="\n").writerows(written)
    return text.getvalue()


def no_formula(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if is_formula(text) else text


def pages(templates: Path) -> Environment:
    """The templates of a folder, and page.html.j2, which they extend. Everything that they are given is escaped."""
    # Of an extra that other commands do without.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (the reason stands above)

    loader = FileSystemLoader([templates, Path(__file__).parent])
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )


def _shown(value: object) -> object:
    """A value of a page: what a file or a student wrote is shown harmlessly, our own markup as it is."""
    return harmless(value) if type(value) is str else value
