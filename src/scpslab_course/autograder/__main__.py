"""What an autograder's container runs: `prepare` once, when it is built; `grade` for each submission."""

import json
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scpslab import scenario
from scpslab.core.errors import ScpslabError, UsageError, some_of
from scpslab.core.names import shown
from scpslab.core.scratch import replace_text, scratch
from scpslab.engine import DEFAULT, ENGINES
from scpslab.plan import Plan
from scpslab.running import RunOptions
from scpslab.scenario import planning
from scpslab.setup import Say
from scpslab_course.autograder import COURSE, METADATA, RESULTS, ROOT, SOURCE, STUDENTS, SUBMISSION
from scpslab_course.course.folder import Course, Student, load_course, read_roster
from scpslab_course.course.model import Whose, drawn
from scpslab_course.course.variant import NOBODY, PRACTICE
from scpslab_course.grading import grader
from scpslab_course.grading.formats import FORMATS, Facts
from scpslab_course.grading.grade import Code, Concern, Grade
from scpslab_course.grading.submission import SUFFIX

TELL = "Nothing was decided: tell your instructor"


def users(metadata: Path, roster: Sequence[Student]) -> tuple[str, ...]:
    """The ids of who handed a submission in, by their e-mail addresses in Gradescope's submission_metadata.json.

    Raises:
        UsageError: the file does not say it, or somebody is not in the roster.
    """
    try:
        emails = [str(user["email"]) for user in json.loads(metadata.read_bytes())["users"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        said = f"found no users with e-mail addresses ({type(error).__name__}); expected them from the platform"
        raise UsageError(f"{metadata.name}: {said}. {TELL}.") from error
    by_email = {student.email.casefold(): student.id for student in roster}
    unknown = [email for email in emails if email.strip().casefold() not in by_email]
    if unknown or not emails:
        found = ", ".join(shown(email) for email in unknown) or "nobody"
        advice = f"{TELL}, who can make the autograder with today's roster."
        raise UsageError(f"handed in by {found}; expected somebody of the course's roster. {advice}")
    return tuple(by_email[email.strip().casefold()] for email in emails)


def submission_of(folder: Path) -> Path:
    """The one file that was handed in. Links are not followed.

    Raises:
        ScpslabError: there is none, or there are several.
    """
    files = sorted(Path(inside, name) for inside, _, names in os.walk(folder) for name in names)
    # A Mac puts files of its own into archives.
    files = [path for path in files if stat.S_ISREG(path.lstat().st_mode) and not path.name.startswith("._")]
    named = [path for path in files if path.name.endswith(SUFFIX)] or files
    if len(named) != 1:
        found = some_of([shown(path.name) for path in named]) or "no file"
        expected = f'expected the one file that "scpslab assignment submit" writes (NAME-STUDENT{SUFFIX})'
        raise ScpslabError(f"found {found}; {expected}. Hand in that file alone.")
    return named[0]


def prepare(course: Course, say: Say) -> None:
    """Prepares the engine for the plans of the course's assignments, with parameters of nobody.

    Raises:
        CapabilityError: this container cannot run labs.
        LabError: a guest did not start.
    """
    plans: list[Plan] = []
    for name in course.file.assignments:
        assignment = course.assignment(name)
        parameters = drawn(PRACTICE.draw_key, Whose(NOBODY, name, NOBODY), assignment.file.variant, 0)
        for one in assignment.file.scenarios:
            plans += planning.plans(scenario.cells(assignment.loaded(parameters, one))).values()
    ENGINES[DEFAULT]().prepare(say, plans)


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
            settings = grader.Settings(course, course.file.term, None, options, {file: students[0]})
            (found,) = grader.grade([file], settings)
        return _of_all(found, students[1:])
    except ScpslabError as error:
        return Grade(folder, reason=str(error))
    except Exception as error:
        said = f"{grader.BROKEN} ({type(error).__name__}: {error}); expected it to go on"
        return Grade(folder, reason=f"{said}. {TELL}.")


def _of_all(one: Grade, others: Sequence[str]) -> Grade:
    """The grade of a group: a variant is issued to all who work on it."""
    strangers = [other for other in others if one.members and other not in one.members]
    if not strangers:
        return one
    names = ", ".join(map(shown, strangers))
    said = f"handed in for {names}, too; the variant was issued to {', '.join(one.members)}"
    return replace(one, findings=(*one.findings, Concern(Code.OTHER_VARIANT, said)))


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
    (root / RESULTS).parent.mkdir(exist_ok=True)
    replace_text(root / RESULTS, FORMATS["gradescope"].write([grade(root)], Facts("", "")))
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
