"""Grades submissions: reads each, binds it to the course, runs cells again, compares, marks (decision 0704 tells the
order).

What can be marked without a person is marked, everything else waits with its rubric beside it.
"""

import base64
import datetime as dt
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from scpslab.analysis.run import open_run
from scpslab.core.choices import one_of
from scpslab.core.errors import LimitError, ScpslabError, UsageError, WorkError
from scpslab.core.limited import Answers, WorkLimits, in_child
from scpslab.core.names import file_label, shown
from scpslab.core.scratch import replace_text
from scpslab.running import RunOptions
from scpslab.running.events import Listener
from scpslab.runs.archive import ArchivedRun
from scpslab.studio.page import RunPages
from scpslab_course.course import answers as written
from scpslab_course.course import variant as variants
from scpslab_course.course.answers import Expected, GivenError, RightNumber, RightWord, Score, read_answers, read_given
from scpslab_course.course.assignment import STARTER, Assignment, Marking
from scpslab_course.course.folder import Course
from scpslab_course.course.model import Answer, HiddenTrial, MarkedText, Prediction, Whose
from scpslab_course.course.runs import ENDLESS, NOT_HANDED_IN, SLOW, Outcome, carry_out, planned, planned_hidden
from scpslab_course.course.variant import Secret, Variant, VariantError
from scpslab_course.course.workspace import WRITE_UP, Line, given_predictions, late
from scpslab_course.grading import classwide, compare, submission
from scpslab_course.grading.compare import Rerun, choose, rerun, rerun_alike, runs_of
from scpslab_course.grading.grade import Code, Concern, Grade, Graded
from scpslab_course.grading.submission import Submission

BROKEN = "found an error of the grader's own"
# Of what a submission may take to be read, and to be marked. Those of the project's assignments take a few seconds.
LIMITS = WorkLimits(memory_bytes=512 << 20, cpu_s=60, wall_s=300)
LIMITED = "expected a submission that is read and marked within these limits"
# A trial's file that is longer is refused by its length.
MOST_TRIED_BYTES = 1 << 20
# Grades come from children as JSON.
AS_JSON = TypeAdapter(Grade)
NO_PREDICTION, NO_ANSWER, BY_A_PERSON = "no prediction", "no answer", "a person marks it"
UNCHANGED = "as it was handed out"
LATE = "made after the run: no points"
MOST_SHOWN_BYTES = 64 << 10
# Of the packets of a run, beside a page for who marks.
MOST_PAGE_BYTES = 3 << 20


@dataclass(frozen=True)
class Bound:
    """A verified variant, the instructor's files that it belongs to, and what texts of these have to say."""

    variant: Variant
    assignment: Assignment
    marking: Marking
    known: classwide.Known


