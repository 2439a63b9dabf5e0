"""Formulas: what they can say, and that they can do nothing else. What is wrong between the files of an assignment is
said with line, key, what was found, what was expected and what to do; all of a file at once.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scpslab_course.course.assignment import load_assignment, load_marking
from scpslab_course.course.formulas import FormulaError, parse
from tests import golden
from tests.cases import document, each, refusal
from tests.unit.course.conftest import ASSIGNMENT, MARKING

ROWS = {
    "t": [
        {"stack": "reno", "delay": "25 ms", "ber": "1e-06", "goodput_bps": "10", "status": "completed", "note": "x"},
        {"stack": "reno", "delay": "250 ms", "ber": "0", "goodput_bps": "30", "status": "completed", "note": "x"},
        {"stack": "cubic", "delay": "25 ms", "ber": "0", "goodput_bps": "50", "status": "completed", "note": "x"},
        {"stack": "cubic", "delay": "250 ms", "ber": "0", "goodput_bps": "", "status": "incomplete", "note": ""},
    ]
}
DRAWN = {"rate": "2 Mbit/s", "delay": "250 ms", "who": "reno"}


def value(source):
    return parse(source, DRAWN).value(DRAWN, ROWS)


@each(
    "expected source",
    """
125000 | rate * 2 * delay / 8
1 | -(1 + 2) ** 2 % 5
2 | 7 % 4 - 1
window | "window" if rate > 1e6 and not delay > 1 else "rate"
4 | min(3, 1, 2) + max(1, 2) + abs(-1)
14.2 | round(2.6) + round(1.25, 1) + sqrt(16) + floor(1.9) + ceil(1.1) + log10(100) + log(exp(1))
30 | mean("t", "goodput_bps")
20 | mean("t", "goodput_bps", "stack=reno")
10 | mean("t", "goodput_bps", "ber=1e-6")
60 | lowest("t", "goodput_bps") + highest("t", "goodput_bps")
cubic | best("t", "goodput_bps", "stack")
250 ms | best("t", "goodput_bps", "delay", "stack=reno")
1 | completed("t", "stack=cubic")
""",
)
def test_a_formula_has_its_value(expected, source):
    found = value(source)
    assert (f"{found:g}" if isinstance(found, float) else found) == expected


@golden.each("formula")
def test_what_is_no_formula_is_refused_when_it_is_read(case):
    case.hold(refusal(parse, "" if case == '""' else case, DRAWN, error=FormulaError))


@golden.each("formula without a value")
def test_a_formula_without_a_value_says_why(case):
    case.hold(refusal(value, case, error=FormulaError))


@given(st.text(alphabet=st.sampled_from(list("rate dlywho0123456789.e+-*/%()<>=\"',_[]{}:ifns\\\n")), max_size=60))
def test_any_text_has_a_value_or_is_refused(source):
    try:
        found = value(source)
    except FormulaError:
        return
    assert isinstance(found, float | str)


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ('mean("up", "goodput_bps", "ber=1e-5", "stack=cubic")', ["cubic 0.00001"]),
        ('best("up", "goodput_bps", "stack", "ber=0")', ["cubic 0", "reno 0"]),
        ('completed("up", "status=completed", "ber=0") if rate > 1 else 0', ["cubic 0", "reno 0"]),
        ('mean("up", "goodput_bps", "stack=reno" if rate > 1 else "ber=0")', ["cubic 0", "cubic 0.00001", "reno 0"]),
        ('mean("down", "goodput_bps") + rate', []),
    ],
)
def test_a_formula_reads_the_cells_that_its_conditions_on_axes_let_in(source, read):
    cells = {"cubic 0": 0, "cubic 0.00001": "0.00001", "reno 0": "0"}
    formula = parse(source, ["rate"])
    assert [one for one, ber in cells.items() if formula.reads("up", {"stack": one.split()[0], "ber": ber})] == read


LINE = re.compile(r"[^ ]+\.yaml(:\d+)?: ([\w.\[\]-]+: )?found .+; expected .+[.?]")
TRIED = document("trials that students see")
HIDDEN = document("trials that students do not see")
SCENARIO = document("scenario of a trial")


def complaints(load, *arguments):
    lines = refusal(load, *arguments).splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    return [re.sub(r"^.*?([^/]+\.yaml:)", r"\1", line) for line in lines]


def spoil(folder, name, old, new):
    path = folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return 1 + path.read_text()[: text.index(old)].count("\n")


@pytest.fixture
def tried(folder):
    """The assignment with a trial that students see, and one that they do not."""
    (folder / "assignment.yaml").write_text(ASSIGNMENT + TRIED)
    (folder / "instructor" / "marking.yaml").write_text(MARKING + HIDDEN)
    (folder / "own.yaml").write_text(SCENARIO.replace("FILE", "policy.py"))
    (folder / "instructor" / "noisy.yaml").write_text(SCENARIO.replace("FILE", "policy.py"))
    load_marking(load_assignment(folder))
    return folder


@golden.each("files of an assignment", "case file old new")
def test_a_mistake_has_its_line(case, file, old, new, tried):
    number = spoil(tried, file if file == "assignment.yaml" else f"instructor/{file}", old, new)
    lines = case.hold("\n".join(complaints(lambda: load_marking(load_assignment(tried)))), tried).splitlines()
    places = [int(re.match(rf"{re.escape(file)}:(\d+): ", line)[1]) for line in lines if line.startswith(file)]
    assert places[0] >= 1
    if not lines[0].partition(": ")[2].startswith(("trials", "deliverables")):
        assert any(number <= place <= number + new.count("\n") + 1 for place in places)


def test_a_trial_whose_scenario_has_another_policy_is_refused(tried):
    (tried / "own.yaml").write_text(SCENARIO.replace("FILE", "other.py"))

    (found,) = complaints(load_assignment, tried)

    assert "trials.own.scenario: found the programs other.py in own.yaml; expected one with policy.py" in found


def test_all_mistakes_are_said_at_once(folder):
    spoil(folder, "assignment.yaml", "value: rate * 2", "value: rat * 2")
    spoil(folder, "assignment.yaml", "scenarios: [transfer]", "scenarios: [transfre]")

    assert len(complaints(load_assignment, folder)) >= 2
