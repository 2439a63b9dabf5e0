"""Columns of whole numbers as bytes that compress well; page/data.js reads them (docs/plan-format.md).

The same numbers give the same bytes on every machine.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from scpslab.measure.connections import Bools, Ints

# How a column's numbers stand in the file: as they are; minus the row before; minus the flow's row before; the same,
# minus the payload of that row too. The last two count in 32 bits. Where the packet came from an earlier table, the
# number there is what is subtracted, but for `value`.
How = Literal["value", "step", "flow", "stream"]
MOST_BYTES = 8
LEVEL = 9


@dataclass(frozen=True)
class Column:
    """Numbers int64[n], and how they are written. `known`: what is subtracted in place of that, where `is_known`."""

    numbers: Ints
    how: How = "value"
    known: Ints | None = None
    is_known: Bools | None = None


class Columns:
    """Tables of columns in one sequence of bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._bytes = 0

    def table(self, columns: Mapping[str, Column]) -> dict[str, object]:
        """Adds a table; returns its number of rows, and of each column the way of writing, width in bytes, place, and
        whether other numbers are known.

        A table with columns of flows has the columns `flow` and `payload`.
        """
        rows = len(next(iter(columns.values())).numbers)
        found: dict[str, list[object]] = {}
        for name, column in columns.items():
            written = _written(column, columns)
            if column.known is not None and column.is_known is not None:
                written = np.where(column.is_known, column.numbers - column.known, written)
            planes, width = _planes(written)
            found[name] = [column.how, width, self._bytes, int(column.known is not None)]
            self._parts.append(planes)
            self._bytes += len(planes)
        return {"rows": rows, "columns": found}

    def packed(self) -> bytes:
        """All tables, compressed."""
        return gzip.compress(b"".join(self._parts), LEVEL, mtime=0)


def _written(column: Column, others: Mapping[str, Column]) -> Ints:
    numbers = column.numbers
    if column.how == "value":
        return numbers
    if column.how == "step":
        return np.diff(numbers, prepend=0)
    flow = others["flow"].numbers
    order = np.argsort(flow, kind="stable")
    before = np.concatenate([[0], numbers[order][:-1]])
    if column.how == "stream":
        before[1:] += others["payload"].numbers[order][:-1]
    before[np.flatnonzero(np.diff(flow[order], prepend=-1))] = 0
    steps = np.empty_like(numbers)
    steps[order] = (numbers[order] - before + 2**31) % 2**32 - 2**31
    return steps


def _planes(numbers: Ints) -> tuple[bytes, int]:
    """Signed numbers of as few bytes as all of them fit into: all first bytes, the least significant ones, then all
    second ones, and so on.
    """
    width = _width(numbers)
    whole: npt.NDArray[np.uint8] = numbers.astype("<i8").view(np.uint8).reshape(-1, MOST_BYTES)
    return np.ascontiguousarray(whole[:, :width].T).tobytes(), width


def _width(numbers: Ints) -> int:
    """How many bytes: none where all numbers are 0."""
    least, most = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if least == most == 0:
        return 0
    return next(
        width for width in range(1, MOST_BYTES + 1) if -(1 << 8 * width - 1) <= least and most < 1 << 8 * width - 1
    )
