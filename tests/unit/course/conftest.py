"""A small assignment, in a folder of the test's own."""

import pytest

from scpslab_course.course import assignment as assignments
from scpslab_course.course import workspace
from scpslab_course.course.folder import practice_variant
from scpslab_course.course.variant import Secret
from tests.cases import document

SCENARIO = document("scenario of an assignment")
ASSIGNMENT = document("assignment with a variant")
MARKING = document("marking with a variant")


@pytest.fixture
def folder(tmp_path):
    """The folder of the assignment."""
    made = tmp_path / "assignments" / "small"
    (made / "instructor" / "solution").mkdir(parents=True)
    (made / "starter").mkdir()
    (made / "transfer.yaml").write_text(SCENARIO)
    (made / "assignment.yaml").write_text(ASSIGNMENT)
    (made / "handout.md").write_text("# A small one\n")
    (made / "starter" / "begin.py").write_text("print('begin')\n")
    (made / "instructor" / "marking.yaml").write_text(MARKING)
    (made / "instructor" / "solution" / "answers.yaml").write_text("bdp: 1\n")
    return made


@pytest.fixture
def assignment(folder):
    """The students' part."""
    return assignments.load_assignment(folder)


@pytest.fixture
def marking(assignment):
    """The instructor's part."""
    return assignments.load_marking(assignment)


@pytest.fixture
def secret():
    """A course's secret."""
    return Secret(bytes(range(32)))


@pytest.fixture
def no_runs():
    """For bands that need no reference run."""

    def rows(assignment, parameters, scenarios):
        raise AssertionError("no reference run is needed")

    return rows


@pytest.fixture
def started(assignment, marking, no_runs, tmp_path):
    """A student's folder with the practice variant."""
    variant = practice_variant(assignment, marking, no_runs)
    return workspace.write_start(
        workspace.plan_start(assignment, variant), assignment, variant, tmp_path / "mine", "2026-11-22T21:00:00Z"
    )
