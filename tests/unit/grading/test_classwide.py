"""Numbers that are right for another student's variant are found in any text."""

import dataclasses
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scpslab_course.course.answers import Expected, read_answers
from scpslab_course.course.assignment import SOLUTION, STARTER, find, load_assignment, load_marking
from scpslab_course.course.model import Item
from scpslab_course.course.workspace import BLANK_WRITE_UP
from scpslab_course.grading import classwide
from scpslab_course.grading.classwide import _Index, _is_rounded
from scpslab_course.grading.grade import Code, Grade, Graded

EXPECTED = Expected(predictions={}, answers={})
SMALL = Path(__file__).parents[2] / "data" / "small_assignment"


def made(student: str, numbers: dict[str, float], write_up: str = "") -> Grade:
    whose = {"assignment": "small", "student": student, "members": (student,)}
    grade = Grade(Path(student), **whose, expected=EXPECTED, numbers=numbers)
    return classwide.wrote(grade, write_up, known(SMALL))


@cache
def known(folder: Path) -> classwide.Known:
    assignment = load_assignment(folder)
    return classwide.Known.of(assignment, load_marking(assignment))


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

    assert {owner for _, owner in found} == {
        str(number) for number, value in enumerate(numbers) if _is_rounded(text, value)
    }


def test_copied_numbers_are_named_and_ones_own_are_not():
    anna = made("anna", {"answer bdp": 62.504, "prediction time": 7.8125, "round-trip cell rtt": 501.73})
    bo = made("bo", {"answer bdp": 81.37, "prediction time": 9.1944}, "It was 62.50 kB and 7.8125 s; mine is 81.37.")
    di = made("di", {"answer bdp": 62.504}, "It was 62.50 kB and 7.8125 s.")

    (found,) = classwide.findings(bo, [anna, bo])
    assert found.code is Code.COPIED_NUMBERS
    assert '62.50, 7.8125, which are right for the variant of "anna"' in found.says
    assert list(classwide.findings(di, [anna, di])) == []


def test_one_number_in_two_roundings_is_one_and_two_are_two_however_they_are_written():
    """Somebody's wrong answer may be another's right one, and stand in the write-up once more."""
    anna = made("anna", {"answer bdp": 170.88168, "cell r1 x": 170.8817, "cell r2 x": 170.8799, "answer rtt": 501.731})
    bo = made("bo", {}, "It was 170.88, so to say 170.8817, or 0.17088 of 1000, or 170.8800.")
    di = made("di", {}, "It was 170.88 (with noise 170.8811), and 501.73.")

    assert list(classwide.findings(bo, [anna, bo])) == []
    (found,) = classwide.findings(di, [anna, di])
    assert "found 170.88, 501.73, which" in found.says


def test_a_number_of_two_digits_may_be_another_one_rounded():
    assert list(classwide._apart(["17", "17.36", "25"])) == ["17.36", "25"]
    assert list(classwide._apart(["18", "17.36"])) == ["18", "17.36"]


@pytest.mark.parametrize("text", ["It was 135,601 bit/s, and 8,910 ms.", "It was 135601bit/s, and 8910ms."])
def test_numbers_are_found_as_tables_and_hasty_people_write_them(text):
    anna = made("anna", {"answer goodput": 135601.0, "answer rtt": 8910.0})
    bo = made("bo", {"answer goodput": 99.0}, text)

    (found,) = classwide.findings(bo, [anna, bo])
    assert "found 135601, 8910, which" in found.says


def test_names_that_begin_with_digits_are_no_numbers():
    assert classwide._numbers("3rd, 4MBx, 10.0.0.1, 2026-11-22, v1.25, 7.5kB and 12 s") == ["7.5", "12"]