@dataclass(frozen=True)
class Settings:
    """How a class is graded, and the course's side of it.

    `secret`: a grading host in strangers' hands has none, and the signature is enough for it. `submitters` are the
    students by file, as the platform knows them, and `times` when they handed in; `cells`: instead of marking.yaml's
    `regrade`; `review`: where pages of the cells that are run again go.
    """

    course: Course
    term: str
    secret: Secret | None
    options: RunOptions
    submitters: Mapping[Path, str] = field(default_factory=dict)
    cells: int | None = None
    times: Mapping[Path, dt.datetime] = field(default_factory=dict)
    review: Path | None = None
    _loaded: dict[str, tuple[Assignment, Marking, classwide.Known]] = field(
        default_factory=dict, init=False, repr=False
    )

    def bind(self, path: Path, content: bytes) -> Bound:
        """The variant of the submission at `path`, of which `content` is the file, with its assignment.

        Raises:
            UsageError: the submission cannot be graded with this course; the message says why.
            ScenarioError: the assignment's files are not valid.
        """
        try:
            variant = variants.verify(content, self.course.file.public_key)
        except VariantError as error:
            raise UsageError(f"{path}: {error}.") from error
        name, known = variant.assignment, self.course.file.assignments
        if name not in known:
            raise UsageError(f'{path}: found a variant of "{name}"; {one_of(name, known)} (course.yaml, assignments)')
        if name not in self._loaded:
            loaded = self.course.assignment(name)
            marking = self.course.marking(loaded)
            self._loaded[name] = loaded, marking, classwide.Known.of(loaded, marking)
        assignment = self._loaded[name][0]
        if said := variants.unfit(variant, assignment):
            raise UsageError(f"{path}: {said}. Grade with the files that were issued.")
        if variant.term == self.term and self._is_drawn_otherwise(variant, assignment):
            said = "found a signed variant that the secret does not give; expected the drawn one"
            raise UsageError(f"{path}: {said}. Look for a copy of the secret.")
        return Bound(variant, *self._loaded[name])

    def _is_drawn_otherwise(self, variant: Variant, assignment: Assignment) -> bool:
        if self.secret is None:
            return False
        whose = Whose(variant.term, variant.assignment, variant.student)
        try:
            return assignment.drawn(self.secret.draw_key, whose, variant.attempt) != dict(variant.parameters)
        except ScpslabError:
            return True

    def late(self, one: Grade) -> Iterator[Concern]:
        """How many days after the due time of the course a file was handed in, begun days as whole ones."""
        at, due = self.times.get(one.path), self.course.file.due.get(one.assignment)
        if at is not None and due is not None and at > due:
            days = -((due - at) // dt.timedelta(days=1))
            late = f"{days} late day{'' if days == 1 else 's'}"
            handed_in, wanted = (one.astimezone(due.tzinfo).isoformat(" ", "minutes") for one in (at, due))
            yield Concern(Code.LATE_SUBMISSION, f"handed in at {handed_in}, {late}; it was due at {wanted}")

    def not_theirs(self, submission: Submission, variant: Variant) -> Iterator[Concern]:
        """Signs that a variant is not that of who handed it in."""
        submitter, says = self.submitters.get(submission.path), submission.contents.student
        if variant.term != self.term:
            said = f"found a variant of the term {shown(variant.term)}; expected {shown(self.term)}"
            yield Concern(Code.OTHER_VARIANT, said)
        if says != variant.student:
            said = f"the submission says {shown(says)}; its variant was drawn for {shown(variant.student)}"
            yield Concern(Code.OTHER_VARIANT, said)
        if submitter is not None and submitter not in variant.members:
            said = f"handed in by {shown(submitter)}; the variant was issued to {', '.join(variant.members)}"
            yield Concern(Code.OTHER_VARIANT, said)


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
    grades = []
    bound: dict[Path, Variant] = {}
    for path in paths:
        begun = time.monotonic()
        try:
            one, bound[path] = _one(path, settings, listeners)
        except ScpslabError as error:
            one = Grade(path, reason=str(error))
        except WorkError as error:
            one = Grade(path, reason=_broken(path, error))
        except LimitError as error:
            advice = "Mark it by hand, or ask for another one."
            one = Grade(path, reason=f"{path}: {error} while it was read or marked; {LIMITED}. {advice}")
        except Exception as error:
            # Whatever breaks here is the fault of the grader, and must cost neither this student nor the others a
            # grade.
            one = Grade(path, reason=_broken(path, error))
        one = replace(one, submitter=settings.submitters.get(path, ""), seconds=time.monotonic() - begun)
        one = replace(one, findings=(*one.findings, *settings.late(one)))
        if settings.secret is not None and any(part.numbers is not None for part in one.parts):
            one = replace(one, pseudonym=settings.secret.pseudonym(settings.term, one.whose))
        grades.append(one)
        told(grades[-1])
    return _compared(grades, bound, settings.submitters)


def _broken(path: Path, error: Exception) -> str:
    said = f"{BROKEN} ({error or type(error).__name__}); expected it to go on"
    return f"{path}: {said}. Mark it by hand, and report the error."


@dataclass(frozen=True)
class _Opened:
    """A submission that was read: bound, and compared with the variant's plans."""

    handed_in: Submission
    bound: Bound
    archived: dict[str, ArchivedRun]
    submitted: dict[str, list[dict[str, str]]]
    given: Mapping[str, Any]
    findings: Sequence[Concern]


def _one(path: Path, settings: Settings, listeners: Sequence[Listener]) -> tuple[Grade, Variant]:
    """Everything that reads a student's bytes does so in a child with limits; cells run in this process, by the
    instructor's plans.
    """
    content = submission.packed_bytes(path)
    with in_child(lambda: _answers(path, content, settings), LIMITS) as ask:
        bound = settings.bind(path, ask(None).encode())
        variant, marking = bound.variant, bound.marking
        files = {name: base64.b64decode(text) for name, text in ask(bound).items()}
        mine = runs_of(bound.assignment, variant, settings.options)
        count = settings.cells if settings.cells is not None else marking.file.regrade
        chosen = choose(mine, marking, settings.secret, hashlib.sha256(content).hexdigest(), count)
        plans = {name: run.plans for name, run in mine.items()}
        reruns, tried = rerun(chosen, listeners), list(_trials(bound, files, settings, listeners))
        found = AS_JSON.validate_python(ask((plans, reruns, tried)))
        if found.lines and any(finding.code is Code.REPLAYED_LOG for finding in found.findings):
            # The log has other results than the table: only all cells tell whose are the edited ones.
            chosen, reruns = mine, rerun(mine, listeners)
            found = AS_JSON.validate_python(ask((plans, reruns, tried)))
    if any(finding.code in compare.EDITED for finding in found.findings):
        out = settings.options.out / "once-more"
        again = {
            name: replace(run, options=replace(run.options, use_cache=False, out=out)) for name, run in chosen.items()
        }
        rerun_alike(reruns, rerun(again, listeners))
    return replace(found, packets=dict(_packets(found, reruns, settings.review))), variant


def _packets(found: Grade, reruns: Mapping[str, Rerun], folder: Path | None) -> Iterator[tuple[str, str]]:
    """Writes a page of packets for each run into a folder; scenarios and pages."""
    for name, one in reruns.items():
        if folder is not None and (page := RunPages([open_run(one.folder)]).telling(MOST_PAGE_BYTES)) is not None:
            file = f"{found.sha256[:16]}-{file_label(name)}.html"
            replace_text(folder / file, page.html, private=True)
            yield name, file


def _answers(path: Path, content: bytes, settings: Settings) -> Answers:
    """What a child says of a submission: its variant; once that is bound, the files that trials run, when all has been
    read to its end; and its grade, by the grader's plans, runs and trials.
    """
    handed_in = submission.read(path, content)
    try:
        variant = variants.read(handed_in.variant)
    except VariantError as error:
        raise UsageError(f"{path}: {error}.") from error
    bound: Bound = yield variants.write(variant).decode()
    archived = handed_in.runs()
    submitted = compare.results_of(handed_in.archive, archived)
    given = read_answers(handed_in.answers, handed_in.path / written.FILE).given
    findings = list(settings.not_theirs(handed_in, bound.variant))
    wanted = {trial.file for part in (bound.assignment, bound.marking) for trial in part.file.trials.values()}
    tried = {name: file for name, file in handed_in.files.items() if name in wanted}
    answer: Any = {name: base64.b64encode(file[:MOST_TRIED_BYTES]).decode() for name, file in tried.items()}
    while True:
        plans, reruns, trials = yield answer
        before = [*findings, *compare.against_plans(archived, plans)]
        opened = _Opened(handed_in, bound, archived, submitted, given, before)
        answer = AS_JSON.dump_python(_graded(opened, reruns, trials), mode="json")


def _trials(bound: Bound, files: Mapping[str, bytes], settings: Settings, told: Sequence[Listener]) -> Iterator[Graded]:
    """The points of all trials, carried out with the files of a submission.

    Raises:
        ScenarioError: the instructor's files are not valid.
        CapabilityError: this machine cannot run labs.
        UsageError: see `planned_hidden`.
    """
    parameters, options = bound.variant.parameters, settings.options
    key = settings.secret.draw_key if settings.secret is not None else None
    hidden = planned_hidden(bound.assignment, parameters, bound.marking, key, settings.term)
    # By file: what it gave so far, and the trial in which it did not answer. It is not asked again: each limit is long.
    shares: dict[str, list[float | None]] = {}
    stuck: dict[str, str] = {}
    for one in (*planned(bound.assignment, parameters), *hidden):
        trial, file = one.trial, one.trial.file
        if file in stuck:
            said = f"not tried, because the program did not answer any more in trial {stuck[file]}"
            outcome = Outcome(None if any(shares[file]) else 0.0, said)
        else:
            mine = replace(options, out=options.out / bound.variant.digest[:16] / "trials" / one.name, overrides=[])
            outcome = carry_out(one, files.get(file), mine, told)
        shares.setdefault(file, []).append(outcome.share)
        if ENDLESS in outcome.says or SLOW in outcome.says:
            stuck.setdefault(file, one.name)
        earned = None if outcome.share is None else _points(trial.points, outcome.share)
        made = Graded("trial", one.name, trial.says, trial.points, earned, outcome.says)
        yield replace(made, numbers=outcome.numbers) if isinstance(trial, HiddenTrial) else made


def _graded(opened: _Opened, reruns: Mapping[str, Rerun], tried: Sequence[Graded]) -> Grade:
    handed_in, bound, before = opened.handed_in, opened.bound, list(opened.findings)
    variant, assignment, marking = bound.variant, bound.assignment, bound.marking
    # Runs of other plans have other bytes, which says nothing new.
    if all(finding.code is not Code.SWAPPED_PLAN for finding in before):
        before += compare.against_rerun(opened.archived, opened.submitted, reruns)
    for_formulas = {name: one.for_formulas for name, one in reruns.items()}
    right = written.expected(assignment, marking, variant.parameters, for_formulas)
    lines, findings = compare.lines_of(handed_in.log, variant)
    # Runs that are not the variant's own cannot be those of its log.
    if not findings and not any(finding.holds for finding in before):
        findings += compare.against_runs(lines, opened.archived, reruns)
    is_trusted = not any(finding.holds for finding in findings)
    predictions, late = predictions_of(assignment, marking, right, lines if is_trusted else None)
    answers = answers_of(assignment, marking, right, opened.given)
    others = others_of(assignment, marking, right, handed_in.write_up, handed_in.files)
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
        parameters={name: f"{value}" for name, value in variant.parameters.items()},
        expected=right,
        # A student's own rows count where the grader has none: what was edited elsewhere explains nothing.
        numbers=classwide.numbers(right, variant.parameters, opened.submitted, for_formulas),
    )
    found = classwide.wrote(found, handed_in.write_up, bound.known)
    published = classwide.from_solution(found, bound.known)
    # Others are compared with what is right for this variant, and with nothing that its student could have written.
    return replace(found, numbers=classwide.numbers(right, {}), findings=(*found.findings, *published))


