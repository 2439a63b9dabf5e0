"""Moodle VPL: what its evaluation prints. Without a grade there is no line `Grade :=>>`, and Moodle proposes none.

Every line of the comment begins with an indent, and the marks of VPL are taken apart: a student's words can neither grade nor end the comment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scpslab_course.grading.formats.base import Facts, Format, comment, line
from scpslab_course.grading.grade import Grade, Status

BROKEN_UP = {":=>>": ": = > >", "<|--": "< | - -", "--|>": "- - | >"}


def write(grades: Sequence[Grade], facts: Facts) -> str:
    """The output."""
    (grade,) = grades
    lines = ["<|--", *(f" {_harmless(text)}" for text in _lines(grade)), "--|>"]
    if grade.status is Status.GRADED:
        lines.append(f"Grade :=>>{_scaled(grade, facts):.2f}")
    return "\n".join(lines) + "\n"


def _lines(grade: Grade) -> Iterator[str]:
    yield from comment(grade).splitlines()
    for part in grade.parts:
        points = "a person decides" if part.earned is None else f"{part.earned:.4g} of {part.points:g}"
        yield f"{part.label}: {points}; {part.comment}"


def _harmless(text: str) -> str:
    text = line(text)
    for mark, apart in BROKEN_UP.items():
        text = text.replace(mark, apart)
    return text


def _scaled(grade: Grade, facts: Facts) -> float:
    """The score between the bounds that Moodle has set; without them in points."""
    try:
        low, high = (float(facts.environment[name]) for name in ("VPL_GRADEMIN", "VPL_GRADEMAX"))
    except (KeyError, ValueError):
        return grade.score
    return low + (high - low) * (grade.score / grade.most if grade.most else 0)


KIND = Format("the output of an evaluation of Moodle's VPL", ".txt", write)
