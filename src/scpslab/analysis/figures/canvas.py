"""The looks of every picture, and its files: one size, one palette, the same bytes for the same content.

Colours: Okabe & Ito 2008, which people with every form of colour vision can distinguish. Series also differ in marker
and line style.
"""

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, ScalarFormatter
from PIL import Image

from scpslab.analysis.figures.recipe import Words
from scpslab.core.errors import harmless
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

# From here on an axis counts in thousands, millions, …: "1.5 M" rather than "1.5", and "1e6" somewhere else.
LARGE = 1e5
AXES_INCHES, MOST_PANELS_ACROSS, ROW_INCHES, STACK_ROW_INCHES = 3.9, 3, 2.9, 1.55
RIGHT_INCHES, XLABEL_INCHES, MARGIN_INCHES = 0.25, 0.6, 0.12
# Any: the names of settings are a literal type in newer matplotlib stubs and plain text in older ones.
SETTINGS: dict[Any, Any] = dict(
    mpl.rc_params_from_file(Path(__file__).with_name("figures.mplstyle"), use_default_template=False)
)


class Picture(Figure):
    """A figure with its words."""

    def __init__(self, words: Words) -> None:
        super().__init__()
        self.words = words


@dataclass(frozen=True)
class Sheet:
    """The measures of a picture, in inches and points: what its lines of text take, and how many letters fit into each.

    `columns`: numbers of columns of a legend, and the letters up to which labels fit into so many.
    """

    width: float = 8.0
    left: float = 0.88
    title: float = 0.17
    title_points: float = 12
    title_letters: int = 1000
    title_line: float = 0.21
    conditions_points: float = 9
    conditions_letters: int = 118
    caption_points: float = 8
    caption_letters: int = 130
    line: float = 0.145
    top: float = 0.265
    caption_margin: float = 0.1
    legend_line: float = 0.195
    legend_margin: float = 0.12
    columns: tuple[tuple[int, int], ...] = ((4, 18), (3, 28), (2, 48))


PAGE = Sheet()
# Narrow, so that its letters are legible on a phone.
STACK = Sheet(
    width=5.6,
    left=1.05,
    title=0.2,
    title_points=13,
    title_letters=52,
    title_line=0.21,
    conditions_points=9.5,
    conditions_letters=76,
    caption_points=9,
    caption_letters=78,
    line=0.16,
    top=0.26,
    caption_margin=0.12,
    legend_line=0.215,
    legend_margin=0.1,
    columns=((4, 10), (3, 14), (2, 26)),
)