def _compared(grades: Sequence[Grade], bound: Mapping[Path, Variant], submitters: Mapping[Path, str]) -> list[Grade]:
    """The grades with what only a look at the whole class shows.

    Of two submissions of one variant, one is a question if the platform has not said whose it is; both are where two
    members of one group have handed in different ones.
    """
    # Not by their digests: a group whose members changed has two variants, with the same numbers.
    same: dict[tuple[str, str, str], list[Path]] = {}
    for path, variant in bound.items():
        if path not in submitters or submitters[path] in variant.members:
            same.setdefault((variant.assignment, variant.term, variant.student), []).append(path)
    digests = {one.path: one.sha256 for one in grades}

    def is_question(mine: Path, theirs: Path) -> bool:
        whose = submitters.get(mine), submitters.get(theirs)
        if None in whose:
            return mine != theirs and whose[0] is None
        return whose[0] != whose[1] and digests[mine] != digests[theirs]

    twice = {mine: other for paths in same.values() for mine in paths for other in paths if is_question(mine, other)}
    found = []
    for one in grades:
        said = f"found the same variant in {twice.get(one.path)}; expected one submission of it"
        more = [Concern(Code.OTHER_VARIANT, said)] if one.path in twice else []
        seen = (replace(concern, is_of_class=True) for concern in (*more, *classwide.findings(one, grades)))
        found.append(replace(one, findings=(*one.findings, *seen)))
    return found