def test_counts_say_something_where_the_same_was_asked():
    """Of a copied exercise with traces, one number alone may have three digits."""
    right = {"answer repair": 416.11187, "answer resends": 31.0, "answer outage": 5.0}
    anna, di = made("anna", right), made("di", right | {"answer resends": 32.0})

    def copied(**given: str) -> list[str]:
        parts = tuple(Graded("answer", name, "?", 2, 1, "", text) for name, text in given.items())
        own = {"answer repair": 505.97837, "answer resends": 36.0, "answer outage": 7.0}
        grade = Grade(Path("bo"), assignment="small", student="bo", members=("bo",), expected=EXPECTED, numbers=own)
        bo = classwide.wrote(dataclasses.replace(grade, parts=parts), "", known(SMALL))
        return [found.says for found in classwide.findings(bo, [anna, bo, di])]

    (said,) = copied(repair="416.11187 ms", resends="31", outage="5")
    assert said == 'found 416.11187, 31, which are right for the variant of "anna"; expected one\'s own'
    # One digit says nothing, nor does a count that was asked for elsewhere.
    assert copied(repair="416.11187 ms", resends="5", outage="5") == []
    assert copied(repair="0.0", resends="00", outage="31") == []
    assert copied(repair="416.11187 ms", outage="0.005") == []


@pytest.mark.parametrize(("own", "names"), [((7.003556, 5.97981, 87.0), 0), ((9.1, 4.2, 51.0), 1)])
def test_ones_own_numbers_in_another_unit_are_no_copies(own, names):
    """Where variants have nearly the same right numbers, one's own are right for others, too."""
    asked = ("rounds", "ratio", "resent")
    anna = made("anna", {f"answer {name}": value for name, value in zip(asked, (7.00355, 5.97976, 87.0), strict=True)})
    parts = [
        Graded("answer", name, "?", 2, 0.0, "", text)
        for name, text in zip(asked, ("7003.6", "5979.8", "87000"), strict=True)
    ]
    bo = made("bo", {f"answer {name}": value for name, value in zip(asked, own, strict=True)})
    bo = classwide.wrote(dataclasses.replace(bo, parts=tuple(parts)), "", known(SMALL))

    assert len(list(classwide.findings(bo, [anna, bo]))) == names


def test_of_ratios_near_1_the_digits_count_that_tell_them_from_1():
    anna = made("anna", {"answer share": 1.02041, "answer gain": 0.998123, "answer index": 0.971342})
    bo = made("bo", {}, "It gained 1.02, with shares of 0.998 and 0.971.")
    di = made("di", {}, "It gained 1.0204, with shares of 0.99812 and 0.97134.")

    assert list(classwide.findings(bo, [anna, bo])) == []
    assert [found.code for found in classwide.findings(di, [anna, di])] == [Code.COPIED_NUMBERS]


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


def test_a_number_in_thousands_of_spellings_is_one_and_is_compared_as_often(monkeypatch):
    """A write-up has room for them, and a grader's time is everybody's."""
    calls = []
    monkeypatch.setattr(classwide, "_is_rounded", lambda *words: calls.append(words) or _is_rounded(*words))
    spelled = [f"{'0' * zeros}138.28{'0' * more}" for zeros in range(9) for more in range(9)]
    class_ = [made(f"s{number}", {"answer ends": 138.28}) for number in range(9)]
    bo = made("bo", {"answer ends": 99.5}, " ".join(spelled))

    assert list(classwide.findings(bo, [*class_, bo])) == []
    assert len(calls) < 3 * len(spelled) * len(class_)


def test_round_predictions_are_alike_by_chance():
    """Those of the students' page: 10..25 s is three digits, not four with a point between them."""
    right = [Expected(predictions={"time": truth, "gain": truth / 4}, answers={}) for truth in (11.0, 19.0)]
    anna, bo = (
        Grade(Path(name), assignment="small", student=name, members=(name,), expected=one, parts=parts)
        for name, one, parts in zip(
            ("anna", "bo"), right, [tuple(Graded("prediction", *of) for of in ROUND)] * 2, strict=True
        )
    )
    assert list(classwide.findings(bo, [anna, bo])) == []