@contextmanager
def new_panels(words: Words, names: Sequence[str] = ("",)) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with one pair of axes for each name, all with the same scales: up to three in a row, more in rows of
    two. Title and conditions stand above them, legend and caption below them.

    The figure grows with conditions, legend and caption, so that the axes keep their size from run to run. Each panel
    shows its name.
    """
    with mpl.rc_context(SETTINGS):
        figure = Picture(words)
        across = len(names) if len(names) <= MOST_PANELS_ACROSS else 2
        down = math.ceil(len(names) / across)
        panels = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
        for unused in panels[len(names) :]:
            unused.remove()
        panels = panels[: len(names)]
        yield figure, panels
        inches = AXES_INCHES if down == 1 else down * ROW_INCHES
        _surround(figure, panels, PAGE, inches, wspace=0.08, hspace=0.12)
        for name, axes in zip(names, panels, strict=True):
            axes.text(0.02, 0.97, name, transform=axes.transAxes, va="top", fontsize=9.5, fontweight="bold")
            axes.label_outer()


@contextmanager
def new_stack(words: Words, heights: Sequence[float]) -> Iterator[tuple[Figure, list[Axes]]]:
    """Pairs of axes below each other that share their x axis, with heights as shares of a whole row; one legend below
    them.
    """
    with mpl.rc_context({**SETTINGS, "font.size": 11, "axes.labelsize": 10.5, "legend.fontsize": 10}):
        figure = Picture(words)
        panels = list(figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights).flat)
        yield figure, panels
        _surround(figure, panels, STACK, sum(heights) * STACK_ROW_INCHES, hspace=0.16)
        figure.align_ylabels(panels)


def _surround(figure: Picture, panels: Sequence[Axes], sheet: Sheet, axes_inches: float, **spaces: float) -> None:
    """Gives the axes their place, and writes title and conditions above them, legend and caption below them."""
    _shorten_numbers(panels)
    title = textwrap.wrap(figure.words.title, sheet.title_letters)
    conditions = textwrap.wrap(figure.words.conditions, sheet.conditions_letters)
    caption = textwrap.wrap(figure.words.caption, sheet.caption_letters)
    handles, labels, columns = _legend(panels, sheet.columns)
    top = sheet.top + len(title) * sheet.title_line + max(1, len(conditions)) * sheet.line
    legend_at = len(caption) * sheet.line + sheet.caption_margin
    legend = math.ceil(len(labels) / columns) * sheet.legend_line + sheet.legend_margin if labels else 0.0
    bottom = legend_at + legend + XLABEL_INCHES
    width, height = sheet.width, top + axes_inches + bottom
    figure.set_size_inches(width, height)
    figure.subplots_adjust(
        sheet.left / width, bottom / height, (width - RIGHT_INCHES) / width, 1 - top / height, **spaces
    )
    left = MARGIN_INCHES / width
    below_title = 1 - (sheet.title + len(title) * sheet.title_line) / height
    figure.text(left, 1 - 0.12 / height, "\n".join(title), va="top", fontsize=sheet.title_points, fontweight="bold")
    for y, lines, edge, points in (
        (below_title, conditions, "top", sheet.conditions_points),
        (0.08 / height, caption, "bottom", sheet.caption_points),
    ):
        figure.text(left, y, "\n".join(lines), va=edge, fontsize=points, color=MUTED)
    if labels:
        corner = (left, legend_at / height)
        figure.legend(handles, labels, loc="lower left", bbox_to_anchor=corner, borderaxespad=0, ncols=columns)


def colour(index: int) -> str:
    """The colour of a series by its place."""
    return COLOURS[index % len(COLOURS)]


def marker(index: int) -> str:
    """The marker of a series by its place."""
    return MARKERS[index % len(MARKERS)]


def line_style(index: int) -> str:
    """The line style of a series by its place."""
    return LINE_STYLES[index % len(LINE_STYLES)]


def _shorten_numbers(panels: Sequence[Axes]) -> None:
    for axis in (axis for axes in panels for axis in (axes.xaxis, axes.yaxis)):
        is_large = max(abs(end) for end in axis.get_view_interval()) >= LARGE
        if is_large and isinstance(axis.get_major_formatter(), ScalarFormatter):
            axis.set_major_formatter(EngFormatter())


def _legend(panels: Sequence[Axes], most: Sequence[tuple[int, int]]) -> tuple[list[Any], list[str], int]:
    """The entries of the legend, own series before models and these before the papers' marks, each once, and the number
    of columns.
    """
    named = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    labels = sorted(named, key=lambda label: (label.startswith(PAPER_PREFIX), label.startswith(MODEL_PREFIX)))
    longest = max(map(len, labels), default=0)
    columns = next((columns for columns, letters in most if longest <= letters), 1)
    return [named[label] for label in labels], labels, min(columns, len(labels))


def save(figure: Figure, folder: Path, stem: str, formats: tuple[str, ...]) -> list[Path]:
    """Writes the picture in every format, its words in the file too; returns the paths.

    No dates, and SVG ids that depend on the name alone.
    """
    own_folder(folder)
    paths = []
    for suffix in formats:
        path = folder / f"{stem}.{suffix}"
        replace_bytes(path, _file(figure, stem, suffix))
        paths.append(path)
    return paths


def _file(figure: Figure, stem: str, suffix: str) -> bytes:
    metadata: dict[str, str | None] = dict(NO_METADATA[suffix])
    if isinstance(figure, Picture):
        words = zip(TITLE_KEYS[suffix], astuple(figure.words), strict=True)
        metadata |= {name: harmless(text) for name, text in words if name is not None}
    with mpl.rc_context({**SETTINGS, "svg.hashsalt": stem}):
        drawn = io.BytesIO()
        figure.savefig(drawn, format=suffix, dpi=PNG_DOTS_PER_INCH, metadata=metadata)
    content = drawn.getvalue()
    # Labels stand in comments of an SVG, and characters that XML may not have would make it unreadable.
    return harmless(content.decode()).encode() if suffix == "svg" else content


def words_in(png: Path) -> Words | None:
    """The words of a picture that `save` wrote; None: an earlier version wrote it, without them, or it is damaged."""
    try:
        with Image.open(png) as image:
            texts = [image.info.get(name) for name in TITLE_KEYS["png"] if name is not None]
    except OSError:
        return None
    return Words(*map(str, texts)) if all(isinstance(text, str) for text in texts) else None
