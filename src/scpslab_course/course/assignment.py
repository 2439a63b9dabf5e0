"""Finds assignments and loads their two files, with the conditions between the parts of these files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError
from scpslab.core.names import is_name
from scpslab.core.project import ROOT
from scpslab.documents import Complaint, Form, KeyPath, Places, load, read
from scpslab.documents.quantities import AxisValue
from scpslab.scenario.load import FORM as SCENARIO_FORM
from scpslab.scenario.load import load as load_scenario
from scpslab_course.course.draw import DrawError, Whose, count_of, drawn, value_at
from scpslab_course.course.formulas import NAMES, OF_RESULTS, FormulaError, advised, parse
from scpslab_course.course.formulas import Formula as ReadFormula
from scpslab_course.course.model import (
    FILE,
    MARKING,
    SCENARIO_SUFFIX,
    Answer,
    AssignmentFile,
    Choice,
    ChoiceAnswer,
    Formula,
    Item,
    MarkingFile,
    Parameter,
    Scoring,
    Trial,
    Word,
    split_target,
)

from scpslab.kinds.workloads.policy.plan import is_policy_name
from scpslab.kinds.workloads.policy.scenario import read_policy

FOLDER = ROOT / "assignments"
HANDOUT, STARTER, PRACTICE = "handout.md", "starter", "practice.json"
INSTRUCTOR, SOLUTION, NOTES = "instructor", "solution", "instructor.md"
PAGE = "docs/assignment-reference.md"
FORM = Form("an assignment", "kind, title, goals, scenarios, answers", PAGE)
MARKING_FORM = Form("a marking", "kind, answers, difficulty", PAGE)


def problems(file: AssignmentFile, folder: Path) -> Iterator[Complaint]:
    """Errors between the parts of assignment.yaml, and scenarios that are not beside it."""
    for index, name in enumerate(file.scenarios):
        if not (folder / f"{name}{SCENARIO_SUFFIX}").is_file():
            known = sorted(path.stem for path in folder.glob(f"*{SCENARIO_SUFFIX}") if path.name != FILE)
            yield ("scenarios", index), f'found no file "{name}{SCENARIO_SUFFIX}" beside it; {one_of(name, known)}'
    yield from _problems_of_trials(file, folder)
    above: list[str] = []
    for name, parameter in file.variant.items():
        yield from _problems_of_parameter(name, parameter, above, file)
        above.append(name)
    for name, prediction in file.predictions.items():
        for scenario in prediction.before:
            if scenario not in file.scenarios:
                yield ("predictions", name, "before"), f'found "{scenario}"; {one_of(scenario, file.scenarios)}'
        if name in file.answers:
            yield ("predictions", name), "found the name of an answer; expected another one. Rename the prediction."
    own = [deliverable.file for deliverable in file.deliverables]
    for index, deliverable in enumerate(own):
        if deliverable in own[:index]:
            yield ("deliverables", index), f'found "{deliverable}" a second time; expected it once. Remove one.'


def _problems_of_trials(file: AssignmentFile, folder: Path) -> Iterator[Complaint]:
    for name, trial in file.trials.items():
        at: KeyPath = ("trials", name)
        if trial.scenario in file.scenarios:
            yield (
                (*at, "scenario"),
                (
                    f'found "{trial.scenario}", which students run themselves; expected another one. '
                    "Make a scenario for the trial."
                ),
            )
        yield from problems_of_trial(at, trial, file, folder)


def problems_of_trial(at: KeyPath, trial: Trial, file: AssignmentFile, folder: Path) -> Iterator[Complaint]:
    """What is wrong with a trial whose scenario is in a folder."""
    known = [deliverable.file for deliverable in file.deliverables]
    if trial.file not in known:
        yield (*at, "file"), f'found "{trial.file}", which is no deliverable; {one_of(trial.file, known)}'
    path = folder / f"{trial.scenario}{SCENARIO_SUFFIX}"
    if not path.is_file():
        others = sorted(path.stem for path in folder.glob(f"*{SCENARIO_SUFFIX}") if path.name not in (FILE, MARKING))
        yield (*at, "scenario"), f'found no file "{path.name}" in {folder.name}; {one_of(trial.scenario, others)}'
    elif trial.file not in (found := policies_of(path)):
        said = f"the policies {', '.join(found)}" if found else "no workload of kind policy"
        yield (
            (*at, "scenario"),
            f"found {said} in {path.name}; expected a workload of kind policy with {trial.file}. Correct the scenario.",
        )
    try:
        formula = parse(trial.share, file.variant, NAMES)
    except FormulaError as error:
        yield (*at, "share"), advised(error, "Correct the formula.")
    else:
        yield from (((*at, "share"), said) for said in unknown_scenarios(formula, [trial.scenario]))


def policies_of(scenario: Path) -> list[str]:
    """The policies that a scenario names, in its workloads or as values of an axis."""
    return list(dict.fromkeys(_policies_in(read(scenario, SCENARIO_FORM).data)))


def _policies_in(data: object) -> Iterator[str]:
    if isinstance(data, str) and is_policy_name(data):
        yield data
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _policies_in(value)


def _problems_of_parameter(
    name: str, parameter: Parameter, above: Sequence[str], file: AssignmentFile
) -> Iterator[Complaint]:
    try:
        if isinstance(parameter, Formula):
            parse(parameter.value, above, NAMES)
        else:
            value_at(parameter, count_of(parameter) - 1)
    except (DrawError, FormulaError) as error:
        yield ("variant", name), advised(error, "Correct the parameter.")
    if isinstance(parameter, Choice) and len({type(value) for value in parameter.values}) > 1:
        yield (
            ("variant", name, "values"),
            "found values of several types; expected numbers alone, or texts alone. Write them alike.",
        )
    for target in parameter.set:
        only = split_target(target)[0]
        if only and only not in (known := (*file.scenarios, *(trial.scenario for trial in file.trials.values()))):
            yield ("variant", name, "set"), f'found "{target}"; {one_of(only, known)}'


def differences(file: AssignmentFile, marking: MarkingFile, folder: Path) -> Iterator[Complaint]:
    """Where marking.yaml, which is in this folder, does not fit assignment.yaml."""
    yield from _names_that_differ("predictions", file.predictions, marking.predictions)
    yield from _names_that_differ("answers", file.answers, marking.answers)
    for name, answer in file.answers.items():
        if name in marking.answers:
            yield from _unlike(name, answer, marking)
    for name, prediction in file.predictions.items():
        if name in marking.predictions:
            yield from _unlike_scoring(name, prediction.kind, marking.predictions[name])
    files = {deliverable.file: deliverable.points for deliverable in file.deliverables}
    for name in marking.deliverables:
        if name not in files:
            yield ("deliverables", name), f'found "{name}", which {FILE} does not ask for; {one_of(name, files)}'
    for name, trial in marking.trials.items():
        if name in file.trials:
            yield ("trials", name), f"found the name of a trial of {FILE}; expected another one. Rename the trial."
        yield from problems_of_trial(("trials", name), trial, file, folder)
    for name, points in files.items():
        tried = [trial for trial in (*file.trials.values(), *marking.trials.values()) if trial.file == name]
        yield from _unlike_sum(("deliverables", name), marking.deliverables.get(name, ()), points, tried)
    yield from _unlike_sum(("write_up",), marking.write_up, file.write_up_points if file.write_up else 0)


def _names_that_differ(section: str, asked: Mapping[str, object], marked: Mapping[str, object]) -> Iterator[Complaint]:
    for name in marked:
        if name not in asked:
            yield (section, name), f'found "{name}", which {FILE} does not ask; {one_of(name, asked)}'
    for name in asked:
        if name not in marked:
            yield (section,), f'found nothing for "{name}"; expected how it is marked. Add it.'


def _unlike_scoring(name: str, kind: str, scoring: Scoring) -> Iterator[Complaint]:
    fits = {"number": ("log-ratio", "distance"), "interval": ("interval",), "choice": ("choice",)}[kind]
    if scoring.kind not in fits:
        yield (
            ("predictions", name, "kind"),
            f'found "{scoring.kind}" for a prediction of kind {kind}; {one_of(scoring.kind, fits)}',
        )
    if not isinstance(scoring, Word) and scoring.zero <= scoring.full:
        yield (
            ("predictions", name, "zero"),
            f"found {scoring.zero:g}, not above full ({scoring.full:g}); expected more. Correct the values.",
        )


def _unlike(name: str, answer: Answer, marking: MarkingFile) -> Iterator[Complaint]:
    at: KeyPath = ("answers", name)
    marked = marking.answers[name]
    if marked.kind != answer.kind:
        yield (*at, "kind"), f'found "{marked.kind}"; expected {answer.kind}, which {FILE} says. Correct the word.'
    elif marked.kind == "text":
        yield from _unlike_sum((*at, "rubric"), marked.rubric, answer.points)
    elif marked.kind == "choice" and isinstance(answer, ChoiceAnswer):
        for index, wrong in enumerate(marked.wrong):
            if wrong.value not in answer.choices:
                yield (*at, "wrong", index), f'found "{wrong.value}"; {one_of(wrong.value, answer.choices)}'


def _unlike_sum(at: KeyPath, rubric: Sequence[Item], points: float, tried: Sequence[Trial] = ()) -> Iterator[Complaint]:
    found = sum(item.points for item in rubric) + sum(trial.points for trial in tried)
    if abs(found - points) > 1e-9:
        where = "the rubric and the trials" if tried else "the rubric"
        yield at, f"found {found:g} points in {where}; expected {points:g}, as in {FILE}. Correct one of the two."


def sources(file: MarkingFile) -> Iterator[tuple[KeyPath, str]]:
    """Every formula of marking.yaml with its place."""
    for index, band in enumerate(file.difficulty.bands if file.difficulty else ()):
        yield ("difficulty", "bands", index, "value"), band.value
    for name, scoring in file.predictions.items():
        yield ("predictions", name, "truth"), scoring.truth
    for name, marked in file.answers.items():
        if marked.kind != "text":
            yield ("answers", name, "expected"), marked.expected
        if marked.kind == "number":
            for index, wrong in enumerate(marked.wrong):
                yield ("answers", name, "wrong", index, "value"), wrong.value


def unknown_scenarios(formula: ReadFormula, scenarios: Sequence[str]) -> Iterator[str]:
    """Complaints about calls that read results of none of these scenarios."""
    for name, arguments in formula.calls:
        if name in OF_RESULTS:
            scenario = arguments[0] if arguments else None
            if not isinstance(scenario, str) or scenario not in scenarios:
                yield (
                    f"found {name}({scenario!r}, …), whose first argument is no scenario; {one_of(scenario, scenarios)}"
                )


@dataclass(frozen=True)
class Assignment:
    """An assignment as students have it: its name, which is its folder's, and assignment.yaml."""

    name: str
    folder: Path
    file: AssignmentFile
    places: Places

    def scenario(self, name: str) -> Path:
        """The file of one of its scenarios."""
        return self.folder / f"{name}{SCENARIO_SUFFIX}"

    @cached_property
    def scenario_names(self) -> tuple[str, ...]:
        """Its scenarios in the order in which they run."""
        return self.file.scenarios

    def settings(self, parameters: Mapping[str, AxisValue], scenario: str) -> list[str]:
        """What a variant sets in a scenario, as options of `--set`."""
        found = []
        for name, parameter in self.file.variant.items():
            for target in parameter.set:
                only, path = split_target(target)
                if only in ("", scenario):
                    found.append(f"{path}={json.dumps(parameters[name], ensure_ascii=False)}")
        return found

    def drawn(self, key: bytes, whose: Whose, attempt: int) -> dict[str, AxisValue]:
        """A value for every parameter.

        Raises:
            ScenarioError: a formula has no value for the values above it.
        """
        try:
            return drawn(key, whose, self.file.variant, attempt)
        except DrawError as error:
            parameter = self.file.variant[error.name]
            formula = f" {parameter.value!r}" if isinstance(parameter, Formula) else ""
            advice = f"Correct the formula{formula}, or the parameters that it reads."
            raise self.places.error([(("variant", error.name, "value"), advised(error, advice))]) from error

    def check_settings(self, parameters: Mapping[str, AxisValue]) -> None:
        """Holds what a variant sets against the scenarios that students run.

        Raises:
            ScenarioError: a scenario is not valid with it. What a parameter sets has the line of the parameter.
        """
        for scenario in self.scenario_names:
            try:
                load_scenario(str(self.scenario(scenario)), self.settings(parameters, scenario))
            except ScenarioError as error:
                raise ScenarioError(
                    "\n".join(self._placed(line, scenario) for line in str(error).splitlines())
                ) from error

    def _placed(self, said: str, scenario: str) -> str:
        """A line about a scenario: behind the place of the parameter that set it, if one did."""
        for name, parameter in self.file.variant.items():
            for only, path in map(split_target, parameter.set):
                if only in ("", scenario) and said.startswith(f"--set {path}="):
                    refused = said.removeprefix("--set ").replace("Correct the option.", "Correct the path.")
                    return (
                        f"{self.places.of(('variant', name, 'set'))}: found what {scenario}{SCENARIO_SUFFIX} does "
                        f"not take, {refused}"
                    )
        return said

    def material(self) -> str:
        """SHA-256 of everything that decides what a variant's runs are: the data of the scenarios, their policies, and
        `variant`. Comments do not count.
        """
        data = {name: read(self.scenario(name), SCENARIO_FORM).data for name in self.scenario_names}
        policies = {
            file: read_policy(self.folder / file)
            for name in self.scenario_names
            for file in policies_of(self.scenario(name))
        }
        drawn = {
            name: parameter.model_dump(mode="json", by_alias=True, exclude={"says"})
            for name, parameter in self.file.variant.items()
        }
        text = json.dumps(
            [data, list(drawn.items()), *([policies] if policies else [])],
            sort_keys=True,
            ensure_ascii=False,
            default=str,
        )
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Marking:
    """The instructor's part of an assignment: marking.yaml, and its formulas, read."""

    file: MarkingFile
    places: Places
    formulas: Mapping[KeyPath, ReadFormula]

    def needs_results(self, at: KeyPath) -> bool:
        """Whether the formula at a key path reads results of runs."""
        return any(name in OF_RESULTS for name, _ in self.formulas[at].calls)


