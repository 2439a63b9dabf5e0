"""Grades submissions: reads each, binds it to the course, runs cells again, compares, marks (decision 0704 tells the order)."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from scpslab.core.errors import ScpslabError
from scpslab.core.limited import LimitError, Limits, limited
from scpslab.running.events import Listener
from scpslab.running.runner import RunOptions
from scpslab.runs.archive import ArchivedRun
from scpslab_course.course import answers as answer_files
from scpslab_course.course import variant as variants
from scpslab_course.course.answers import read_answers
from scpslab_course.course.expected import expected
from scpslab_course.course.folder import Course
from scpslab_course.course.secret import Secret
from scpslab_course.course.variant import Variant
from scpslab_course.grading import classwide, logs, marked, runs, submission, trials
from scpslab_course.grading.binding import Binding, Bound, twice
from scpslab_course.grading.grade import Code, Finding, Grade
from scpslab_course.grading.plans import plans
from scpslab_course.grading.rerun import Rerun, choose, rerun, rerun_alike
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
class Settings:
    """How a class is graded. `submitters` are the students by file, as the platform knows them; `cells`: instead of marking.yaml's `regrade`."""

    course: Course
    term: str
    secret: Secret | None
    options: RunOptions
    submitters: Mapping[Path, str] = field(default_factory=dict)
    cells: int | None = None


def grade(paths: Sequence[Path], settings: Settings, listeners: Sequence[Listener] = (), told: Callable[[Grade], None] = lambda _: None) -> list[Grade]:
    """The grades of a class, in the order of the files. `told` hears of each grade as soon as it is there, before the class is compared.

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
            one = Grade(path, reason=f"{path}: {error} while it was read or marked; {LIMITED}. Mark it by hand, or ask for another one.")
        except Exception as error:
            # Whatever breaks here is the fault of the grader, and must cost neither this student nor the others a grade.
            one = Grade(path, reason=f"{path}: {BROKEN} ({error or type(error).__name__}); expected it to go on. Mark it by hand, and report the error.")
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

    @property
    def has_other_plans(self) -> bool:
        """Whether runs are of other plans than the variant's. They have other bytes, which says nothing new."""
        return any(finding.code is Code.SWAPPED_PLAN for finding in self.findings)


def _one(path: Path, settings: Settings, binding: Binding, listeners: Sequence[Listener]) -> tuple[Grade, Variant]:
    """Everything that reads a student's bytes does so in children with limits; cells run in this process, by the instructor's plans."""
    content = submission.packed_bytes(path)
    known = _in_child(lambda: _known(path, content, settings, binding))
    bound = binding.bind(path, known["variant"].encode())
    variant, assignment, marking = bound.variant, bound.assignment, bound.marking
    mine = plans(assignment, variant)
    count = settings.cells if settings.cells is not None else marking.file.regrade
    chosen = choose(mine, marking, settings.secret, hashlib.sha256(content).hexdigest(), count)
    reruns = rerun(assignment, variant, mine, chosen, settings.options, listeners)
    files = {name: base64.b64decode(text) for name, text in known["files"].items()}
    ran = _Ran(reruns, trials.of_submission(bound, files, settings.options, listeners))
    graded = AS_JSON.validate_python(_in_child(lambda: AS_JSON.dump_python(_graded(path, content, settings, binding, ran), mode="json")))
    if any(finding.code in runs.EDITED for finding in graded.findings):
        rerun_alike(reruns, rerun(assignment, variant, mine, chosen, _once_more(settings.options), listeners))
    return graded, variant


def _in_child(work: Callable[[], Any]) -> Any:
    """What `work` returns, from a child with limits. What breaks in it breaks here: only a limit is the submission's fault."""

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
    """What has to be known of a submission before cells are run for it: its verified variant, and the files that trials run. It is read to its end."""
    opened = _opened(path, content, settings, binding)
    wanted = {trial.file for trial in (*opened.bound.assignment.file.trials.values(), *opened.bound.marking.file.trials.values())}
    files = {name: base64.b64encode(file[:MOST_TRIED_BYTES]).decode() for name, file in opened.handed_in.files.items() if name in wanted}
    return {"variant": variants.write(opened.bound.variant).decode(), "files": files}


def _opened(path: Path, content: bytes, settings: Settings, binding: Binding) -> _Opened:
    handed_in = submission.read(path, content)
    bound = binding.bind(path, handed_in.variant)
    archived = handed_in.runs()
    submitted = runs.results_of(handed_in.archive, archived)
    given = read_answers(handed_in.answers, handed_in.path / answer_files.FILE).given
    findings = binding.findings(handed_in, bound.variant, settings.submitters.get(path))
    return _Opened(handed_in, bound, archived, submitted, given, [*findings, *runs.against_plans(archived, plans(bound.assignment, bound.variant))])


def _graded(path: Path, content: bytes, settings: Settings, binding: Binding, ran: _Ran) -> Grade:
    opened = _opened(path, content, settings, binding)
    handed_in, variant = opened.handed_in, opened.bound.variant
    differing = runs.against_rerun(opened.archived, opened.submitted, ran.reruns) if not opened.has_other_plans else ()
    graded = Grade(
        path,
        handed_in.sha256,
        opened.bound.assignment.name,
        variant.student,
        variant.members,
        cells=tuple(f"{name}/{cell}" for name, one in ran.reruns.items() for cell in one.cells),
    )
    return _marked(graded, opened, ran, [*opened.findings, *differing])


def _once_more(options: RunOptions) -> RunOptions:
    return replace(options, use_cache=False, out=options.out / "once-more")


@dataclass(frozen=True)
class _Ran:
    """What the grader has run for a submission."""

    reruns: Mapping[str, Rerun]
    trials: trials.Tried


def _marked(graded: Grade, opened: _Opened, ran: _Ran, before: Sequence[Finding]) -> Grade:
    handed_in, bound, reruns = opened.handed_in, opened.bound, ran.reruns
    variant, assignment, marking = bound.variant, bound.assignment, bound.marking
    right = expected(assignment, marking, variant.parameters, {name: one.for_formulas for name, one in reruns.items()})
    lines, findings = logs.read_log(handed_in.log, variant)
    is_chained = not findings
    # Runs that are not the variant's own cannot be those of its log.
    if is_chained and not any(finding.holds for finding in before):
        findings += logs.against_runs(lines, opened.archived, reruns)
    is_trusted = not any(finding.holds for finding in findings)
    predictions, late = marked.predictions(assignment, marking, right, lines if is_trusted else None)
    parts = [
        *predictions,
        *marked.answers(assignment, marking, right, opened.given),
        *trials.parts(ran.trials),
        *marked.others(assignment, marking, handed_in.write_up, handed_in.files),
    ]
    numbers = classwide.numbers(right, variant.parameters, reruns)
    found = replace(graded, findings=(*before, *findings, *late), parts=tuple(parts), lines=tuple(lines), expected=right, numbers=numbers)
    return classwide.wrote(found, handed_in.write_up)


def _compared(grades: Sequence[Grade], bound: Mapping[Path, Variant], submitters: Mapping[Path, str]) -> list[Grade]:
    """The grades with what only a look at the whole class shows. Who handed a variant in twice is only a question where the platform has not said it."""
    same = twice([(str(path), variant) for path, variant in bound.items() if path not in submitters])
    found = []
    for one in grades:
        other = same.get(str(one.path))
        more = [Finding(Code.OTHER_VARIANT, f"found the same variant in {other}; expected one submission of it")] if other else []
        found.append(replace(one, findings=(*one.findings, *more, *classwide.findings(one, grades))))
    return found
