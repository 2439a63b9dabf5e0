"""Numbers that are right for another student's variant are found in any text."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from scpslab_course.course.answers import Expected
from scpslab_course.grading import classwide
from scpslab_course.grading.classwide import _Index, _is_rounded
from scpslab_course.grading.grade import Code, Grade, Graded

EXPECTED = Expected(predictions={}, answers={})


def made(student: str, numbers: dict[str, float], write_up: str = "") -> Grade:
    whose = {"assignment": "small", "student": student, "members": (student,)}
    return classwide.wrote(Grade(Path(student), **whose, expected=EXPECTED, numbers=numbers), write_up)


@given(
    st.floats(1e-9, 1e9),
    st.lists(st.floats(1e-9, 1e9), max_size=8),
    st.integers(3, 6),
    st.sampled_from([0.001, 0.9995, 1, 1.0005, 1000]),
    st.integers(0, 8),
)
def test_an_index_finds_exactly_the_numbers_that_a_text_rounds(exact, others, digits, scale, cut):
    text = f"{exact * scale:.{digits}g}"
    text = text[: max(3, len(text) - cut)] if "e" not in text else f"{float(text):.20f}"
    numbers = [exact, *others, exact * 1000, exact / 1000, exact * 1.004]
    if classwide._digits(text) < classwide.FEWEST_DIGITS:
        return

    found = _Index((value, str(number)) for number, value in enumerate(numbers)).rounded_to(text)

    assert found == {str(number) for number, value in enumerate(numbers) if _is_rounded(text, float(text), value)}


def test_copied_numbers_are_named_and_ones_own_are_not():
    anna = made("anna", {"answer bdp": 62.504, "prediction time": 7.8125, "round-trip cell rtt": 501.73})
    bo = made("bo", {"answer bdp": 81.37, "prediction time": 9.1944}, "It was 62.50 kB and 7.8125 s; mine is 81.37.")
    di = made("di", {"answer bdp": 62.504}, "It was 62.50 kB and 7.8125 s.")

    (found,) = classwide.findings(bo, [anna, bo])
    assert found.code is Code.COPIED_NUMBERS
    assert '62.50, 7.8125, which are right for the variant of "anna"' in found.says
    assert list(classwide.findings(di, [anna, di])) == []


def test_who_was_copied_from_is_named_before_others():
    near = made("near", {"answer bdp": 62.504, "prediction time": 7.8125})
    anna = made("anna", {"answer bdp": 62.504, "prediction time": 7.8125, "answer rtt": 501.731})
    bo = made("bo", {"answer bdp": 81.37}, "It was 62.50 kB, 7.8125 s and 501.73 ms.")

    assert ['"anna"' in found.says for found in classwide.findings(bo, [near, anna, bo])] == [True, False]


def _predicted(student: str, truth: float, given: str) -> Grade:
    right = Expected(predictions={"time": truth, "rate": truth * 3, "where": "queue"}, answers={})
    parts = tuple(
        Graded("prediction", name, "?", 1, 0, "", text) for name, text in (("time", given), ("rate", "501.7"))
    )
    return Grade(Path(student), assignment="small", student=student, members=(student,), expected=right, parts=parts)


def test_equal_predictions_are_named_unless_the_same_is_right_for_both():
    anna, bo, near = (_predicted(name, truth, "8.203") for name, truth in (("anna", 7.8), ("bo", 9.2), ("near", 7.81)))
    di = _predicted("di", 9.2, "8.204")

    (found,) = classwide.findings(bo, [anna, bo, di])
    assert found.code is Code.EQUAL_LOGS
    assert found.says == 'found the predictions of "anna", each with the same digits; expected one\'s own'
    assert list(classwide.findings(anna, [anna, near])) == []