ROUND = [
    ("small_s", "?", 1, 0.9, "", "10..25 s"),
    ("speedup", "?", 1, 0.9, "", "2..5"),
    ("rate", "?", 1, 0.9, "", "1..2 Mbit/s"),
]


def test_equal_predictions_are_named_unless_the_same_is_right_for_both():
    anna, bo, near = (_predicted(name, truth, "8.203") for name, truth in (("anna", 7.8), ("bo", 9.2), ("near", 7.81)))
    di = _predicted("di", 9.2, "8.204")

    (found,) = classwide.findings(bo, [anna, bo, di])
    assert found.code is Code.EQUAL_LOGS
    assert found.says == 'found the predictions of "anna", each with the same digits; expected one\'s own'
    assert list(classwide.findings(anna, [anna, near])) == []


def wrote(student: str, **given: str) -> Grade:
    """A student's texts, by question, and programs, by file."""
    rubric = (Item(says="Says why.", points=1),)
    parts = tuple(
        Graded("deliverable" if "." in name else "answer", name, "", 1, None, "", text, rubric)
        for name, text in given.items()
    )
    whose = {"assignment": "small", "student": student, "members": (student,)}
    grade = Grade(Path(student), **whose, expected=EXPECTED, parts=parts)
    return classwide.wrote(grade, "", known(find("write-your-own")))


def from_solution(**given: str) -> list[str]:
    """The parts of write-your-own that are found to be the published solution's."""
    found = list(classwide.from_solution(wrote("anna", **given), known(find("write-your-own"))))
    assert {one.code for one in found} <= {Code.PUBLISHED_SOLUTION}
    assert all(one.holds for one in found)
    return [one.says.split(":")[0] for one in found]


def test_the_published_solution_is_named_to_the_letter():
    solution = load_marking(load_assignment(find("write-your-own"))).folder / SOLUTION
    policy, write_up = ((solution / name).read_text() for name in ("policy.py", "write-up.md"))
    path = solution / "answers.yaml"
    finding = str(read_answers(path.read_bytes(), path).given["finding"])
    texts = {"policy.py": policy, "write-up.md": write_up, "finding": finding}
    assert from_solution(**texts) == list(texts)
    # Editors end lines in their own ways, and YAML folds them.
    assert from_solution(finding=f"  {' '.join(finding.split())}\r\n") == ["finding"]
    assert from_solution(**{name: f"{text} Mine." for name, text in texts.items()}) == []


def test_a_text_of_ones_own_and_what_was_handed_out_are_not_the_published_solution():
    starter = (load_assignment(find("write-your-own")).folder / STARTER / "policy.py").read_text()
    given = {"policy.py": starter, "write-up.md": BLANK_WRITE_UP, "losing": "No."}
    assert from_solution(**given) == []
    anna, bo = wrote("anna", **given), wrote("bo", **given)
    assert list(classwide.findings(bo, [anna, bo])) == []


TEXT = "Slow start doubles the window in each round trip; the queue fills within 2.4 s, and drops a burst of packets."


def test_an_equal_text_or_program_is_a_remark():
    anna = wrote("anna", **{"finding": TEXT, "policy.py": f'"""{TEXT}"""\n'})
    bo = wrote("bo", **{"losing": f"{TEXT}\n", "policy.py": f'"""{TEXT}"""\n'})
    di = wrote("di", finding=TEXT.replace("2.4", "2.5"))

    found = list(classwide.findings(bo, [anna, bo, di]))
    says = 'found the text of "anna"; expected one\'s own'
    assert [(one.code, one.says, one.holds) for one in found] == [
        (Code.EQUAL_TEXTS, f"{name}: {says}", False) for name in ("losing", "policy.py")
    ]
    assert list(classwide.findings(di, [anna, bo, di])) == []


def test_right_tables_are_no_texts():
    table = Graded("lines", "causes.csv", "", 1, 1.0, "", "frame,cause\n" * 99)
    grade = Grade(Path("x"), parts=(table, dataclasses.replace(table, kind="deliverable")))
    assert grade.texts == {}
