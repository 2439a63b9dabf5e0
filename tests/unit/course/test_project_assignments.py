"""The project's own assignments: they load, their variants plan and differ, and what is marked as a common mistake
never has all points.
"""

import random
import re

import pytest

from scpslab.scenario.planning import YOURS
from scpslab_course.course import handout
from scpslab_course.course.answers import Evaluation, RightNumber, read_answers, read_practice, score_answer
from scpslab_course.course.assignment import (
    FOLDER,
    HANDOUT,
    INSTRUCTOR,
    NOTES,
    SOLUTION,
    names,
)
from scpslab_course.course.folder import draw_within_bands
from scpslab_course.course.formulas import base_value
from scpslab_course.course.model import MarkedNumber, Whose
from scpslab_course.course.runs import run_of
from scpslab_course.course.variant import Secret
from tests.unit.course.claims import both
from tests.unit.course.told import told

STUDENTS = 20
SECRET = Secret(bytes(range(32)))


def variants(name):
    """The parameters of some students. Bands that need reference runs are the business of tests/lab."""
    assignment, marking = both(name)
    if any(at[0] == "difficulty" and marking.needs_results(at) for at in marking.formulas):
        pytest.skip("its variants need reference runs")
    for number in range(STUDENTS):
        whose = Whose("test", name, f"student{number}")
        yield draw_within_bands(SECRET, whose, assignment, marking, lambda *_: pytest.fail("no run is needed"))[1]


@pytest.mark.parametrize("name", names())
def test_the_handout_states_the_points_and_names_every_prediction(name):
    assignment, _ = both(name)
    text = (assignment.folder / HANDOUT).read_text()
    assert re.search(rf"Points: {assignment.file.points:g}\b", text)
    for asked in assignment.file.predictions:
        assert asked in text, f"{name}: the handout does not name {asked}"
    assert (assignment.folder / INSTRUCTOR / NOTES).is_file()


@pytest.mark.parametrize("name", names())
def test_the_handout_prints_the_rule_by_which_each_prediction_and_number_is_marked(name):
    section = told(*both(name))
    assert section in (both(name)[0].folder / HANDOUT).read_text(), section


@pytest.mark.parametrize("name", names())
def test_predictions_of_numbers_are_intervals_and_none_is_what_a_task_computes(name):
    assignment, marking = both(name)
    assert {asked.kind for asked in assignment.file.predictions.values()} <= {"interval", "choice"}
    for prediction in marking.file.predictions:
        at = ("predictions", prediction, "truth")
        assert marking.needs_results(at), f"{name}: {prediction} is a formula of the parameters alone"
    computed = [
        answer
        for answer, one in marking.file.answers.items()
        if isinstance(one, MarkedNumber) and not marking.needs_results(("answers", answer, "expected"))
    ]
    practice = read_practice(assignment).expected
    for prediction, truth in practice.predictions.items():
        alike = [
            answer
            for answer in computed
            for scale in (0.001, 1, 1000)
            if isinstance(truth, float) and truth == pytest.approx(practice.answers[answer].value * scale, rel=0.02)
        ]
        assert alike == [], f"{name}: {prediction} comes out as the computed {', '.join(alike)}"


@pytest.mark.parametrize("name", names())
def test_a_count_that_is_one_off_has_a_part_of_the_points(name):
    assignment, marking = both(name)
    for answer, marked in marking.file.answers.items():
        is_exact = isinstance(marked, MarkedNumber) and not marked.relative and marked.absolute < 1
        if is_exact and marking.needs_results(("answers", answer, "expected")):
            right = read_practice(assignment).expected.answers[answer]
            for given in (right.value - 1, right.value + 1):
                assert 0 < score_answer(assignment.file.answers[answer], right, given).share < 1, f"{name}: {answer}"


@pytest.mark.parametrize("name", names())
def test_every_scenario_plans_with_a_students_variant_and_no_two_students_have_the_same(name, tmp_path):
    assignment, _ = both(name)
    drawn = list(variants(name))
    assert all(run_of(assignment, drawn[0], scenario, tmp_path).cells for scenario in assignment.file.scenarios)
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
                # One and a half tolerances: a mistake that was rounded to the digits that are asked for must not pass
                # either.
                assert abs(found - right) > 1.5 * tolerance, (
                    f"{name}: {answer}: {mistake.value} is {found:g}, near the right {right:g}, with {parameters}"
                )


