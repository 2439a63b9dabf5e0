"""What can be said of a student's folder without giving an answer away.

In a practice folder the answers are public, and are compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scpslab.core.contents import content_of
from scpslab.core.errors import ScenarioError, some_of
from scpslab.core.names import shown
from scpslab.running import RunOptions
from scpslab.running.events import Listener
from scpslab_course.course import answers
from scpslab_course.course import workspace as folders
from scpslab_course.course.answers import complaint, is_blank, read_answers, read_practice, score_answer, score_lines
from scpslab_course.course.runs import carry_out, planned
from scpslab_course.course.workspace import (
    BLANK_WRITE_UP,
    LARGEST_FILE,
    LOG,
    TRIALS,
    WRITE_UP,
    Line,
    RunState,
    Workspace,
)

ENOUGH_WORDS = 50


class State(StrEnum):
    """Whether a part is done."""

    DONE = "ok"
    LOOK = "look"
    MISSING = "missing"


DONE, LOOK, MISSING = State


@dataclass(frozen=True)
class Finding:
    """One line: the state of a part, its name, and what there is to say.

    `holds`: the grader holds a submission that has it, or cannot read it.
    """

    state: State
    what: str
    says: str
    holds: bool = False


def check(workspace: Workspace, listeners: Sequence[Listener] = (), jobs: int | None = None) -> list[Finding]:
    """The state of every part. Trials that students see are carried out.

    Raises:
        ScenarioError: the log was changed.
        CapabilityError: there are trials, and this machine cannot run labs.
    """
    lines, states = workspace.log(), workspace.states()
    return [
        *_log(lines),
        *_predictions(workspace, lines, states),
        *runs(workspace, lines, states),
        *_answers(workspace),
        *_write_up(workspace),
        *_deliverables(workspace),
        *_trials(workspace, listeners, jobs),
    ]


def _log(lines: Sequence[Line]) -> Iterator[Finding]:
    """A chain cannot show that all its lines are gone; but a log begins with the start."""
    if not lines or lines[0].event != "start":
        found = f'a first line of "{lines[0].event}"' if lines else "no line"
        expected = "expected the one of the start, and with it what you predicted before the runs"
        yield Finding(LOOK, LOG, f"found {found}; {expected}. Restore the file as it was, if you have a copy")


def _predictions(workspace: Workspace, lines: Sequence[Line], states: Sequence[RunState]) -> Iterator[Finding]:
    given, in_time = folders.given_predictions(lines, workspace.assignment), workspace.unpredicted(lines, states)
    for name, asked in workspace.assignment.file.predictions.items():
        what = f"prediction {name}"
        if name in given:
            value = shown(given[name].value)
            if folders.late(lines, given[name].number, workspace.assignment.before(name)):
                yield Finding(LOOK, what, f"{value}, made after the run: it is late, and has no points")
            else:
                yield Finding(DONE, what, f"{value}, before the run")
        elif name in in_time:
            advice = f"Before the run: scpslab assignment predict {name} VALUE"
            yield Finding(MISSING, what, f"{asked.question} {advice}")
        else:
            yield Finding(LOOK, what, "not made before the run; now it is too late for its points")


def runs(workspace: Workspace, lines: Sequence[Line], states: Sequence[RunState]) -> Iterator[Finding]:
    """The state of every run."""
    for state in states:
        name = state.scenario
        run, what = workspace.planned[name], f"run {name}"
        if not run.is_complete:
            yield Finding(MISSING, what, f"{len(run.finished)} of {len(run.cells)} cells: scpslab assignment run")
        elif changed := run.changed():
            advice = "put the run's own back: scpslab assignment restore"
            yield Finding(LOOK, what, f"other bytes than the run gave in {some_of(changed, 1)}; {advice}", holds=True)
        elif folders.recorded_results(lines, name) != state.results:
            is_cut = folders.was_interrupted(lines, name)
            said = "the log lacks its end" if is_cut else "the log records no run with these results"
            yield Finding(LOOK, what, f"{said}; repeat: scpslab assignment run {name}", holds=not is_cut)
        else:
            yield Finding(DONE, what, f"{len(run.cells)} cell{'' if len(run.cells) == 1 else 's'}")


def _answers(workspace: Workspace) -> Iterator[Finding]:
    path = workspace.folder / answers.FILE
    try:
        written = read_answers(content_of(path), path)
    except (OSError, ScenarioError) as error:
        said = f"found {error.strerror}; expected your answers" if isinstance(error, OSError) else str(error)
        yield Finding(MISSING, answers.FILE, said, holds=isinstance(error, ScenarioError))
        return
    for said in written.strange(workspace.assignment.file):
        yield Finding(LOOK, answers.FILE, said)
    right = read_practice(workspace.assignment).expected.answers if workspace.variant.is_practice else {}
    for name, asked in workspace.assignment.file.answers.items():
        what, given = f"answer {name}", written.given.get(name)
        if said := complaint(asked, given):
            line = written.places.lines.get((name,))
            place = f"{answers.FILE}:{line}: " if line else ""
            yield Finding(MISSING if is_blank(given) else LOOK, what, f"{place}{said}")
        elif name in right:
            score = score_answer(asked, right[name], given)
            yield Finding(DONE if score.share == 1 else LOOK, what, score.comment)
        elif asked.kind == "text":
            words = f"{len(str(given).split())} words of at most {asked.most_words}"
            yield Finding(DONE, what, f"{words}; a person marks it")
        else:
            yield Finding(DONE, what, "can be read; whether it is right, the grader says")


def _write_up(workspace: Workspace) -> Iterator[Finding]:
    if not workspace.assignment.file.write_up:
        return
    path = workspace.folder / WRITE_UP
    try:
        words = max(0, len(content_of(path).decode().split()) - len(BLANK_WRITE_UP.split()))
    except OSError as error:
        yield Finding(MISSING, WRITE_UP, f"found {error.strerror}; expected your write-up")
        return
    except UnicodeDecodeError:
        yield Finding(MISSING, WRITE_UP, "found bytes that are not UTF-8; save the file as UTF-8", holds=True)
        return
    state = DONE if words >= ENOUGH_WORDS else LOOK
    yield Finding(state, WRITE_UP, f"{words} words besides the headings; expected at least {ENOUGH_WORDS}")


def _deliverables(workspace: Workspace) -> Iterator[Finding]:
    expected = read_practice(workspace.assignment).expected if workspace.variant.is_practice else None
    right = (expected.lines or {}) if expected else {}
    for asked in workspace.assignment.file.deliverables:
        path = workspace.folder / asked.file
        if path.is_file() and not path.is_symlink():
            size = path.stat().st_size
            score = score_lines(right[asked.file], content_of(path)) if asked.file in right else None
            is_right = score is None or score.share == 1
            says = f"{size} bytes" + (f"; {score.comment}" if score else "")
            yield Finding(DONE if is_right else LOOK, asked.file, says)
        else:
            yield Finding(MISSING if asked.required else LOOK, asked.file, asked.says)


def _trials(workspace: Workspace, listeners: Sequence[Listener], jobs: int | None) -> Iterator[Finding]:
    for one in planned(workspace.assignment, workspace.variant.parameters):
        path = workspace.folder / one.trial.file
        if not path.is_file():
            continue
        options = RunOptions(jobs=jobs, out=workspace.folder / TRIALS)
        outcome = carry_out(one, path.read_bytes()[: LARGEST_FILE + 1], options, listeners)
        where = f"; {outcome.folder}" if outcome.folder is not None else ""
        yield Finding(DONE if outcome.share else LOOK, f"trial {one.name}", f"{outcome.says}{where}")