def predictions_of(
    assignment: Assignment, marking: Marking, right: Expected, lines: Sequence[Line] | None
) -> tuple[list[Graded], list[Concern]]:
    """The parts of the predictions, and the late ones.

    `lines`: None if the log cannot be trusted; then a person decides.
    """
    made, parts, findings = given_predictions(lines or (), assignment), [], []
    for name, asked in assignment.file.predictions.items():
        line, truth = made.get(name), right.predictions[name]
        shown_right = right_value(truth, asked)
        part = Graded("prediction", name, asked.question, asked.points, 0.0, NO_PREDICTION, right=shown_right)
        if lines is None:
            part = replace(part, earned=None, comment="the log cannot be trusted")
        elif line is not None and late(lines, line.number, assignment.before(name)):
            said = f"{name}: found {shown(line.value)} after the run; expected a prediction before it"
            findings.append(Concern(Code.LATE_PREDICTION, said))
            part = replace(part, comment=LATE, given=line.value)
        elif line is not None:
            score = written.score_prediction(asked, marking.file.predictions[name], truth, line.value)
            part = replace(part, earned=_points(asked.points, score.share), comment=score.comment, given=line.value)
            part = replace(part, is_inside=_is_inside(asked, line.value, truth))
        parts.append(part)
    return parts, findings


