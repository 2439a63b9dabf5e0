"""A scenario's checks against the rows of results.csv: which cells hold what was asked of them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scpslab import units
from scpslab.errors import ResultError
from scpslab.runfolder import RunFolder
from scpslab.scenario.model import Check

# A column's unit is the end of its name: which quantity that is, and base units of units.py in one of the column's.
UNITS = {"_s": ("duration", 10**9), "_ms": ("duration", 10**6), "_bps": ("rate", 1), "bytes": ("size", 1)}
WORDS = {"true": 1.0, "false": 0.0}
CELLS_NAMED = 3


@dataclass(frozen=True)
class Verdict:
    """One check over all cells: its words, and the cells that do not hold it with the value found there."""

    words: str
    cells: int
    missed: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        if not self.missed:
            return f"check {self.words}: all {self.cells} cells"
        named = ", ".join(f"{cell}: {value}" for cell, value in self.missed[:CELLS_NAMED])
        more = ", …" if len(self.missed) > CELLS_NAMED else ""
        return f"check {self.words}: not {len(self.missed)} of {self.cells} cells ({named}{more})"


def evaluate(run_dir: Path, checks: Iterable[Check]) -> list[Verdict]:
    """The verdict on every check. A cell that did not complete does not hold it.

    Raises:
        ResultError: results.csv has no such column, or a bound is not in the column's unit.
    """
    with RunFolder(run_dir).results.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [_verdict(check, rows) for check in checks]


def _verdict(check: Check, rows: list[dict[str, str]]) -> Verdict:
    column = _column(check, rows[0] if rows else {})
    least, most = _bound(column, check.at_least), _bound(column, check.at_most)
    words = " and ".join(f"{column} {sign} {bound}" for sign, bound in ((">=", check.at_least), ("<=", check.at_most)) if bound is not None)
    missed = [(row["cell"], row[column] or row["status"]) for row in rows if not _holds(row, column, least, most)]
    return Verdict(words, len(rows), tuple(missed))


def _column(check: Check, row: Mapping[str, str]) -> str:
    for name in (f"{check.of}_{check.metric}", check.metric):
        if name in row:
            return name
    raise ResultError(f"checks: found the metric {check.metric}; expected a column of results.csv (docs/results.md lists them). Correct the scenario.")


def _bound(column: str, bound: float | str | None) -> float | None:
    if not isinstance(bound, str):
        return bound
    for suffix, (kind, base) in UNITS.items():
        if column.endswith(suffix):
            try:
                return units.parse(kind, bound) / base
            except units.UnitError as error:
                raise ResultError(f"checks: {column}: {error}. Correct the scenario.") from error
    raise ResultError(f'checks: {column}: found "{bound}"; expected a plain number, for the column has no unit. Correct the scenario.')


def _holds(row: Mapping[str, str], column: str, least: float | None, most: float | None) -> bool:
    text = row[column]
    if row["status"] != "completed" or not text:
        return False
    value = WORDS.get(text)
    if value is None:
        value = float(text)
    return (least is None or value >= least) and (most is None or value <= most)
