"""Pages of a run: the grid of its cells, a page of each, and two above each other. Each is one file of HTML with
everything in it, which fetches nothing and works from an e-mail.

The same cells give the same bytes. Names of a stranger's run are data of the page, never its markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scpslab.analysis.output import NOTHING
from scpslab.analysis.run import Run, RunCell, cell_folders, open_run, resolved_fields
from scpslab.analysis.statistics import ResultRow
from scpslab.analysis.table import HEADLINE, read_results
from scpslab.runs import RunFolder
from scpslab.studio.cell import CellData, cell_data
from scpslab.studio.rows import BECAME, CAUSES

FILES = Path(__file__).parent / "page"
# Each imports from those before it only.
MODULES = ("numbers", "series", "data", "canvas", "plots", "network", "packets", "cell", "lab", "main")
IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=const|function|async|class)", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """A cell of a page. `data` is what is inside of it; without it, `href` leads to the cell's own page.

    `place`: its row and column in the grid of the sweep; `numbers`: texts that the grid can show there.
    """

    id: str
    place: tuple[str, str]
    status: str
    numbers: Sequence[str] = ()
    data: CellData | None = None
    href: str | None = None


@dataclass(frozen=True)
class Page:
    """What a page shows. `shown`: the cells that are open at first; none: the grid of all.

    `numbers`: names and meanings of what the grid can show; `back`: the page that has it, if another. `live`: what a
    page of a running lab has besides. `asks`: it may ask its own server, which a file does not; `ended`: how many cells
    that counted.
    """

    title: str
    about: str
    entries: Sequence[Entry]
    shown: Sequence[int] = ()
    numbers: Sequence[tuple[str, str]] = ()
    back: str | None = None
    live: Mapping[str, object] | None = None
    asks: bool = False
    ended: int = 0

    @property
    def html(self) -> str:
        """The file's text."""
        program, style = joined(), (FILES / "page.css").read_text(encoding="utf-8")
        parts = {
            "POLICY": escape(policy(program, style, asks=self.asks)),
            "TITLE": escape(self.title),
            "ABOUT": escape(self.about),
            "STYLE": style,
            "DATA": _json(self._document()),
            "COLUMNS": "\n".join(self._columns()),
            "PROGRAM": program,
        }
        template = (FILES / "page.html").read_text(encoding="utf-8")
        return re.sub(r"@([A-Z]+)@", lambda found: parts[found[1]], template)

    def _document(self) -> dict[str, object]:
        own = ("id", "place", "status", "numbers", "href")
        cells = [
            {name: getattr(one, name) for name in own} | {"meta": one.data and one.data.meta} for one in self.entries
        ]
        facts = {name: getattr(self, name) for name in ("title", "back", "live", "ended", "numbers")}
        words = {"causes": list(CAUSES.items()), "fates": BECAME}
        return {**facts, **words, "shown": list(self.shown), "cells": cells}

    def _columns(self) -> Iterator[str]:
        for number, entry in enumerate(self.entries):
            if entry.data:
                text = base64.b64encode(entry.data.columns).decode()
                yield f'<script type="application/octet-stream" id="columns-{number}">{text}</script>'


def joined() -> str:
    """The modules of the viewer as one: each has names of its own, so what they import from each other is there."""
    texts = ((FILES / f"{name}.js").read_text(encoding="utf-8") for name in MODULES)
    return "".join(EXPORT.sub("", IMPORT.sub("", text)).lstrip("\n") for text in texts)


def script_source() -> str:
    """The one program that a page runs, as a policy names it."""
    return _hash(joined())


def policy(program: str, style: str, *, asks: bool = False) -> str:
    """What a page may do: run this program, and use this style. It may fetch nothing, or from its own server alone."""
    said = {"script-src": _hash(program), "style-src": _hash(style), "base-uri": "'none'", "form-action": "'none'"}
    said |= {"connect-src": "'self'"} if asks else {}
    return "; ".join(["default-src 'none'", *(f"{name} {value}" for name, value in said.items())])


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(document: object) -> str:
    """JSON in which no text ends the element that it stands in."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def path_of(names: Sequence[str]) -> str:
    """The path of a cell's page, or of two that are compared, from that of all; of others that of all."""
    kind = {1: "cell", 2: "compare"}.get(len(names))
    return "/".join([kind, *(quote(name, safe="") for name in names)]) if kind else ""


MOST_NUMBERS, MOST_TOLD = 4, 12
LARGE = 10_000