def answers_of(assignment: Assignment, marking: Marking, right: Expected, given: Mapping[str, Any]) -> Iterator[Graded]:
    """The parts of the answers."""
    for name, asked in assignment.file.answers.items():
        text, marked, wanted = _text(given.get(name)), marking.file.answers[name], right.answers.get(name)
        shown_right = right_value(wanted.value, asked, wanted) if wanted is not None else ""
        part = Graded("answer", name, asked.question, asked.points, None, BY_A_PERSON, text, right=shown_right)
        if not text.strip():
            part = replace(part, earned=0.0, comment=NO_ANSWER, given="")
        elif isinstance(marked, MarkedText):
            part = replace(part, rubric=marked.rubric, hints=marked.wrong)
        elif wanted is not None:
            score = written.score_answer(asked, wanted, given.get(name))
            # A person can read what a program cannot: "2,5 s" is no reason to lose points unseen.
            by_hand = replace(part, comment=f"{score.comment} A person marks it.")
            by_score = replace(part, earned=_points(asked.points, score.share), comment=score.comment)
            part = by_score if score.is_readable else by_hand
        yield part


def others_of(
    assignment: Assignment, marking: Marking, right: Expected, write_up: str, files: Mapping[str, bytes]
) -> Iterator[Graded]:
    """Write-up and deliverables: a person marks them, but lines that are right or wrong."""
    for asked in assignment.file.deliverables:
        content = files.get(asked.file)
        said = f"{len(content)} bytes" if content is not None else NOT_HANDED_IN
        text = (content or b"")[:MOST_SHOWN_BYTES].decode("utf-8", "replace")
        starter = assignment.folder / STARTER / asked.file
        if starter.is_file() and content == starter.read_bytes():
            said, text = UNCHANGED, ""
        if right.lines and asked.file in right.lines:
            of, lines = marking.file.lines[asked.file].points, right.lines[asked.file]
            score = written.score_lines(lines, content) if content is not None else Score(0, said)
            earned = _points(of, score.share) if score.is_readable else None
            found = Graded("lines", asked.file, asked.says, of, earned, score.comment, text)
            yield replace(found, right="; ".join(score.wrong))
        rubric = marking.file.deliverables.get(asked.file, ())
        # The rest of its points is for trials.
        points = round(sum(item.points for item in rubric), 2)
        earned = None if points else 0.0
        yield Graded("deliverable", asked.file, asked.says, points, earned, said, text, rubric)
    if assignment.file.write_up:
        points, rubric = assignment.file.write_up_points, marking.file.write_up
        earned = None if points else 0.0
        yield Graded("write-up", WRITE_UP, "The write-up.", points, earned, BY_A_PERSON, write_up, rubric)


def right_value(value: float | str, asked: Answer | Prediction, right: RightNumber | RightWord | None = None) -> str:
    """A right number with its unit and how near is near enough, or a right word, for a person who marks."""
    if isinstance(value, str):
        return value
    near = f" ± {right.distance:.3g}" if isinstance(right, RightNumber) and right.distance else ""
    return f"{value:.6g}{near} {getattr(asked, 'unit', '')}".rstrip()


def _is_inside(asked: Prediction, given: str, truth: float | str) -> bool | None:
    with suppress(GivenError):
        if isinstance(found := read_given(asked, given), tuple) and not isinstance(truth, str):
            return found[0] <= truth <= found[1]
    return None


def _points(most: float, share: float) -> float:
    """What a share earns: nobody adds up more digits, and parts add up to what is shown of them."""
    return round(most * share, 2)


def _text(given: object) -> str:
    """What stands in answers.yaml, as text."""
    try:
        return "" if given is None else f"{given}"
    except ValueError:
        # Python writes no number of thousands of digits.
        return "a number of thousands of digits"
