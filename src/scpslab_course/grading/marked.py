"""Points for the parts of a submission: what can be marked without a person is marked, everything else waits with its
rubric beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from scpslab.core.names import shown
from scpslab_course.course.answers import GivenError, read_given
from scpslab_course.course.assignment import STARTER, Assignment, Marking
from scpslab_course.course.check import given_predictions
from scpslab_course.course.log import Line
from scpslab_course.course.model import Answer, MarkedText, Prediction
from scpslab_course.course.scoring import Expected, RightNumber, RightWord, score_answer, score_prediction
from scpslab_course.course.workspace import WRITE_UP, late
from scpslab_course.grading.grade import Code, Finding, Part

NO_PREDICTION, NO_ANSWER, BY_A_PERSON = "no prediction", "no answer", "a person marks it"
UNCHANGED = "as it was handed out"
LATE = "made after the run: no points"
MOST_SHOWN_BYTES = 64 << 10


def predictions(
    assignment: Assignment, marking: Marking, right: Expected, lines: Sequence[Line] | None
) -> tuple[list[Part], list[Finding]]:
    """The parts of the predictions, and the late ones.

    `lines`: None if the log cannot be trusted; then a person decides.
    """
    made, parts, findings = given_predictions(lines or ()), [], []
    for name, asked in assignment.file.predictions.items():
        line, truth = made.get(name), right.predictions[name]
        shown_right = right_value(truth, asked)
        part = Part("prediction", name, asked.question, asked.points, 0.0, NO_PREDICTION, right=shown_right)
        if lines is None:
            part = replace(part, earned=None, comment="the log cannot be trusted")
        elif line is not None and late(lines, line.number, asked.before or assignment.scenario_names):
            said = f"{name}: found {shown(line.value)} after the run; expected a prediction before it"
            findings.append(Finding(Code.LATE_PREDICTION, said))
            part = replace(part, comment=LATE, given=line.value)
        elif line is not None:
            score = score_prediction(asked, marking.file.predictions[name], truth, line.value)
            part = replace(part, earned=asked.points * score.share, comment=score.comment, given=line.value)
            part = replace(part, is_inside=_is_inside(asked, line.value, truth))
        parts.append(part)
    return parts, findings


def answers(assignment: Assignment, marking: Marking, right: Expected, given: Mapping[str, Any]) -> Iterator[Part]:
    """The parts of the answers."""
    for name, asked in assignment.file.answers.items():
        text, marked, expected = _text(given.get(name)), marking.file.answers[name], right.answers.get(name)
        shown_right = right_value(expected.value, asked, expected) if expected is not None else ""
        part = Part("answer", name, asked.question, asked.points, None, BY_A_PERSON, text, right=shown_right)
        if not text.strip():
            part = replace(part, earned=0.0, comment=NO_ANSWER, given="")
        elif isinstance(marked, MarkedText):
            part = replace(part, rubric=marked.rubric, hints=marked.wrong)
        elif expected is not None:
            score = score_answer(asked, expected, given.get(name))
            part = replace(part, earned=asked.points * score.share, comment=score.comment)
            if not score.is_readable:
                # A person can read what a program cannot: "2,5 s" is no reason to lose points unseen.
                part = replace(part, earned=None, comment=f"{score.comment} A person marks it.")
        yield part


def others(assignment: Assignment, marking: Marking, write_up: str, files: Mapping[str, bytes]) -> Iterator[Part]:
    """Write-up and deliverables: a person marks them."""
    file = assignment.file
    for deliverable in file.deliverables:
        content = files.get(deliverable.file)
        said = f"{len(content)} bytes" if content is not None else "not handed in"
        text = content[:MOST_SHOWN_BYTES].decode("utf-8", "replace") if content is not None else ""
        rubric = marking.file.deliverables.get(deliverable.file, ())
        # The rest of its points is for trials.
        points = sum(item.points for item in rubric)
        starter = assignment.folder / STARTER / deliverable.file
        if starter.is_file() and content == starter.read_bytes():
            said, text = UNCHANGED, ""
        yield Part(
            "deliverable", deliverable.file, deliverable.says, points, None if points else 0.0, said, text, rubric
        )
    if file.write_up:
        earned = None if file.write_up_points else 0.0
        yield Part(
            "write-up",
            WRITE_UP,
            "The write-up.",
            file.write_up_points,
            earned,
            BY_A_PERSON,
            write_up,
            marking.file.write_up,
        )


def right_value(value: float | str, asked: Answer | Prediction, right: RightNumber | RightWord | None = None) -> str:
    """A right number with its unit and how near is near enough, or a right word, for a person who marks."""
    if isinstance(value, str):
        return value
    near = f" ± {right.distance:.3g}" if isinstance(right, RightNumber) and right.distance else ""
    return f"{value:.6g}{near} {getattr(asked, 'unit', '')}".rstrip()


def _is_inside(asked: Prediction, given: str, truth: float | str) -> bool | None:
    if asked.kind != "interval" or isinstance(truth, str):
        return None
    try:
        found = read_given(asked, given)
    except GivenError:
        return None
    return found[0] <= truth <= found[1] if isinstance(found, tuple) else None


def _text(given: object) -> str:
    """What stands in answers.yaml, as text."""
    if given is None:
        return ""
    try:
        return f"{given}"
    except ValueError:
        # Python writes no number of thousands of digits.
        return "a number of thousands of digits"
