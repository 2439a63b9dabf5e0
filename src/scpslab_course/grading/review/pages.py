"""Writes the pages. Everything of a student is escaped text; the pages have no scripts, fetch nothing, and forbid both to the browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from scpslab.core.errors import UsageError
from scpslab.core.names import file_label, file_name
from scpslab.core.scratch import private_folder, replace_text
from scpslab_course.grading.formats import Facts
from scpslab_course.grading.grade import Grade
from scpslab_course.grading.review.overview import overview

INDEX = "index.html"


def write_review(grades: Sequence[Grade], facts: Facts, folder: Path) -> Path:
    """Writes the pages into a folder; returns that of the class.

    Raises:
        UsageError: the folder cannot be one.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--review {folder}: found a file; expected a folder. Name another.")
    private_folder(folder)
    for name, text in pages(grades, facts).items():
        replace_text(folder / name, text, private=True)
    return folder / INDEX


def pages(grades: Sequence[Grade], facts: Facts) -> dict[str, str]:
    """The pages by their file names."""
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    names = [_name(number, grade) for number, grade in enumerate(grades, start=1)]
    entries = list(zip(names, (_shown(grade, facts) for grade in grades), grades, strict=True))
    found = {INDEX: environment.get_template("class.html.j2").render(facts=facts, entries=entries, overview=overview(grades))}
    for name, shown, grade in entries:
        found[name] = environment.get_template("submission.html.j2").render(facts=facts, grade=grade, shown=shown, index=INDEX)
    # A file's name may have bytes that are no text.
    return {name: text.encode("utf-8", "backslashreplace").decode() for name, text in found.items()}


def _name(number: int, grade: Grade) -> str:
    """The file of a submission: its number makes it unique, whatever the student is called."""
    return file_name(f"{number:03}", file_label(grade.submitter or grade.student or grade.path.name), suffix=".html")


def _shown(grade: Grade, facts: Facts) -> str:
    """Who handed in, with the names of the roster. A variant that was copied names its owner, who need not have done so."""
    known = [(one, facts.students[one].name if one in facts.students else "") for one in grade.recipients]
    return ", ".join(f"{name} ({one})" if name else one for one, name in known) or grade.student or grade.path.name
