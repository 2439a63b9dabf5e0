"""Grades submissions: reads each, binds it to the course, runs cells again, compares, marks (decision 0704 tells the
order).
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from scpslab.core.choices import one_of
from scpslab.core.errors import LimitError, ScpslabError, UsageError
from scpslab.core.limited import Limits, limited
from scpslab.core.names import shown
from scpslab.running import RunOptions
from scpslab.running.events import Listener
from scpslab.runs.archive import ArchivedRun
from scpslab_course.course import answers as answer_files
from scpslab_course.course import variant as variants
from scpslab_course.course.answers import read_answers
from scpslab_course.course.assignment import Assignment, Marking, load_marking
from scpslab_course.course.draw import Whose
from scpslab_course.course.folder import Course
from scpslab_course.course.runs import carry_out, planned
from scpslab_course.course.scoring import expected
from scpslab_course.course.secret import Secret
from scpslab_course.course.variant import Variant, VariantError
from scpslab_course.grading import classwide, compare, marked, submission
from scpslab_course.grading.compare import Rerun, choose, plans, rerun, rerun_alike
from scpslab_course.grading.grade import Code, Finding, Grade, Part
from scpslab_course.grading.submission import Submission

BROKEN = "found an error of the grader's own"
# Of what a submission may take to be read, and to be marked. Those of the project's assignments take a few seconds.
LIMITS = Limits(memory_bytes=512 << 20, cpu_s=60, wall_s=300)
LIMITED = "expected a submission that is read and marked within these limits"
# A trial's file that is longer is refused by its length.
MOST_TRIED_BYTES = 1 << 20
# Grades come from children as JSON.
AS_JSON = TypeAdapter(Grade)


@dataclass(frozen=True)
class Bound:
    """A verified variant, and the instructor's files that it belongs to."""

    variant: Variant
    assignment: Assignment
    marking: Marking


class Binding:
    """The course's side.

    The secret is optional: a grading host in strangers' hands has none, and the signature is enough for it.
    """

    def __init__(self, course: Course, term: str, secret: Secret | None) -> None:
        self._course, self._term, self._secret = course, term, secret
        self._loaded: dict[str, tuple[Assignment, Marking]] = {}

    def bind(self, path: Path, content: bytes) -> Bound:
        """The variant of the submission at `path`, of which `content` is the file, with its assignment.

        Raises:
            UsageError: the submission cannot be graded with this course; the message says why.
            ScenarioError: the assignment's files are not valid.
        """
        try:
            variant = variants.verify(content, self._course.file.public_key)
        except VariantError as error:
            raise UsageError(f"{path}: {error}.") from error
        assignment, marking = self._files(path, variant)
        if said := variants.unfit(variant, assignment):
            raise UsageError(f"{path}: {said}. Grade with the files that were issued.")
        if variant.term == self._term and self._is_drawn_otherwise(variant, assignment):
            raise UsageError(
                f"{path}: found a signed variant that the secret does not give; expected the drawn one. "
                "Look for a copy of the secret."
            )
        return Bound(variant, assignment, marking)

    def findings(self, submission: Submission, variant: Variant, submitter: str | None) -> Iterator[Finding]:
        """Signs that a variant is not that of who handed it in.

        `submitter`: the student as the platform knows them; None if nobody said.
        """
        if variant.term != self._term:
            yield Finding(
                Code.OTHER_VARIANT, f"found a variant of the term {shown(variant.term)}; expected {shown(self._term)}"
            )
        if submission.contents.student != variant.student:
            yield Finding(
                Code.OTHER_VARIANT,
                (
                    f"the submission says {shown(submission.contents.student)}; its variant was drawn for "
                    f"{shown(variant.student)}"
                ),
            )
        if submitter is not None and submitter not in variant.members:
            yield Finding(
                Code.OTHER_VARIANT,
                f"handed in by {shown(submitter)}; the variant was issued to {', '.join(variant.members)}",
            )

    def _files(self, path: Path, variant: Variant) -> tuple[Assignment, Marking]:
        name = variant.assignment
        known = self._course.file.assignments
        if name not in known:
            raise UsageError(f'{path}: found a variant of "{name}"; {one_of(name, known)} (course.yaml, assignments)')
        if name not in self._loaded:
            assignment = self._course.assignment(name)
            self._loaded[name] = assignment, load_marking(assignment)
        return self._loaded[name]

    def _is_drawn_otherwise(self, variant: Variant, assignment: Assignment) -> bool:
        if self._secret is None:
            return False
        whose = Whose(variant.term, variant.assignment, variant.student)
        try:
            return assignment.drawn(self._secret.draw_key, whose, variant.attempt) != dict(variant.parameters)
        except ScpslabError:
            return True