def names() -> list[str]:
    """The project's assignments."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{FILE}"))


def find(name: str, folders: Sequence[Path] = (FOLDER,)) -> Path:
    """The folder of an assignment: a name in one of the folders, or a path.

    A student's own folder often has the name of the assignment, and is not meant.

    Raises:
        ScenarioError: there is none.
    """
    for folder in (*(folder / name for folder in folders if is_name(name)), Path(name)):
        try:
            if (folder / FILE).is_file():
                return folder
        except (OSError, ValueError):
            continue
    known = sorted({path.parent.name for folder in folders for path in folder.glob(f"*/{FILE}")})
    raise ScenarioError(f'assignment "{name}": found no folder of it with {FILE}; {one_of(name, known)}')


def load_assignment(folder: Path, name: str | None = None) -> Assignment:
    """The students' part. `name`: that of the assignment, if its folder has another.

    Raises:
        ScenarioError: all errors of assignment.yaml, one line each.
    """
    path = folder / FILE
    file, places = load(path, FORM, AssignmentFile)
    assignment = Assignment(name or folder.resolve().name, folder, file, places)
    wrong = list(problems(file, folder))
    if not is_name(assignment.name):
        wrong.append(
            (
                (),
                (
                    f'found the folder "{assignment.name}"; expected a name of letters, digits, - and _. '
                    "Rename the folder."
                ),
            )
        )
    if wrong:
        raise places.error(wrong)
    return assignment


def load_marking(assignment: Assignment) -> Marking:
    """The instructor's part.

    Raises:
        ScenarioError: there is none, or all errors of it, one line each.
    """
    path = assignment.folder / INSTRUCTOR / MARKING
    file, places = load(path, MARKING_FORM, MarkingFile)
    formulas: dict[KeyPath, ReadFormula] = {}
    wrong = list(differences(assignment.file, file, path.parent))
    for at, source in sources(file):
        try:
            formulas[at] = parse(source, assignment.file.variant, NAMES)
            wrong += [(at, said) for said in unknown_scenarios(formulas[at], assignment.file.scenarios)]
        except FormulaError as error:
            wrong.append((at, advised(error, "Correct the formula.")))
    if wrong:
        raise places.error(wrong)
    return Marking(file, places, formulas)
