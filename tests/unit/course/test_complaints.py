"""What is wrong between the files of an assignment is said with line, key, what was found, what was expected and what
to do; all of a file at once.
"""

import re

import pytest

from scpslab_course.course.assignment import load_assignment, load_marking
from tests.cases import refusal
from tests.unit.course.conftest import ASSIGNMENT, MARKING

LINE = re.compile(r"[^ ]+\.yaml(:\d+)?: ([\w.\[\]-]+: )?found .+; expected .+[.?]")
TRIED = """deliverables:
  - {file: policy.py, says: A policy., points: 3}
trials:
  own:
    scenario: own
    file: policy.py
    says: My own hop.
    share: mean("own", "utilization")
    points: 1
"""
HIDDEN = """deliverables:
  policy.py: [{says: It can be read., points: 1}]
trials:
  noisy:
    scenario: noisy
    file: policy.py
    says: A noisy hop.
    share: mean("noisy", "utilization")
    points: 1
"""
SCENARIO = """kind: scenario
version: 1
title: Own
topology: point_to_point
workloads:
  - {kind: policy, name: transfer, policy: FILE, from: h1, to: h2, size: 1 kB}
"""


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


# Each mistake: its file, what is written instead of what; then what is said, and how it ends.
MISTAKES = r"""
assignment.yaml: a scenario that is not there
  scenarios: [transfer] => scenarios: [transfre]
  scenarios[0]: found no file "transfre.yaml" beside it ... Did you mean transfer?
assignment.yaml: a formula with an unknown name
  value: rate * 2 => value: rat * 2
  variant.buffer: found the name "rat" ... Did you mean rate?
assignment.yaml: a range upside down
  from: 10 ms, to: 300 ms => from: 300 ms, to: 10 ms
  variant.delay: found from 300 ms to 10 ms ... Correct the parameter.
assignment.yaml: values of two types
  values: [1 Mbit/s, 2 => values: [1, 2
  variant.rate.values: found values of several types ... Write them alike.
assignment.yaml: a target in no scenario
  "transfer:parameters => "trans:parameters
  variant.buffer.set: found "trans:parameters.data_buffer" ... Did you mean transfer?
assignment.yaml: a prediction before no scenario
  unit: s} => unit: s, before: [other]}
  predictions.time.before: found "other" ... Choose one of these.
assignment.yaml: bounds upside down
  within: [0, 1000] => within: [5000, 1]
  answers.bdp.within: found 5000 above 1; expected ... Correct the value.
assignment.yaml: a prediction with an answer's name
    time: { =>   why: {
  predictions.why: found the name of an answer ... Rename the prediction.
marking.yaml: an answer that is not asked
    bdp: =>   bpd:
  answers.bpd: found "bpd", which assignment.yaml does not ask ... Did you mean bdp?
marking.yaml: another kind of answer
    why:\n    kind: text\n    rubric: [{says: Says why., points: 2}] =>   why: {kind: number, expected: 1 + 1}
  answers.why.kind: found "number" ... Correct the word.
marking.yaml: another sum of points
  points: 2}] => points: 3}]
  answers.why.rubric: found 3 points in the rubric; expected 2 ... Correct one of the two.
marking.yaml: points that nobody can show
  points: 2}] => points: 2.005}]
  answers.why.rubric[0].points: found 2.005; expected a multiple of 0.01
marking.yaml: a formula that is none
  expected: rate * 2 * delay / 8 / 1000 => expected: rate *
  answers.bdp.expected: found "rate *" ... Correct the formula.
marking.yaml: a formula that could do harm
  value: rate * delay / 8 / 1000, share => value: rate.real, share
  answers.bdp.wrong[0].value: found Attribute ... Correct the formula.
marking.yaml: results of no scenario
  mean("transfer", "transfer_s" => mean("transfre", "transfer_s"
  predictions.time.truth: found mean('transfre', …) ... Did you mean transfer?
marking.yaml: a scoring of another kind
  kind: choice, truth => kind: log-ratio, truth
  predictions.fastest.kind: found "log-ratio" for a prediction of kind choice ... Choose one of these.
marking.yaml: a scoring upside down
  zero: 3 => zero: 1.1
  predictions.time.zero: found 1.1, not above full (1.2) ... Correct the values.
marking.yaml: a band without a bound
  at_least: 20, at_most: 100,  =>
  difficulty.bands[0]: found no bound
assignment.yaml: a file that is no deliverable
      file: policy.py =>     file: polcy.py
  trials.own.file: found "polcy.py", which is no deliverable
assignment.yaml: a scenario that is not there of a trial
  scenario: own => scenario: onw
  trials.own.scenario: found no file "onw.yaml"
assignment.yaml: a scenario of the student's
  scenario: own => scenario: transfer
  trials.own.scenario: found "transfer", which students run themselves
assignment.yaml: a formula of another scenario
  mean("own" => mean("transfer"
  trials.own.share: found mean('transfer', …)
marking.yaml: a hidden scenario that is not there
  scenario: noisy => scenario: nosy
  trials.noisy.scenario: found no file "nosy.yaml" in instructor
marking.yaml: a hidden formula that is none
  share: mean("noisy" => share: median("noisy"
  trials.noisy.share: found the function "median"
marking.yaml: a name twice
    noisy:\n =>   own:\n
  trials.own: found the name of a trial of assignment.yaml
marking.yaml: another sum of points of a trial
  points: 1\n => points: 2\n
  deliverables.policy.py: found 4 points in the rubric, the trials and the lines; expected 3
"""


def mistakes():
    """The mistakes: name, file, text, what stands there instead, what is said of it, and how that ends."""
    rows = iter(MISTAKES.strip("\n").splitlines())
    for head, change, said in zip(rows, rows, rows, strict=True):
        file, _, name = head.partition(": ")
        old, _, new = change.removeprefix("  ").replace("\\n", "\n").partition(" =>")
        found, _, advice = said.strip().partition(" ... ")
        yield pytest.param(file, old, new.removeprefix(" "), found, advice, id=f"{file}: {name}")


@pytest.mark.parametrize(("file", "old", "new", "said", "advice"), [*mistakes()])
def test_a_mistake_has_its_line(tried, file, old, new, said, advice):
    number = spoil(tried, file if file == "assignment.yaml" else f"instructor/{file}", old, new)

    (found,) = [line for line in complaints(lambda: load_marking(load_assignment(tried))) if said in line]

    place = int(re.match(rf"{re.escape(file)}:(\d+): {re.escape(said)}", found)[1])
    assert number <= place <= number + new.count("\n") + 1 or said.startswith(("trials", "deliverables")), found
    assert found.endswith(advice), found


def test_a_trial_whose_scenario_has_another_policy_is_refused(tried):
    (tried / "own.yaml").write_text(SCENARIO.replace("FILE", "other.py"))

    (found,) = complaints(load_assignment, tried)

    assert "trials.own.scenario: found the programs other.py in own.yaml; expected one with policy.py" in found


def test_all_mistakes_are_said_at_once(folder):
    spoil(folder, "assignment.yaml", "value: rate * 2", "value: rat * 2")
    spoil(folder, "assignment.yaml", "scenarios: [transfer]", "scenarios: [transfre]")

    assert len(complaints(load_assignment, folder)) >= 2
