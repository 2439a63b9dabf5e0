"""Gradescope: results.json of one submission. Points that a person has not given (--marks) are not in it; they are given on Gradescope, by the rubric.

Texts are declared as plain text: in HTML or Markdown a student's words could be markup. Without a `score` Gradescope reports that the autograder failed and
gives no points: that is what a submission without a grade needs, because a 0 would look like one. No test is hidden: one hidden test hides the total.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from scpslab_course.grading.formats.base import Facts, Format, comment, line
from scpslab_course.grading.grade import Grade, Part, Status

LARGEST_OUTPUT = 2000


def write(grades: Sequence[Grade], _: Facts) -> str:
    """The file."""
    (grade,) = grades
    found: dict[str, Any] = {"output": comment(grade), "output_format": "text", "test_output_format": "text", "test_name_format": "text"}
    found |= {"visibility": "visible", "stdout_visibility": "hidden", "execution_time": round(grade.seconds)}
    found["extra_data"] = {"status": grade.status, "sha256": grade.sha256, "findings": [finding.code for finding in grade.findings], "cells": list(grade.cells)}
    if grade.status is Status.GRADED:
        found["score"] = round(grade.score, 4)
        found["tests"] = [_test(number, part) for number, part in enumerate(grade.parts, start=1) if part.earned is not None]
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _test(number: int, part: Part) -> dict[str, Any]:
    earned = part.earned or 0.0
    found = {"name": line(part.label, 200), "number": f"{number}", "score": round(earned, 4), "max_score": part.points}
    found["status"] = "passed" if earned >= part.points else "failed"
    found["output"] = "\n".join((line(part.question), f"found: {line(part.given, LARGEST_OUTPUT) or 'nothing'}", line(part.comment)))
    return found | {"visibility": "visible"}


KIND = Format("Gradescope's results.json", ".json", write)
