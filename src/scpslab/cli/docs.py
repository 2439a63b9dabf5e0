"""`scpslab docs`: the pages of docs/, which the wheel carries too, in the terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown
from rich.table import Table

from scpslab.cli.options import completed
from scpslab.cli.tables import table_console
from scpslab.cli.terminal import DOCS
from scpslab.core.choices import one_of
from scpslab.core.errors import UsageError

# For developers, what becomes PDF for lectures, and what "scpslab docs" itself lists.
LEFT_OUT = ("decisions", "slides", "index.md")
# Longer lines are hard to read.
WIDEST = 100


def docs(
    page: Annotated[
        str | None, typer.Argument(metavar="[PAGE]", autocompletion=completed(lambda: dict(_pages())))
    ] = None,
    path: Annotated[bool, typer.Option("--path")] = False,
    print_: Annotated[bool, typer.Option("--print")] = False,
) -> None:
    """Read the documentation, without a network.

    At a terminal, a page is shown in your pager ($PAGER). In a file or a pipe it is Markdown.

    Examples: scpslab docs · scpslab docs tutorial · scpslab docs cli#exit-codes --print

    Options:
        page: The page, or PAGE#HEADING for a part. Default: list all pages.
        path: Print where the page's file is, for an editor or a browser; pictures are beside it.
        print_: Print the page without the pager.
    """
    pages = dict(_pages())
    console = table_console()
    if page is None:
        table = Table("page", "title", box=None, pad_edge=False)
        for name, file in pages.items():
            table.add_row(name, _title(file))
        console.print(table)
        return
    name, _, heading = page.removesuffix(".md").partition("#")
    if name not in pages:
        raise UsageError(f'docs: found no page "{name}"; {one_of(name, pages)}')
    if path:
        typer.echo(pages[name])
        return
    text = pages[name].read_text(encoding="utf-8")
    if heading:
        text = _part(text, heading, page)
    if not (sys.stdout and sys.stdout.isatty()):
        typer.echo(text, nl=False)
        return
    console.width = min(console.width, WIDEST)
    # Without it, less shows the codes of colours.
    os.environ.setdefault("LESS", "-R")
    with nullcontext() if print_ else console.pager(styles=True):
        console.print(Markdown(text, hyperlinks=False))


def _pages() -> Iterator[tuple[str, Path]]:
    for file in sorted(DOCS.rglob("*.md")):
        place = file.relative_to(DOCS)
        if not set(place.parts) & set(LEFT_OUT):
            yield str(place.with_suffix("")), file


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as opened:
        return opened.readline().removeprefix("# ").strip()


def _part(text: str, heading: str, page: str) -> str:
    """The part of a page below a heading, which is named as links name it."""
    known = {}
    for found in re.finditer(r"^(#{2,}) (.+)\n", text, re.MULTILINE):
        end = re.compile(rf"^#{{2,{len(found[1])}}} ", re.MULTILINE).search(text, found.end())
        words = re.sub(r"[^\w\- ]", "", found[2].lower())
        known[words.replace(" ", "-")] = text[found.start() : end.start() if end else len(text)]
    if heading not in known:
        raise UsageError(f'docs {page}: found no heading "{heading}"; {one_of(heading, known)}')
    return known[heading]
