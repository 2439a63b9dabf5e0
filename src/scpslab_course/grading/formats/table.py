"""Plain text: a line for each submission, and below it what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scpslab_course.grading.formats.base import Facts, Format, line
from scpslab_course.grading.grade import Grade, Status

HEAD = ("status", "score", "of", "for a person", "student", "submission")


def write(grades: Sequence[Grade], _: Facts) -> str:
    """The table."""
    rows = [HEAD, *map(_row, grades)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = []
    for number, row in enumerate(rows):
        lines.append("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
        if number:
            lines += [f"    {text}" for text in _below(grades[number - 1])]
    counts = [f"{sum(grade.status is status for grade in grades)} {status}" for status in Status]
    return "\n".join([*lines, "", ", ".join(counts), ""])


def _row(grade: Grade) -> tuple[str, ...]:
    score, most, waiting = (f"{grade.score:g}", f"{grade.most:g}", f"{grade.waiting:g}") if grade.parts else ("-", "-", "-")
    return grade.status, score, most, waiting, line(grade.submitter or grade.student or "-", 60), line(str(grade.path), 200)


def _below(grade: Grade) -> Iterator[str]:
    yield from (line(said) for said in grade.said)


KIND = Format("a line for each submission, and what was found", ".txt", write, of_one=False)
