"""What an autograder's container runs: `prepare` once, when it is built; `grade` for each submission."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scpslab.core.errors import ScpslabError
from scpslab.core.names import shown
from scpslab.core.scratch import replace_text, scratch
from scpslab.running import RunOptions
from scpslab_course.autograder.handed_in import submission_of, users
from scpslab_course.autograder.layout import COURSE, METADATA, RESULTS, ROOT, SOURCE, STUDENTS, SUBMISSION
from scpslab_course.autograder.prepare import prepare
from scpslab_course.course.folder import load_course
from scpslab_course.course.roster import read_roster
from scpslab_course.grading import grader
from scpslab_course.grading.formats import FORMATS, Facts
from scpslab_course.grading.grade import Code, Finding, Grade


def grade(root: Path) -> Grade:
    """The grade of the submission in a container. Whatever goes wrong is the reason of a grade without a score."""
    folder = root / SUBMISSION
    try:
        course = load_course(root / SOURCE / COURSE)
        students = users(root / METADATA, read_roster(root / SOURCE / STUDENTS))
        file = submission_of(folder)
        with scratch() as out:
            # One cell at a time: half a processor and 768 MB are a platform's default.
            options = RunOptions(jobs=1, use_cache=False, out=out)
            found = grader.grade([file], grader.Settings(course, course.file.term, None, options, {file: students[0]}))[0]
        return _of_all(found, students[1:])
    except ScpslabError as error:
        return Grade(folder, reason=str(error))
    except Exception as error:
        return Grade(folder, reason=f"{grader.BROKEN} ({type(error).__name__}: {error}); expected it to go on. Nothing was decided: tell your instructor.")


def _of_all(one: Grade, others: Sequence[str]) -> Grade:
    """The grade of a group: a variant is issued to all who work on it."""
    strangers = [other for other in others if one.members and other not in one.members]
    if not strangers:
        return one
    said = f"handed in for {', '.join(shown(other) for other in strangers)}, too; the variant was issued to {', '.join(one.members)}"
    return replace(one, findings=(*one.findings, Finding(Code.OTHER_VARIANT, said)))


def main(words: list[str], root: Path = ROOT) -> int:
    """Carries out one of the two words; returns the exit code."""
    if words == ["prepare"]:
        try:
            prepare(load_course(root / SOURCE / COURSE), _say)
        except ScpslabError as error:
            _say(f"error: {error}")
            return error.exit_code
        return 0
    if words != ["grade"]:
        _say("error: expected prepare or grade.")
        return 2
    facts = Facts("", "", dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    (root / RESULTS).parent.mkdir(exist_ok=True)
    replace_text(root / RESULTS, FORMATS["gradescope"].write([grade(root)], facts))
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
