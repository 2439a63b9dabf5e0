"""Writes the pages. Everything of a student is escaped text; the pages have no scripts, fetch nothing, and forbid both to the browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from scpslab.errors import UsageError
from scpslab.grading.formats import Facts
from scpslab.grading.grade import Grade
from scpslab.grading.review.overview import overview
from scpslab.names import file_label, file_name
from scpslab.scratch import replace_text

INDEX = "index.html"


def write_review(grades: Sequence[Grade], facts: Facts, folder: Path) -> Path:
    """Writes the pages into a folder; returns that of the class.

    Raises:
        UsageError: the folder cannot be one.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--review {folder}: found a file; expected a folder. Name another.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(grades, facts).items():
        replace_text(folder / name, text)
    return folder / INDEX


def pages(grades: Sequence[Grade], facts: Facts) -> dict[str, str]:
    """The pages by their file names."""
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    names = [_name(number, grade) for number, grade in enumerate(grades, start=1)]
    found = {INDEX: environment.get_template("class.html.j2").render(facts=facts, entries=list(zip(names, grades, strict=True)), overview=overview(grades))}
    for name, grade in zip(names, grades, strict=True):
        found[name] = environment.get_template("submission.html.j2").render(facts=facts, grade=grade, index=INDEX)
    return found


def _name(number: int, grade: Grade) -> str:
    """The file of a submission: its number makes it unique, whatever the student is called."""
    return file_name(f"{number:03}", file_label(grade.student or grade.path.name), suffix=".html")