@pytest.mark.parametrize(
    "name", [name for name in names() if (FOLDER / name / INSTRUCTOR / SOLUTION / "answers.yaml").is_file()]
)
def test_the_reference_solution_has_all_points_for_numbers_and_words_of_the_practice_variant(name):
    assignment, _ = both(name)
    path = assignment.folder / INSTRUCTOR / SOLUTION / "answers.yaml"
    given = read_answers(path.read_bytes(), path)
    assert not list(given.complaints(assignment.file))
    right = read_practice(assignment).expected.answers
    assert {
        answer: score_answer(assignment.file.answers[answer], one, given.given[answer]).share
        for answer, one in right.items()
    } == dict.fromkeys(right, 1)


@pytest.mark.parametrize("name", names())
def test_no_mistake_of_the_practice_variant_has_all_points(name):
    assignment, _ = both(name)
    for answer, right in read_practice(assignment).expected.answers.items():
        for mistake in right.wrong:
            if isinstance(right, RightNumber) or mistake.value != right.value:
                assert score_answer(assignment.file.answers[answer], right, mistake.value).share < 1, (
                    f"{name}: {answer}: {mistake.comment}"
                )


def test_first_steps_transfer_time_is_payload_headers_and_the_idle_link_of_slow_start():
    """The model answer of the practice variant, from the formula, and as practice.json has measured it."""
    assignment, _ = both("first-steps")
    practice = read_practice(assignment)
    rate, delay, size = (base_value(practice.variant.parameters[name]) for name in ("rate", "delay", "size"))
    packet_s = 1452 * 8 / rate
    round_trip_s = 2 * delay + packet_s + 52 * 8 / rate
    room = round_trip_s / packet_s
    payload_s, headers_s = size * 8 / rate, size / 1400 * 52 * 8 / rate
    idle_s = sum(round_trip_s - window * packet_s for window in (10, 20, 40, 80, 160) if window < room)
    instructor = assignment.folder / INSTRUCTOR
    said = (instructor / SOLUTION / "answers.yaml").read_text() + (instructor / NOTES).read_text()
    measured_s = size * 8 / (1000 * practice.expected.predictions["large_goodput"])
    sums = (payload_s, headers_s, idle_s, payload_s + headers_s + idle_s)

    assert sums[3] == pytest.approx(measured_s, rel=0.005)
    assert {f"{seconds:.2f} s" for seconds in sums} <= set(re.findall(r"\d+\.\d+ s", said))
    assert f"room for {room:.0f} packets" in said


def test_a_geostationary_delay_is_at_least_the_way_up_and_down():
    assert min(base_value(parameters["delay"]) for parameters in variants("first-steps")) >= 2 * 35_786e3 / 299_792_458


DIGITS = {"two": 2, "three": 3, "four": 4}


@pytest.mark.parametrize("name", names())
def test_the_digits_that_a_question_or_its_tolerance_names_are_enough(name):
    assignment, marking = both(name)
    try:
        drawn = list(variants(name))
    except pytest.skip.Exception:
        drawn = [read_practice(assignment).variant.parameters]
    for answer, marked in marking.file.answers.items():
        at = ("answers", answer, "expected")
        words = f"{assignment.file.answers[answer].question} {getattr(marked, 'because', '')}"
        named = [
            DIGITS[word.casefold()] for word in re.findall(r"(two|three|four)(?: or \w+)? digits", words, re.IGNORECASE)
        ]
        if not isinstance(marked, MarkedNumber) or marking.needs_results(at) or not named:
            continue
        for parameters in drawn:
            right = Evaluation(marking, parameters, {}).number(at)
            rounded = float(f"{right:.{min(named) - 1}e}")
            assert abs(rounded - right) <= max(abs(right) * marked.relative, marked.absolute), (
                f"{name}: {answer}: {rounded:g} for {right:g}"
            )


def test_mathis_constant_is_larger_for_independent_losses_and_hardly_so_at_ten_segments():
    """What the handout of corruption-or-congestion says of its formula: additive increase, halving, and losses that are
    drawn.
    """

    def constant(p, rounds=200_000):
        stream, window, sent = random.Random(1), 10, 0
        for _ in range(rounds):
            sent += window
            window = max(1, window // 2) if stream.random() < 1 - (1 - p) ** window else window + 1
        return sent / rounds * p**0.5

    assert constant(1e-4) == pytest.approx(1.3, abs=0.03)
    assert constant(1e-2) == pytest.approx(1.24, abs=0.04)


@pytest.mark.parametrize("name", names())
def test_the_drawing_of_the_network_is_what_the_command_draws(name):
    """`scpslab course draw`; it names what each student has of their own, and gives none of its practice values."""
    assignment, _ = both(name)
    drawn = handout.picture(assignment)
    assert drawn == (assignment.folder / handout.DRAWING).read_text()
    for parameter, value in read_practice(assignment).variant.parameters.items():
        assert f">{value}<" not in drawn or f"{YOURS}{parameter}" not in drawn, parameter