@dataclass(frozen=True)
class Settings:
    """How a class is graded.

    `submitters` are the students by file, as the platform knows them; `cells`: instead of marking.yaml's `regrade`.
    """

    course: Course
    term: str
    secret: Secret | None
    options: RunOptions
    submitters: Mapping[Path, str] = field(default_factory=dict)
    cells: int | None = None


def grade(
    paths: Sequence[Path],
    settings: Settings,
    listeners: Sequence[Listener] = (),
    told: Callable[[Grade], None] = lambda _: None,
) -> list[Grade]:
    """The grades of a class, in the order of the files.

    `told` hears of each grade as soon as it is there, before the class is compared.

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
        except LimitError as error:
            one = Grade(
                path,
                reason=f"{path}: {error} while it was read or marked; {LIMITED}. Mark it by hand, or ask for "
                "another one.",
            )
        except Exception as error:
            # Whatever breaks here is the fault of the grader, and must cost neither this student nor the others a
            # grade.
            one = Grade(
                path,
                reason=f"{path}: {BROKEN} ({error or type(error).__name__}); expected it to go on. "
                "Mark it by hand, and report the error.",
            )
        found.append(replace(one, submitter=settings.submitters.get(path, ""), seconds=time.monotonic() - begun))
        told(found[-1])
    return _compared(found, bound, settings.submitters)


@dataclass(frozen=True)
class _Opened:
    """A submission that was read in this process: bound, and compared with the variant's plans."""

    handed_in: Submission
    bound: Bound
    archived: dict[str, ArchivedRun]
    submitted: dict[str, list[dict[str, str]]]
    given: Mapping[str, Any]
    findings: Sequence[Finding]


def _one(path: Path, settings: Settings, binding: Binding, listeners: Sequence[Listener]) -> tuple[Grade, Variant]:
    """Everything that reads a student's bytes does so in children with limits; cells run in this process, by the
    instructor's plans.
    """
    content = submission.packed_bytes(path)
    known = _in_child(lambda: _known(path, content, settings, binding))
    bound = binding.bind(path, known["variant"].encode())
    variant, assignment, marking = bound.variant, bound.assignment, bound.marking
    mine = plans(assignment, variant)
    count = settings.cells if settings.cells is not None else marking.file.regrade
    chosen = choose(mine, marking, settings.secret, hashlib.sha256(content).hexdigest(), count)
    reruns = rerun(assignment, variant, mine, chosen, settings.options, listeners)
    files = {name: base64.b64decode(text) for name, text in known["files"].items()}
    tried = list(_trials(bound, files, settings.options, listeners))

    def graded() -> Any:
        return AS_JSON.dump_python(_graded(_opened(path, content, settings, binding), reruns, tried), mode="json")

    found = AS_JSON.validate_python(_in_child(graded))
    if any(finding.code in compare.EDITED for finding in found.findings):
        again = replace(settings.options, use_cache=False, out=settings.options.out / "once-more")
        rerun_alike(reruns, rerun(assignment, variant, mine, chosen, again, listeners))
    return found, variant


def _in_child(work: Callable[[], Any]) -> Any:
    """What `work` returns, from a child with limits.

    What breaks in it breaks here: only a limit is the submission's fault.
    """

    def whole() -> tuple[Any, str]:
        try:
            return work(), ""
        except (ScpslabError, MemoryError):
            raise
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"

    answer, broken = limited(whole, LIMITS)
    if broken:
        raise RuntimeError(broken)
    return answer


