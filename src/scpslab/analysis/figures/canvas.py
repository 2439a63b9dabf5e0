"""The looks of every picture, and its files: one size, one palette, the same bytes for the same content.

Colours: Okabe & Ito 2008, which people with every form of colour vision can distinguish. Series also differ in marker
and line style.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, ScalarFormatter
from PIL import Image

from scpslab.core.folders import own_folder
from scpslab.core.scratch import replace_bytes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINE_STYLES = ("-", "--", ":", "-.")
PAPER_COLOUR = "#444444"
PAPER_MARKERS = ("*", "p", "h", "8", "d")
MUTED = "#666666"

FORMATS = ("png", "svg", "pdf")
DEFAULT_FORMATS = ("png", "svg")
# What a file would say of the day and the program that made it: the same picture is to have the same bytes.
NO_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
# Where a file has a picture's words: title, conditions and caption.
TITLE_KEYS: dict[str, tuple[str, str, str | None]] = {
    "png": ("Title", "Description", "Comment"),
    "svg": ("Title", "Description", None),
    "pdf": ("Title", "Subject", None),
}
PNG_DOTS_PER_INCH = 150
MODEL_PREFIX, PAPER_PREFIX = "model: ", "report: "

WIDTH_INCHES, AXES_INCHES = 8.0, 3.9
MOST_PANELS_ACROSS, ROW_INCHES = 3, 2.9
LEFT_INCHES, RIGHT_INCHES, TITLE_INCHES, XLABEL_INCHES, MARGIN_INCHES = 0.88, 0.25, 0.62, 0.6, 0.12
CAPTION_LINE_INCHES, LEGEND_LINE_INCHES, CAPTION_LETTERS = 0.145, 0.195, 130
# From here on an axis counts in thousands, millions, …: "1.5 M" rather than "1.5", and "1e6" somewhere else.
LARGE = 1e5
COLUMNS = ((4, 18), (3, 28), (2, 48))
STACK_WIDTH_INCHES, STACK_ROW_INCHES, STACK_LEFT_INCHES, STACK_GAP = 5.6, 1.55, 1.05, 0.16
STACK_LINE_INCHES, TITLE_LINE_INCHES = 0.16, 0.21
CONDITIONS_LETTERS, STACK_CONDITIONS_LETTERS = 118, 76
STACK_CAPTION_LETTERS, STACK_TITLE_LETTERS, STACK_COLUMNS = 78, 52, ((4, 10), (3, 14), (2, 26))
# Any: the names of settings are a literal type in newer matplotlib stubs and plain text in older ones.
SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.7,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "none",
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "lines.markersize": 6,
    "errorbar.capsize": 3,
    "svg.fonttype": "path",
    # TrueType: editors and publishers' checks do not like Type 3.
    "pdf.fonttype": 42,
    # Titles and labels come from files: a dollar sign is a dollar sign, not a formula.
    "text.parse_math": False,
}


@dataclass(frozen=True)
class Words:
    """The texts around a picture: its title, the conditions of the cells in it, and the caption."""

    title: str
    conditions: str
    caption: str


class Picture(Figure):
    """A figure with its words."""

    words: Words


@contextmanager
def new_figure(words: Words) -> Iterator[tuple[Figure, Axes]]:
    """A figure with one pair of axes: title and conditions above it, legend and caption below it.

    The figure grows with conditions, legend and caption, so that the axes keep their size from run to run.
    """
    with new_panels(words, [""]) as (figure, panels):
        yield figure, panels[0]


@contextmanager
def new_panels(words: Words, names: Sequence[str]) -> Iterator[tuple[Figure, list[Axes]]]:
    """Like `new_figure`, with one pair of axes for each name, all with the same scales: up to three in a row, more in
    rows of two.

    Each panel shows its name; a single panel shows none.
    """
    with mpl.rc_context(SETTINGS):
        figure = Picture()
        figure.words = words
        across = len(names) if len(names) <= MOST_PANELS_ACROSS else 2
        down = math.ceil(len(names) / across)
        panels = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
        for unused in panels[len(names) :]:
            unused.remove()
        panels = panels[: len(names)]
        yield figure, panels
        _shorten_numbers(panels)
        lines = textwrap.wrap(words.caption, CAPTION_LETTERS)
        above = textwrap.wrap(words.conditions, CONDITIONS_LETTERS)
        title_inches = TITLE_INCHES + max(0, len(above) - 1) * CAPTION_LINE_INCHES
        handles, labels, columns = _legend(panels)
        caption_inches = len(lines) * CAPTION_LINE_INCHES + 0.1
        legend_inches = math.ceil(len(labels) / columns) * LEGEND_LINE_INCHES + 0.12 if labels else 0.0
        bottom_inches = caption_inches + legend_inches + XLABEL_INCHES
        axes_inches = AXES_INCHES if down == 1 else down * ROW_INCHES
        height = title_inches + axes_inches + bottom_inches
        figure.set_size_inches(WIDTH_INCHES, height)
        right = (WIDTH_INCHES - RIGHT_INCHES) / WIDTH_INCHES
        figure.subplots_adjust(
            LEFT_INCHES / WIDTH_INCHES,
            bottom_inches / height,
            right,
            1 - title_inches / height,
            wspace=0.08,
            hspace=0.12,
        )
        figure.text(
            MARGIN_INCHES / WIDTH_INCHES, 1 - 0.12 / height, words.title, va="top", fontsize=12, fontweight="bold"
        )
        figure.text(
            MARGIN_INCHES / WIDTH_INCHES, 1 - 0.38 / height, "\n".join(above), va="top", fontsize=9, color=MUTED
        )
        for name, axes in zip(names, panels, strict=True):
            axes.text(0.02, 0.97, name, transform=axes.transAxes, va="top", fontsize=9.5, fontweight="bold")
            axes.label_outer()
        figure.text(MARGIN_INCHES / WIDTH_INCHES, 0.08 / height, "\n".join(lines), va="bottom", fontsize=8, color=MUTED)
        if labels:
            corner = (MARGIN_INCHES / WIDTH_INCHES, caption_inches / height)
            figure.legend(handles, labels, loc="lower left", bbox_to_anchor=corner, borderaxespad=0, ncols=columns)


@contextmanager
def new_stack(words: Words, heights: Sequence[float]) -> Iterator[tuple[Figure, list[Axes]]]:
    """Pairs of axes below each other that share their x axis, with heights as shares of a whole row; one legend below
    them.

    The figure is narrow, so that its letters are legible on a phone.
    """
    with mpl.rc_context({**SETTINGS, "font.size": 11, "axes.labelsize": 10.5, "legend.fontsize": 10}):
        figure = Picture()
        figure.words = words
        panels = list(figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights).flat)
        yield figure, panels
        _shorten_numbers(panels)
        width, corner = STACK_WIDTH_INCHES, MARGIN_INCHES / STACK_WIDTH_INCHES
        lines, title_lines = (
            textwrap.wrap(words.caption, STACK_CAPTION_LETTERS),
            textwrap.wrap(words.title, STACK_TITLE_LETTERS),
        )
        above = textwrap.wrap(words.conditions, STACK_CONDITIONS_LETTERS)
        handles, labels, columns = _legend(panels, STACK_COLUMNS)
        top_inches = len(title_lines) * TITLE_LINE_INCHES + len(above) * STACK_LINE_INCHES + 0.26
        caption_inches = len(lines) * STACK_LINE_INCHES + 0.12
        legend_inches = math.ceil(len(labels) / columns) * 0.215 + 0.1 if labels else 0.0
        bottom_inches = caption_inches + legend_inches + XLABEL_INCHES
        height = top_inches + sum(heights) * STACK_ROW_INCHES + bottom_inches
        figure.set_size_inches(width, height)
        figure.subplots_adjust(
            STACK_LEFT_INCHES / width,
            bottom_inches / height,
            1 - RIGHT_INCHES / width,
            1 - top_inches / height,
            hspace=STACK_GAP,
        )
        figure.text(corner, 1 - 0.12 / height, "\n".join(title_lines), va="top", fontsize=13, fontweight="bold")
        below_title = 1 - (0.2 + len(title_lines) * TITLE_LINE_INCHES) / height
        figure.text(corner, below_title, "\n".join(above), va="top", fontsize=9.5, color=MUTED)
        figure.text(corner, 0.08 / height, "\n".join(lines), va="bottom", fontsize=9, color=MUTED)
        if labels:
            figure.legend(
                handles,
                labels,
                loc="lower left",
                bbox_to_anchor=(corner, caption_inches / height),
                borderaxespad=0,
                ncols=columns,
            )
        figure.align_ylabels(panels)


def _shorten_numbers(panels: Sequence[Axes]) -> None:
    for axis in (axis for axes in panels for axis in (axes.xaxis, axes.yaxis)):
        if (
            isinstance(axis.get_major_formatter(), ScalarFormatter)
            and max(abs(end) for end in axis.get_view_interval()) >= LARGE
        ):
            axis.set_major_formatter(EngFormatter())


def _legend(panels: Sequence[Axes], most: Sequence[tuple[int, int]] = COLUMNS) -> tuple[list[Any], list[str], int]:
    """The entries of the legend, own series before models and these before the papers' marks, each once, and the number
    of columns.

    `most`: numbers of columns, and the letters up to which labels fit into so many.
    """
    named = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    found = sorted(
        ((handle, label) for label, handle in named.items()),
        key=lambda item: (item[1].startswith(PAPER_PREFIX), item[1].startswith(MODEL_PREFIX)),
    )
    if not found:
        return [], [], 1
    handles, labels = [handle for handle, _ in found], [label for _, label in found]
    longest = max(map(len, labels))
    columns = next((columns for columns, letters in most if longest <= letters), 1)
    return handles, labels, min(columns, len(labels))


def save(figure: Figure, folder: Path, stem: str, formats: tuple[str, ...]) -> list[Path]:
    """Writes the picture in every format, its words in the file too; returns the paths.

    No dates, and SVG ids that depend on the name alone.
    """
    own_folder(folder)
    paths = []
    for suffix in formats:
        path = folder / f"{stem}.{suffix}"
        metadata: dict[str, str | None] = dict(NO_METADATA[suffix])
        if isinstance(figure, Picture):
            words = (figure.words.title, figure.words.conditions, figure.words.caption)
            metadata |= {name: text for name, text in zip(TITLE_KEYS[suffix], words, strict=True) if name is not None}
        with mpl.rc_context({**SETTINGS, "svg.hashsalt": stem}):
            drawn = io.BytesIO()
            figure.savefig(drawn, format=suffix, dpi=PNG_DOTS_PER_INCH, metadata=metadata)
            replace_bytes(path, drawn.getvalue())
        paths.append(path)
    return paths


def words_in(png: Path) -> Words | None:
    """The words of a picture that `save` wrote; None: an earlier version wrote it, without them."""
    with Image.open(png) as image:
        found = [image.info.get(name) for name in TITLE_KEYS["png"] if name is not None]
    return Words(*map(str, found)) if all(isinstance(text, str) for text in found) else None
