"""The project's own assignments: they load, their variants plan and differ, and what is marked as a common mistake never has all points."""

from __future__ import annotations

import re
from functools import cache

import pytest

from scpslab.course import issue
from scpslab.course.answers import read_answers
from scpslab.course.assignment import FOLDER, HANDOUT, INSTRUCTOR, NOTES, SOLUTION, find, load_assignment, load_marking, names
from scpslab.course.draw import Whose
from scpslab.course.expected import Evaluation, RightNumber
from scpslab.course.marking import MarkedNumber
from scpslab.course.practice import read_practice
from scpslab.course.runs import run_of
from scpslab.course.scoring import score_answer
from scpslab.course.secret import Secret

STUDENTS = 20
SECRET = Secret(bytes(range(32)))


@cache
def both(name):
    assignment = load_assignment(find(name))
    return assignment, load_marking(assignment)


def variants(name):
    """The parameters of some students. Bands that need reference runs are the business of tests/lab."""
    assignment, marking = both(name)
    if marking.file.difficulty and any(marking.needs_results(("difficulty", "bands", index, "value")) for index in range(len(marking.file.difficulty.bands))):
        pytest.skip("its variants need reference runs")
    for number in range(STUDENTS):
        whose = Whose("test", name, f"student{number}")
        yield issue.draw_within_bands(SECRET, whose, assignment, marking, lambda *_: pytest.fail("no reference run is needed"))[1]


@pytest.mark.parametrize("name", names())
def test_the_handout_states_the_points_and_names_every_prediction(name):
    assignment, _ = both(name)
    text = (assignment.folder / HANDOUT).read_text()
    assert re.search(rf"Points: {assignment.file.points:g}\b", text)
    for asked in assignment.file.predictions:
        assert asked in text, f"{name}: the handout does not name {asked}"
    assert (assignment.folder / INSTRUCTOR / NOTES).is_file()


@pytest.mark.parametrize("name", names())
def test_every_scenario_plans_with_a_students_variant_and_no_two_students_have_the_same(name, tmp_path):
    assignment, _ = both(name)
    drawn = list(variants(name))
    assert all(run_of(assignment, drawn[0], scenario, tmp_path).cells for scenario in assignment.scenario_names)
    assert len({tuple(parameters.items()) for parameters in drawn}) == STUDENTS


@pytest.mark.parametrize("name", names())
def test_common_mistakes_in_computed_answers_have_fewer_points_in_every_variant(name):
    assignment, marking = both(name)
    for parameters in variants(name):
        evaluation = Evaluation(marking, parameters, {})
        for answer, marked in marking.file.answers.items():
            at = ("answers", answer)
            if not isinstance(marked, MarkedNumber) or marking.needs_results((*at, "expected")):
                continue
            right = evaluation.number((*at, "expected"))
            tolerance = max(abs(right) * marked.relative, marked.absolute)
            asked = assignment.file.answers[answer]
            assert asked.within is None or asked.within[0] < right < asked.within[1]
            for index, mistake in enumerate(marked.wrong):
                place = (*at, "wrong", index, "value")
                if marking.needs_results(place):
                    continue
                found = evaluation.number(place)
                # One and a half tolerances: a mistake that was rounded to the digits that are asked for must not pass either.
                assert abs(found - right) > 1.5 * tolerance, f"{name}: {answer}: {mistake.value} is {found:g}, near the right {right:g}, with {parameters}"


@pytest.mark.parametrize("name", [name for name in names() if (FOLDER / name / INSTRUCTOR / SOLUTION / "answers.yaml").is_file()])
def test_the_reference_solution_has_all_points_for_numbers_and_words_of_the_practice_variant(name):
    assignment, _ = both(name)
    path = assignment.folder / INSTRUCTOR / SOLUTION / "answers.yaml"
    given = read_answers(path.read_bytes(), path)
    assert not list(given.complaints(assignment.file))
    right = read_practice(assignment).expected.answers
    assert {answer: score_answer(assignment.file.answers[answer], one, given.given[answer]).share for answer, one in right.items()} == dict.fromkeys(right, 1)


@pytest.mark.parametrize("name", names())
def test_no_mistake_of_the_practice_variant_has_all_points(name):
    assignment, _ = both(name)
    for answer, right in read_practice(assignment).expected.answers.items():
        for mistake in right.wrong:
            if isinstance(right, RightNumber) or mistake.value != right.value:
                assert score_answer(assignment.file.answers[answer], right, mistake.value).share < 1, f"{name}: {answer}: {mistake.comment}"
