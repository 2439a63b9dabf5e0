"""Turns content into one self-contained HTML file: styles, tables and pictures are inside; it has no scripts and
fetches nothing.
"""

from __future__ import annotations

import base64
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from scpslab.analysis.claims import Outcome
from scpslab.analysis.claims.scoreboard import band, in_place, subject, word
from scpslab.analysis.figures.drawing import Warn, refuse
from scpslab.analysis.report.content import Picture, check_lines, gather, outcomes
from scpslab.core.scratch import replace_text
from scpslab.runs.run import REPORT

MEDIA_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
# Each outcome has a sign besides its colour: nobody needs to distinguish colours.
SIGNS = {
    Outcome.REPRODUCED: "✓",
    Outcome.DIFFERENT: "≠",
    Outcome.NOT_REPRODUCED: "✗",
    Outcome.UNDECIDED: "?",
    Outcome.NO_DATA: "…",
    Outcome.NOT_TESTABLE: "–",
}
MEANINGS = {
    Outcome.REPRODUCED: (
        "Our number is in the stated band, or the order is as the paper says and too clear to be chance."
    ),
    Outcome.DIFFERENT: "Our number is outside the band, but in the band of a deviation with a known reason.",
    Outcome.NOT_REPRODUCED: "Our number is in neither band, so the result differs without a known reason.",
    Outcome.UNDECIDED: "Our interval crosses a bound, or the difference may be chance: more repeats would decide it.",
    Outcome.NO_DATA: "The cells that would decide it have not been run.",
    Outcome.NOT_TESTABLE: "The lab cannot measure it; the reason is given.",
}
ERA_WORDS = {"period": "as then", "modern": "as today"}


def write_report(folder: Path, warn: Warn = refuse) -> Path:
    """Writes report.html into the folder of a run or campaign; returns its path.

    The same results give the same bytes. `warn`: see `figures.draw`.

    Raises:
        ResultError: a run that cannot be read.
    """
    path = folder / REPORT
    replace_text(path, render(folder, warn))
    return path


def render(folder: Path, warn: Warn = refuse) -> str:
    """The page as text."""
    # Content is text: everything is escaped except pictures, which are our own data.
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("page.html.j2")
    return template.render(
        content=gather(folder, warn),
        outcomes=list(Outcome),
        signs=SIGNS,
        meanings=MEANINGS,
        era_words=ERA_WORDS,
        class_of=class_of,
        outcomes_of=outcomes,
        check_lines=check_lines,
        band=band,
        subject=subject,
        in_place=in_place,
        word=word,
        data_uri=data_uri,
    )


def class_of(outcome: Outcome) -> str:
    """The style class of an outcome: "not-reproduced"."""
    return outcome.value.replace(" ", "-")


def data_uri(picture: Picture) -> Markup:
    """The picture's bytes as an address that an <img> can have."""
    data = base64.b64encode(picture.path.read_bytes()).decode("ascii")
    return Markup(f"data:{MEDIA_TYPES[picture.path.suffix]};base64,{data}")  # noqa: S704 (letters of base64)
