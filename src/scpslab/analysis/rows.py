"""Rows of results.csv in the user's own store, so that a cell's captures are read once in its life.

A row's key is the hash of all files that it is derived from, and of the code that derives it: of changed files or
changed code there is no row, and archives and workers bring none.
"""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from scpslab.analysis.collect import Columns, Row, derived
from scpslab.analysis.metrics.base import MetricColumn
from scpslab.core.contents import digest_of, sha256_of
from scpslab.core.project import PACKAGE
from scpslab.runs import CellFiles
from scpslab.runs.store import Store


class Rows:
    """Rows of cells, kept in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def row(self, cell: Path, *, anew: bool = False) -> Row:
        """The row of the cell in a folder; `anew`: derived whatever is kept.

        Raises:
            ResultError: a file of the cell cannot be read.
        """
        try:
            key = _key(cell)
            return (None if anew else self._kept(key)) or self._derived(cell, key)
        except OSError:
            # Who reads that file says what is wrong with it.
            return derived(cell)

    def _derived(self, cell: Path, key: str) -> Row:
        row = derived(cell)
        # What is said of a cell names its folder, and would be wrong of a copy; and its files may have changed
        # meanwhile.
        if not row.said and _key(cell) == key:
            # A store that takes nothing, or a value that JSON does not give back: the row is derived again.
            with suppress(OSError, TypeError):
                text = _text(row)
                if _read(text) == row:
                    self._store.keep_row(key, text.encode())
        return row

    def _kept(self, key: str) -> Row | None:
        content = self._store.row(key)
        # Its digest was right, so that another shape is none of this program's.
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            return None if content is None else _read(content.decode())
        return None


def _key(cell: Path) -> str:
    """Hash of the files that a row may be derived from, and of the code."""
    files = CellFiles(cell)
    paths = [files.plan, files.status_file, *sorted(files.records.glob("*")), *sorted(files.captures.glob("*"))]
    found = [(path.relative_to(cell).as_posix(), sha256_of(path)) for path in paths if path.is_file()]
    return hashlib.sha256(json.dumps([_code(), found]).encode()).hexdigest()


@cache
def _code() -> str:
    """Hash of this program and of what calculates for it."""
    modules = ((file, file.relative_to(PACKAGE).as_posix()) for file in sorted(PACKAGE.rglob("*.py")))
    return digest_of(modules, f"{sys.version}\n{np.__version__}\n".encode())


def _text(row: Row) -> str:
    columns = [[(name, *column) for name, column in family] for family in row.columns]
    return json.dumps({"axes": row.axes, "values": row.values, "columns": columns})


def _read(text: str) -> Row:
    fields = json.loads(text)
    columns: Columns = tuple(
        tuple((sys.intern(name), MetricColumn(sys.intern(own), decimals)) for name, own, decimals in family)
        for family in fields["columns"]
    )
    values = {sys.intern(name): value for name, value in fields["values"].items()}
    return Row(fields["axes"], values, columns)
