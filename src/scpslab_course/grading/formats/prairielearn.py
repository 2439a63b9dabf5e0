"""PrairieLearn: results.json of an external grader. Without a grade `gradable` is false, and the attempt does not count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from scpslab_course.grading.formats.base import Facts, Format, comment, line, without_markup
from scpslab_course.grading.grade import Grade, Part, Status

# The platform takes 1 MB.
LONGEST_TEXT, MOST_TESTS = 1000, 200


def write(grades: Sequence[Grade], _: Facts) -> str:
    """The file."""
    (grade,) = grades
    said = without_markup(comment(grade))
    if grade.status is not Status.GRADED:
        return json.dumps({"gradable": False, "format_errors": [said], "message": said}, indent=1, ensure_ascii=False) + "\n"
    share = min(1.0, max(0.0, grade.score / grade.most)) if grade.most else 0.0
    tests = [_test(part) for part in grade.parts if part.earned is not None][:MOST_TESTS]
    return json.dumps({"gradable": True, "score": share, "message": said, "tests": tests}, indent=1, ensure_ascii=False) + "\n"


def _test(part: Part) -> dict[str, Any]:
    texts = {"description": line(part.question, LONGEST_TEXT), "message": line(part.comment, LONGEST_TEXT), "output": line(part.given, LONGEST_TEXT)}
    found = {"name": line(part.label, 200), "points": part.earned, "max_points": part.points}
    return found | {key: without_markup(text) for key, text in texts.items()}


KIND = Format("PrairieLearn's results.json", ".json", write)