def _known(path: Path, content: bytes, settings: Settings, binding: Binding) -> dict[str, Any]:
    """What has to be known of a submission before cells are run for it: its verified variant, and the files that trials
    run. It is read to its end.
    """
    opened = _opened(path, content, settings, binding)
    wanted = {
        trial.file
        for trial in (*opened.bound.assignment.file.trials.values(), *opened.bound.marking.file.trials.values())
    }
    files = {
        name: base64.b64encode(file[:MOST_TRIED_BYTES]).decode()
        for name, file in opened.handed_in.files.items()
        if name in wanted
    }
    return {"variant": variants.write(opened.bound.variant).decode(), "files": files}


def _opened(path: Path, content: bytes, settings: Settings, binding: Binding) -> _Opened:
    handed_in = submission.read(path, content)
    bound = binding.bind(path, handed_in.variant)
    archived = handed_in.runs()
    submitted = compare.results_of(handed_in.archive, archived)
    given = read_answers(handed_in.answers, handed_in.path / answer_files.FILE).given
    findings = binding.findings(handed_in, bound.variant, settings.submitters.get(path))
    others = compare.against_plans(archived, plans(bound.assignment, bound.variant))
    return _Opened(handed_in, bound, archived, submitted, given, [*findings, *others])


def _trials(bound: Bound, files: Mapping[str, bytes], options: RunOptions, told: Sequence[Listener]) -> Iterator[Part]:
    """The points of all trials, carried out with the files of a submission.

    Raises:
        ScenarioError: the instructor's files are not valid.
        CapabilityError: this machine cannot run labs.
    """
    parameters = bound.variant.parameters
    for one in planned(bound.assignment, parameters, bound.marking):
        mine = replace(options, out=options.out / bound.variant.digest[:16] / "trials" / one.name, overrides=[])
        trial, outcome = one.trial, carry_out(one, files.get(one.trial.file), parameters, mine, told)
        earned = None if outcome.share is None else trial.points * outcome.share
        yield Part("trial", one.name, trial.says, trial.points, earned, outcome.says, trial.file)


def _graded(opened: _Opened, reruns: Mapping[str, Rerun], tried: Sequence[Part]) -> Grade:
    handed_in, bound, before = opened.handed_in, opened.bound, list(opened.findings)
    variant, assignment, marking = bound.variant, bound.assignment, bound.marking
    # Runs of other plans have other bytes, which says nothing new.
    if all(finding.code is not Code.SWAPPED_PLAN for finding in before):
        before += compare.against_rerun(opened.archived, opened.submitted, reruns)
    for_formulas = {name: one.for_formulas for name, one in reruns.items()}
    right = expected(assignment, marking, variant.parameters, for_formulas)
    lines, findings = compare.read_log(handed_in.log, variant)
    # Runs that are not the variant's own cannot be those of its log.
    if not findings and not any(finding.holds for finding in before):
        findings += compare.against_runs(lines, opened.archived, reruns)
    is_trusted = not any(finding.holds for finding in findings)
    predictions, late = marked.predictions(assignment, marking, right, lines if is_trusted else None)
    answers = marked.answers(assignment, marking, right, opened.given)
    others = marked.others(assignment, marking, handed_in.write_up, handed_in.files)
    found = Grade(
        path=handed_in.path,
        sha256=handed_in.sha256,
        assignment=assignment.name,
        student=variant.student,
        members=variant.members,
        findings=(*before, *findings, *late),
        parts=(*predictions, *answers, *tried, *others),
        cells=tuple(f"{name}/{cell}" for name, one in reruns.items() for cell in one.cells),
        lines=tuple(lines),
        expected=right,
        numbers=classwide.numbers(right, variant.parameters, reruns),
    )
    return classwide.wrote(found, handed_in.write_up)


def _compared(grades: Sequence[Grade], bound: Mapping[Path, Variant], submitters: Mapping[Path, str]) -> list[Grade]:
    """The grades with what only a look at the whole class shows.

    Who handed a variant in twice is only a question where the platform has not said it.
    """
    same: dict[str, list[Path]] = {}
    for path, variant in bound.items():
        if path not in submitters:
            same.setdefault(variant.digest, []).append(path)
    twice = {path: other for paths in same.values() for path in paths for other in reversed(paths) if other != path}
    found = []
    for one in grades:
        said = f"found the same variant in {twice.get(one.path)}; expected one submission of it"
        more = [Finding(Code.OTHER_VARIANT, said)] if one.path in twice else []
        found.append(replace(one, findings=(*one.findings, *more, *classwide.findings(one, grades))))
    return found
