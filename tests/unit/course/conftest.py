"""A small assignment, in a folder of the test's own."""

import pytest

from scpslab_course.course import assignment as assignments
from scpslab_course.course import workspace
from scpslab_course.course.folder import practice_variant
from scpslab_course.course.variant import Secret

SCENARIO = """kind: scenario
version: 1
title: A transfer
topology: point_to_point
workloads:
  - {kind: bulk, name: transfer, from: h1, to: h2, size: 100 kB}
sweep:
  stack: {set: [hosts.h1.congestion_control], values: [reno, cubic]}
"""
ASSIGNMENT = """kind: assignment
version: 1
title: A small one
goals: [To be small]
minutes: 5
scenarios: [transfer]
variant:
  rate: {kind: choice, values: [1 Mbit/s, 2 Mbit/s, 4 Mbit/s], set: [links.hop.forward.rate]}
  delay: {kind: range, from: 10 ms, to: 300 ms, step: 5 ms, set: [links.hop.*.delay]}
  seed: {kind: seed}
  buffer: {kind: formula, value: rate * 2 * delay / 8, unit: B, step: 500, set: ["transfer:links.hop.forward.queue.limit"]}
predictions:
  time: {kind: number, question: "How long?", unit: s}
  fastest: {kind: choice, question: "Which one is faster?", choices: {reno: Reno, cubic: CUBIC}}
answers:
  bdp: {kind: number, question: "What is the product?", unit: kB, points: 2, within: [0, 1000]}
  why: {kind: text, question: "Why?", words: 10, points: 2}
"""
MARKING = """kind: marking
version: 1
difficulty:
  bands:
    - {name: product, value: rate * delay / 8 / 1000, at_least: 20, at_most: 100, because: Others are dull.}
predictions:
  time: {kind: log-ratio, truth: 'mean("transfer", "transfer_s", "stack=reno")', full: 1.2, zero: 3}
  fastest: {kind: choice, truth: 'best("transfer", "goodput_bps", "stack")'}
answers:
  bdp:
    kind: number
    expected: rate * 2 * delay / 8 / 1000
    relative: 0.02
    partial: [{relative: 0.1, share: 0.5, comment: Nearly.}]
    wrong: [{value: rate * delay / 8 / 1000, share: 0.25, comment: One way only.}]
  why:
    kind: text
    rubric: [{says: Says why., points: 2}]
"""


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
