"""Classroom 50: result.json (classroom50/result/v1). Scores are hundredths of points, because the form has whole numbers.

Names of classroom, assignment, owner and submission come from its environment. A result without a grade has no score: the command's exit code says that the
autograder did not come to one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from scpslab_course.grading.formats.base import Facts, Format, comment, hundredths, line
from scpslab_course.grading.grade import Grade, Part, Status

SCHEMA = "classroom50/result/v1"
# Key of the result to the variable that Classroom 50 sets.
FROM_ENVIRONMENT = {"classroom": "CLASSROOM", "assignment": "ASSIGNMENT", "owner": "OWNER", "submission": "SUBMISSION_TAG", "commit": "GITHUB_SHA"}


def write(grades: Sequence[Grade], facts: Facts) -> str:
    """The file."""
    (grade,) = grades
    given = {key: facts.environment.get(name, "") for key, name in FROM_ENVIRONMENT.items()}
    given["assignment"] = given["assignment"] or grade.assignment
    kind = "group" if len(grade.members) > 1 else "individual"
    found: dict[str, Any] = {"schema": SCHEMA, **given, "assignment_type": kind, "release": "", "review": "", "datetime": facts.at, "graded_at": facts.at}
    if grade.status is Status.GRADED:
        found |= {"score": hundredths(grade.score), "max-score": hundredths(grade.most)}
        found["tests"] = [_test(part) for part in grade.parts if part.earned is not None]
    found |= {"status": grade.status, "message": comment(grade)}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _test(part: Part) -> dict[str, Any]:
    earned = part.earned or 0.0
    found = {"test-name": line(part.label, 200), "passed": earned >= part.points, "score": hundredths(earned)}
    return found | {"max-score": hundredths(part.points), "message": line(part.comment)}


KIND = Format("result.json of Classroom 50", ".json", write)
