"""GitHub Classroom: the output `result` of a grading step, base64 of JSON, for its reporter. Scores are hundredths of points: the reporter adds whole numbers.

Without a grade the status is `error` and no test has a score; the command's exit code then fails the step, so that nobody takes the sum of nothing for a 0.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from scpslab_course.grading.formats.base import Facts, Format, comment, hundredths, line
from scpslab_course.grading.grade import Grade, Part, Status


def write(grades: Sequence[Grade], _: Facts) -> str:
    """The output."""
    (grade,) = grades
    marked = [part for part in grade.parts if part.earned is not None]
    if grade.status is Status.GRADED:
        tests = [_test(part) for part in marked]
        status = "pass" if all(test["status"] == "pass" for test in tests) else "fail"
    else:
        tests, status = [{"name": "grading", "status": "error", "message": comment(grade)}], "error"
    found = {"version": 1, "status": status, "max_score": hundredths(grade.most), "tests": tests}
    return base64.b64encode(json.dumps(found).encode()).decode("ascii") + "\n"


def _test(part: Part) -> dict[str, Any]:
    earned = part.earned or 0.0
    found = {"name": line(part.label, 200), "status": "pass" if earned >= part.points else "fail", "score": hundredths(earned)}
    return found | {"message": line(part.comment), "test_code": "", "filename": "", "line_no": 0, "duration": 0}


KIND = Format("the result of a step of GitHub Classroom", ".txt", write)