@dataclass(frozen=True)
class RunPages:
    """The pages of a run, made when they are asked for, or of several, each of a folder of its own: cells have the run
    in their names then.
    """

    runs: Sequence[Run]

    @cached_property
    def cells(self) -> Mapping[str, RunCell]:
        """All cells by their names in the page."""
        if len(self.runs) == 1:
            return {cell.id: cell for cell in self.runs[0].cells}
        # The same scenario may have run in two places.
        is_clear = len({run.id for run in self.runs}) == len(self.runs)
        return {f"{run.id if is_clear else run.folder} {cell.id}": cell for run in self.runs for cell in run.cells}

    def again(self) -> RunPages:
        """These pages, with the cells that have ended since."""
        ended = sum(len(cell_folders(run.folder)) for run in self.runs)
        return self if ended == len(self.cells) else RunPages([open_run(run.folder) for run in self.runs])

    @cached_property
    def title(self) -> str:
        """The scenarios' titles; the name of one where the run's folder does not say it."""
        said = (resolved_fields(RunFolder(run.folder).resolved).get("title") or run.scenario for run in self.runs)
        return " · ".join(dict.fromkeys(map(str, said)))

    def first(self) -> Page:
        """The page of the only cell; of more, the grid that leads to the page of each."""
        if len(self.cells) == 1:
            return self.page(list(self.cells), shown=(0,))
        entries = [self._entry(name, href=path_of([name])) for name in self.cells]
        return self._page(entries, asks=True, ended=len(entries))

    def page(self, names: Sequence[str], *, shown: Sequence[int] = (), back: str | None = None) -> Page:
        """A page with some cells in it; `shown`: those that are open at first, by their places among them."""
        return self._page([self._entry(name, with_data=True) for name in names], shown=shown, back=back)

    def telling(self, most_bytes: int) -> Page | None:
        """A page that fits into so many bytes: of the cells that completed the one with the largest first number is
        open, and others of its repeat are there; None without a record of packets.
        """
        done = {
            name: cell
            for name, cell in self.cells.items()
            if cell.status == "completed" and cell.packets_file.is_file()
        }
        first = next(iter(self._numbers), "")
        names = sorted(done, key=lambda name: -self._rows[name].numbers.get(first, 0.0))
        entries: list[Entry] = []
        left = most_bytes
        for name in [one for one in names if done[one].plan.cell.repeat == done[names[0]].plan.cell.repeat][:MOST_TOLD]:
            entry = self._entry(name, with_data=True)
            left -= len(entry.data.columns if entry.data else b"") * 4 // 3 + len(str(entry.data and entry.data.meta))
            if left < 0:
                break
            entries.append(entry)
        return self._page(entries, shown=[0]) if entries else None

    def _page(self, entries: Sequence[Entry], **more: Any) -> Page:
        numbers = [(name, HEADLINE[name]) for name in self._numbers]
        about = " · ".join(f"{run.scenario} · {run.id}" for run in self.runs)
        return Page(self.title, about, entries, numbers=numbers, **more)

    def _entry(self, name: str, *, href: str | None = None, with_data: bool = False) -> Entry:
        cell, row = self.cells[name], self._rows[name]
        texts = [_text(row.numbers[one]) if one in row.numbers else NOTHING for one in self._numbers]
        data = cell_data(cell, name) if with_data else None
        return Entry(name, _place(cell, name.removesuffix(cell.id)), cell.status, texts, data, href)

    @cached_property
    def _numbers(self) -> list[str]:
        """The columns that a reader asks for first, of those that some cell has."""
        return [name for name in HEADLINE if any(name in row.numbers for row in self._rows.values())][:MOST_NUMBERS]

    @cached_property
    def _rows(self) -> dict[str, ResultRow]:
        rows = {(run.folder, row["cell"]): row for run in self.runs for row in read_results(run.folder).rows}
        empty = ResultRow({})
        return {name: rows.get((cell.folder.parent.parent, cell.id), empty) for name, cell in self.cells.items()}


def _place(cell: RunCell, run: str) -> tuple[str, str]:
    """Its row and column in the grid: the last of the axes goes across; where there is one alone, the repeats do. The
    row begins with the run, where one is told.
    """
    words = [f"{name} {value}" for name, value in cell.plan.cell.axes.items()]
    column = words.pop() if len(words) > 1 else f"repeat {cell.plan.cell.repeat}"
    return run + ", ".join(words), column


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= LARGE else f"{value:.4g}"
