"""What can be said of a student's folder without giving an answer away.

In a practice folder the answers are public, and are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scpslab.core.errors import ScenarioError
from scpslab.core.names import shown
from scpslab.documents.yaml_lines import content_of
from scpslab.running import RunOptions
from scpslab.running.events import Listener
from scpslab_course.course import answers
from scpslab_course.course.answers import Answers, complaint, read_answers
from scpslab_course.course.log import Line, recorded_results, was_interrupted
from scpslab_course.course.runs import carry_out, planned
from scpslab_course.course.scoring import read_practice, score_answer
from scpslab_course.course.workspace import BLANK_WRITE_UP, LARGEST_FILE, LOG, TRIALS, WRITE_UP, Workspace, late

ENOUGH_WORDS = 50


class State(StrEnum):
    """Whether a part is done."""

    DONE = "ok"
    LOOK = "look"
    MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """One line: the state of a part, its name, and what there is to say.

    `holds`: the grader holds a submission that has it.
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
    return [
        *_log(workspace.log()),
        *_predictions(workspace, workspace.log()),
        *_runs(workspace, workspace.log()),
        *_answers(workspace),
        *_write_up(workspace),
        *_deliverables(workspace),
        *_trials(workspace, listeners, jobs),
    ]


def given_predictions(lines: Sequence[Line]) -> dict[str, Line]:
    """The first prediction of each name: what counts is what was expected before anything was seen."""
    found: dict[str, Line] = {}
    for line in lines:
        if line.event == "predict":
            found.setdefault(line.name, line)
    return found


def _log(lines: Sequence[Line]) -> Iterator[Finding]:
    """A chain cannot show that all its lines are gone; but a log begins with the start."""
    if not lines or lines[0].event != "start":
        found = f'a first line of "{lines[0].event}"' if lines else "no line"
        says = (
            f"found {found}; expected the one of the start, and with it what you predicted before the runs. "
            "Restore the file as it was, if you have a copy"
        )
        yield Finding(State.LOOK, LOG, says)


def _predictions(workspace: Workspace, lines: Sequence[Line]) -> Iterator[Finding]:
    given, in_time = given_predictions(lines), workspace.unpredicted()
    for name, asked in workspace.assignment.file.predictions.items():
        what = f"prediction {name}"
        if name not in given and name not in in_time:
            yield Finding(State.LOOK, what, "not made before the run; now it is too late for its points")
            continue
        if name not in given:
            yield Finding(
                State.MISSING, what, f"{asked.question} Before the run: scpslab assignment predict {name} VALUE"
            )
            continue
        line = given[name]
        if late(lines, line.number, asked.before or workspace.assignment.scenario_names):
            yield Finding(State.LOOK, what, f"{shown(line.value)}, made after the run: it is late, and has no points")
        else:
            yield Finding(State.DONE, what, f"{shown(line.value)}, before the run")


def _runs(workspace: Workspace, lines: Sequence[Line]) -> Iterator[Finding]:
    states = {state.scenario: state.results for state in workspace.states()}
    for name in workspace.assignment.scenario_names:
        run = workspace.run_of(name)
        what = f"run {name}"
        if not run.is_complete:
            yield Finding(State.MISSING, what, f"{len(run.finished)} of {len(run.cells)} cells: scpslab assignment run")
        elif changed := run.changed():
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            says = (
                f"other bytes than the run gave in {changed[0]}{more}; put the run's own back: "
                "scpslab assignment restore"
            )
            yield Finding(State.LOOK, what, says, holds=True)
        elif recorded_results(lines, name) != states[name]:
            is_interrupted = was_interrupted(lines, name)
            said = (
                "it was interrupted before its end was in the log"
                if is_interrupted
                else "the log records no run with these results"
            )
            yield Finding(State.LOOK, what, f"{said}; repeat: scpslab assignment run {name}", holds=not is_interrupted)
        else:
            yield Finding(State.DONE, what, f"{len(run.cells)} cell{'' if len(run.cells) == 1 else 's'}")


def _answers(workspace: Workspace) -> Iterator[Finding]:
    path = workspace.folder / answers.FILE
    try:
        given = read_answers(content_of(path), path)
    except OSError as error:
        yield Finding(State.MISSING, answers.FILE, f"found {error.strerror}; expected your answers")
        return
    except ScenarioError as error:
        yield Finding(State.MISSING, answers.FILE, str(error))
        return
    for said in given.complaints(workspace.assignment.file):
        if "which is no question" in said:
            yield Finding(State.LOOK, answers.FILE, said)
    right = read_practice(workspace.assignment).expected.answers if workspace.variant.is_practice else {}
    for name, asked in workspace.assignment.file.answers.items():
        what = f"answer {name}"
        value = given.given.get(name)
        if said := complaint(asked, value):
            is_empty = value is None or (isinstance(value, str) and not value.strip())
            yield Finding(State.MISSING if is_empty else State.LOOK, what, _place(given, name, said))
        elif name in right:
            score = score_answer(asked, right[name], value)
            yield Finding(State.DONE if score.share == 1 else State.LOOK, what, score.comment)
        elif asked.kind == "text":
            yield Finding(
                State.DONE, what, f"{len(str(value).split())} words of at most {asked.most_words}; a person marks it"
            )
        else:
            yield Finding(State.DONE, what, "can be read; whether it is right, the grader says")


def _place(given: Answers, name: str, said: str) -> str:
    line = given.places.lines.get((name,))
    return f"{answers.FILE}:{line}: {said}" if line else said


def _write_up(workspace: Workspace) -> Iterator[Finding]:
    if not workspace.assignment.file.write_up:
        return
    path = workspace.folder / WRITE_UP
    try:
        words = max(0, len(content_of(path).decode().split()) - len(BLANK_WRITE_UP.split()))
    except OSError as error:
        yield Finding(State.MISSING, WRITE_UP, f"found {error.strerror}; expected your write-up")
        return
    except UnicodeDecodeError:
        yield Finding(State.MISSING, WRITE_UP, "found bytes that are not UTF-8; save the file as UTF-8")
        return
    state = State.DONE if words >= ENOUGH_WORDS else State.LOOK
    yield Finding(state, WRITE_UP, f"{words} words besides the headings; expected at least {ENOUGH_WORDS}")


def _deliverables(workspace: Workspace) -> Iterator[Finding]:
    for asked in workspace.assignment.file.deliverables:
        path = workspace.folder / asked.file
        if path.is_file() and not path.is_symlink():
            yield Finding(State.DONE, asked.file, f"{path.stat().st_size} bytes")
        else:
            yield Finding(State.MISSING if asked.required else State.LOOK, asked.file, asked.says)


def _trials(workspace: Workspace, listeners: Sequence[Listener], jobs: int | None) -> Iterator[Finding]:
    for one in planned(workspace.assignment, workspace.variant.parameters):
        path = workspace.folder / one.trial.file
        if not path.is_file():
            continue
        options = RunOptions(jobs=jobs, out=workspace.folder / TRIALS)
        outcome = carry_out(
            one, path.read_bytes()[: LARGEST_FILE + 1], workspace.variant.parameters, options, listeners
        )
        where = f"; {outcome.folder}" if outcome.folder is not None else ""
        yield Finding(State.DONE if outcome.share else State.LOOK, f"trial {one.name}", f"{outcome.says}{where}")
