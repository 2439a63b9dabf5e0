"""Grades submissions: reads each, binds it to the course, runs cells again, compares, marks (decision 0704 tells the order)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scpslab.course import answers as answer_files
from scpslab.course.answers import read_answers
from scpslab.course.expected import expected
from scpslab.course.folder import Course
from scpslab.course.secret import Secret
from scpslab.course.variant import Variant
from scpslab.errors import ScpslabError
from scpslab.grading import classwide, logs, marked, runs, submission, trials
from scpslab.grading.binding import Binding, Bound, twice
from scpslab.grading.grade import Code, Finding, Grade
from scpslab.grading.plans import plans
from scpslab.grading.rerun import Rerun, choose, rerun, rerun_alike
from scpslab.grading.submission import Submission
from scpslab.running.events import Listener
from scpslab.running.runner import RunOptions

BROKEN = "found an error of the grader's own"


@dataclass(frozen=True)
class Settings:
    """How a class is graded. `submitters` are the students by file, as the platform knows them; `cells`: instead of marking.yaml's `regrade`."""

    course: Course
    term: str
    secret: Secret | None
    options: RunOptions
    submitters: Mapping[Path, str] = field(default_factory=dict)
    cells: int | None = None


def grade(paths: Sequence[Path], settings: Settings, listeners: Sequence[Listener] = (), told: Callable[[Grade], None] = lambda _: None) -> list[Grade]:
    """The grades of a class, in the order of the files. `told` hears of each grade as soon as it is there.

    What is wrong with one submission is said in its grade; nothing of a submission ends the grading of the others.

    Raises:
        KeyboardInterrupt: finished cells stay in the result cache.
    """
    binding = Binding(settings.course, settings.term, settings.secret)
    found = []
    bound: dict[Path, Variant] = {}
    for path in paths:
        begun = time.monotonic()
        try:
            one, variant = _one(path, settings, binding, listeners)
            bound[path] = variant
        except ScpslabError as error:
            one = Grade(path, reason=str(error))
        except Exception as error:
            # Whatever breaks here is the fault of the grader, and must cost neither this student nor the others a grade.
            one = Grade(path, reason=f"{path}: {BROKEN} ({type(error).__name__}: {error}); expected it to go on. Mark it by hand, and report the error.")
        found.append(replace(one, seconds=time.monotonic() - begun))
        told(found[-1])
    return _compared(found, bound, settings.submitters)


def _one(path: Path, settings: Settings, binding: Binding, listeners: Sequence[Listener]) -> tuple[Grade, Variant]:
    handed_in = submission.read(path)
    bound = binding.bind(handed_in)
    variant, assignment, marking = bound.variant, bound.assignment, bound.marking
    mine = plans(assignment, variant)
    archived = handed_in.runs()
    submitted = runs.results_of(handed_in.archive, archived)
    given = read_answers(handed_in.answers, handed_in.path / answer_files.FILE).given
    findings = [*binding.findings(handed_in, variant, settings.submitters.get(path)), *runs.against_plans(archived, mine)]
    count = settings.cells if settings.cells is not None else marking.file.regrade
    chosen = choose(mine, marking, settings.secret, handed_in.sha256, count)
    reruns = rerun(assignment, variant, mine, chosen, settings.options, listeners)
    tried = trials.of_submission(bound, handed_in.files, settings.options, listeners)
    # A run of other plans has other bytes, which says nothing new.
    if not any(finding.code is Code.SWAPPED_PLAN for finding in findings):
        differing = list(runs.against_rerun(archived, submitted, reruns))
        if any(finding.code in runs.EDITED for finding in differing):
            rerun_alike(reruns, rerun(assignment, variant, mine, chosen, _once_more(settings.options), listeners))
        findings += differing
    graded = Grade(
        path,
        handed_in.sha256,
        assignment.name,
        variant.student,
        variant.members,
        cells=tuple(f"{name}/{cell}" for name, one in reruns.items() for cell in one.cells),
        write_up=handed_in.write_up,
    )
    return _marked(graded, handed_in, bound, given, _Ran(reruns, tried), findings), variant


def _once_more(options: RunOptions) -> RunOptions:
    return replace(options, use_cache=False, out=options.out / "once-more")


@dataclass(frozen=True)
class _Ran:
    """What the grader has run for a submission."""

    reruns: Mapping[str, Rerun]
    trials: trials.Tried


def _marked(graded: Grade, handed_in: Submission, bound: Bound, given: Mapping[str, Any], ran: _Ran, before: Sequence[Finding]) -> Grade:
    variant, assignment, marking, reruns = bound.variant, bound.assignment, bound.marking, ran.reruns
    right = expected(assignment, marking, variant.parameters, {name: one.for_formulas for name, one in reruns.items()})
    lines, findings = logs.read_log(handed_in.log, variant)
    is_chained = not findings
    # Runs that are not the variant's own cannot be those of its log.
    if is_chained and not any(finding.holds for finding in before):
        findings += logs.against_runs(lines, handed_in.runs(), reruns)
    is_trusted = not any(finding.holds for finding in findings)
    predictions, late = marked.predictions(assignment, marking, right, lines if is_trusted else None)
    parts = [
        *predictions,
        *marked.answers(assignment, marking, right, given),
        *trials.parts(ran.trials),
        *marked.others(assignment, marking, handed_in.write_up, handed_in.files),
    ]
    numbers = classwide.numbers(right, variant.parameters, reruns)
    return replace(graded, findings=(*before, *findings, *late), parts=tuple(parts), lines=tuple(lines), expected=right, numbers=numbers)


def _compared(grades: Sequence[Grade], bound: Mapping[Path, Variant], submitters: Mapping[Path, str]) -> list[Grade]:
    """The grades with what only a look at the whole class shows. Who handed a variant in twice is only a question where the platform has not said it."""
    same = twice([(str(path), variant) for path, variant in bound.items() if path not in submitters])
    found = []
    for one in grades:
        other = same.get(str(one.path))
        more = [Finding(Code.OTHER_VARIANT, f"found the same variant in {other}; expected one submission of it")] if other else []
        found.append(replace(one, findings=(*one.findings, *more, *classwide.findings(one, grades))))
    return found
