"""Pages: one file of HTML with everything in it, which fetches nothing and works from an e-mail.

The same cells give the same bytes. Names of a stranger's run are data of the page, never its markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from scpslab.studio.cell import CellData

FILES = Path(__file__).parent / "page"
# Each imports from those before it only.
MODULES = (
    "numbers.js",
    "data.js",
    "series.js",
    "canvas.js",
    "plots.js",
    "network.js",
    "packets.js",
    "cell.js",
    "main.js",
)
IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=const|function|async|class)", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """A cell of a page. `data` is what is inside of it; without it, `href` leads to the cell's own page.

    `numbers`: texts for the columns that the page has in its table of cells.
    """

    id: str
    axes: Mapping[str, str]
    status: str
    numbers: Sequence[str] = ()
    data: CellData | None = None
    href: str | None = None


@dataclass(frozen=True)
class Page:
    """What a page shows. `shown`: the cells that are open at first; none: the table of all.

    `numbers`: the names and meanings of the columns of that table; `back`: the page that has it, if another.
    """

    title: str
    about: str
    entries: Sequence[Entry]
    shown: Sequence[int] = ()
    numbers: Sequence[tuple[str, str]] = ()
    back: str | None = None

    @property
    def html(self) -> str:
        """The file's text."""
        program, style = joined(), _style()
        parts = {
            "POLICY": escape(policy(program, style)),
            "TITLE": escape(self.title),
            "STYLE": style,
            "DATA": _json(self._document()),
            "COLUMNS": "\n".join(self._columns()),
            "PROGRAM": program,
        }
        template = (FILES / "page.html").read_text(encoding="utf-8")
        return re.sub(r"@([A-Z]+)@", lambda found: parts[found[1]], template)

    def _document(self) -> dict[str, object]:
        cells = [
            {
                "id": entry.id,
                "axes": dict(entry.axes),
                "status": entry.status,
                "numbers": list(entry.numbers),
                "href": entry.href,
                "meta": entry.data.meta if entry.data else None,
            }
            for entry in self.entries
        ]
        numbers = [{"name": name, "says": says} for name, says in self.numbers]
        facts = {"title": self.title, "about": self.about, "shown": list(self.shown), "back": self.back}
        return {**facts, "cells": cells, "numbers": numbers}

    def _columns(self) -> Iterator[str]:
        for number, entry in enumerate(self.entries):
            if entry.data:
                text = base64.b64encode(entry.data.columns).decode()
                yield f'<script type="application/octet-stream" id="columns-{number}">{text}</script>'


def joined() -> str:
    """The modules of the viewer as one: each has names of its own, so what they import from each other is there."""
    return "".join(
        EXPORT.sub("", IMPORT.sub("", (FILES / name).read_text(encoding="utf-8"))).lstrip("\n") for name in MODULES
    )


def _style() -> str:
    return (FILES / "page.css").read_text(encoding="utf-8")


def script_source() -> str:
    """The one program that a page runs, as a policy names it."""
    return _hash(joined())


def policy(program: str, style: str) -> str:
    """What a page may do: run this program, and use this style. It may fetch nothing."""
    said = {"script-src": _hash(program), "style-src": _hash(style), "base-uri": "'none'", "form-action": "'none'"}
    return "; ".join(["default-src 'none'", *(f"{name} {value}" for name, value in said.items())])


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(document: object) -> str:
    """JSON in which no text ends the element that it stands in."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
