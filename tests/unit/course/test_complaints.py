"""What is wrong between the files of an assignment is said with line, key, what was found, what was expected and what
to do; all of a file at once.
"""

import re

import pytest

from scpslab_course.course.assignment import load_assignment, load_marking
from tests import golden
from tests.cases import document, refusal
from tests.unit.course.conftest import ASSIGNMENT, MARKING

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
