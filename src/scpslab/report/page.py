"""Content to one HTML file that needs nothing else: styles, tables and pictures are inside, there is no script and no address to fetch from."""

from __future__ import annotations

import base64
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from scpslab.claims import Outcome
from scpslab.claims.scoreboard import band, subject
from scpslab.report.content import Picture, check_lines, gather, outcomes
from scpslab.runfolder.run import REPORT
from scpslab.scratch import replace_text

MEDIA_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
# A sign beside each colour: nobody needs to tell colours apart.
SIGNS = {
    Outcome.REPRODUCED: "✓",
    Outcome.DIFFERENT: "≠",
    Outcome.NOT_REPRODUCED: "✗",
    Outcome.UNDECIDED: "?",
    Outcome.NO_DATA: "…",
    Outcome.NOT_TESTABLE: "–",
}
MEANINGS = {
    Outcome.REPRODUCED: "Our number lies in the stated band, or the order is as the paper says and too clear to be chance.",
    Outcome.DIFFERENT: "It lies elsewhere, in the band of a deviation whose reason is known and stated.",
    Outcome.NOT_REPRODUCED: "It lies elsewhere, and no reason for that was foreseen.",
    Outcome.UNDECIDED: "Our interval reaches across the bound, or the difference may be chance: more repeats would tell.",
    Outcome.NO_DATA: "The cells that would tell have not been run.",
    Outcome.NOT_TESTABLE: "Nothing that could be measured here; the reason is given.",
}
ERA_WORDS = {"period": "as then", "modern": "as today"}


def write_report(folder: Path) -> Path:
    """Writes report.html into the folder of a run or campaign; returns its path. The same results give the same bytes.

    Raises:
        ResultError: a run that cannot be read.
    """
    path = folder / REPORT
    replace_text(path, render(folder))
    return path


def render(folder: Path) -> str:
    """The page as text."""
    # What content says is text: everything is escaped, but pictures, which are data of our own.
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.get_template("page.html.j2")
    return template.render(
        content=gather(folder),
        outcomes=list(Outcome),
        signs=SIGNS,
        meanings=MEANINGS,
        era_words=ERA_WORDS,
        class_of=class_of,
        outcomes_of=outcomes,
        check_lines=check_lines,
        band=band,
        subject=subject,
        data_uri=data_uri,
    )


def class_of(outcome: Outcome) -> str:
    """The style class of an outcome: "not-reproduced"."""
    return outcome.value.replace(" ", "-")


def data_uri(picture: Picture) -> Markup:
    """The picture's bytes as an address that an <img> can have."""
    data = base64.b64encode(picture.path.read_bytes()).decode("ascii")
    return Markup(f"data:{MEDIA_TYPES[picture.path.suffix]};base64,{data}")  # noqa: S704 (letters of base64)
