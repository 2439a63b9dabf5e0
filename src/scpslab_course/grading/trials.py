"""The trials of a submission: the student's policies run by the grader, in scenarios that students see and in others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from scpslab.running.events import Listener
from scpslab.running.runner import RunOptions
from scpslab_course.course.trials import Outcome, Planned, carry_out, planned
from scpslab_course.grading.binding import Bound
from scpslab_course.grading.grade import Part

FOLDER = "trials"
Tried = Sequence[tuple[Planned, Outcome]]


def of_submission(bound: Bound, files: Mapping[str, bytes], options: RunOptions, listeners: Sequence[Listener] = ()) -> Tried:
    """Carries out all trials with the files of a submission.

    Raises:
        ScenarioError: the instructor's files are not valid.
        CapabilityError: this machine cannot run labs.
    """
    parameters = bound.variant.parameters
    found = []
    for one in planned(bound.assignment, parameters, bound.marking):
        mine = replace(options, out=options.out / bound.variant.digest[:16] / FOLDER / one.name, overrides=[])
        found.append((one, carry_out(one, files.get(one.trial.file), parameters, mine, listeners)))
    return found


def parts(tried: Tried) -> Iterator[Part]:
    """Their points."""
    for one, outcome in tried:
        points, share = one.trial.points, outcome.share
        yield Part("trial", one.name, one.trial.says, points, None if share is None else points * share, outcome.says, one.trial.file)
