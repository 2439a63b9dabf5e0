"""Finds assignments and loads their two files, with the conditions between the parts of these files."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from scpslab.core.archive import ArchiveLimits, unpack_members
from scpslab.core.choices import choice, one_of
from scpslab.core.contents import content_of
from scpslab.core.errors import MemberError, ScenarioError, ScpslabError, UsageError
from scpslab.core.installation import version
from scpslab.core.names import is_name, shown
from scpslab.core.problems import KeyPath, Problem
from scpslab.core.project import ROOT
from scpslab.core.scratch import scratch
from scpslab.documents.document import Places, load, read
from scpslab.documents.quantities import AxisValue
from scpslab.documents.yaml_lines import Form
from scpslab.plan.programs import is_program_name
from scpslab.scenario.load import Scenario
from scpslab.scenario.load import load as load_scenario
from scpslab.scenario.model import FORM as SCENARIO_FORM
from scpslab.scenario.workloads import read_program
from scpslab_course.course import model
from scpslab_course.course.formulas import OF_RESULTS, FormulaError, parse
from scpslab_course.course.formulas import Formula as ReadFormula
from scpslab_course.course.model import (
    FILE,
    MARKING,
    SCENARIO_SUFFIX,
    AssignmentFile,
    Formula,
    HiddenTrial,
    MarkingFile,
    Trial,
)

FOLDER = ROOT / "assignments"
HANDOUT, STARTER, PRACTICE = "handout.md", "starter", "practice.json"
INSTRUCTOR, SOLUTION, NOTES = "instructor", "solution", "instructor.md"
PAGE = "docs/assignment-reference.md"
FORM = Form("an assignment", "kind, title, goals, scenarios, answers", PAGE)
MARKING_FORM = Form("a marking", "kind, answers, difficulty", PAGE)


def _unless_known(at: KeyPath, word: str, known: Iterable[str], which: str = "") -> Iterator[Problem]:
    """A complaint about a word that is none of the known ones."""
    if word not in (names := list(known)):
        yield Problem(at, f'"{word}"{which}', *choice(word, names))


def problems(file: AssignmentFile, folder: Path) -> Iterator[Problem]:
    """Errors between the parts of assignment.yaml, and scenarios that are not beside it."""
    for index, name in enumerate(file.scenarios):
        if not (folder / f"{name}{SCENARIO_SUFFIX}").is_file():
            known = sorted(path.stem for path in folder.glob(f"*{SCENARIO_SUFFIX}") if path.name != FILE)
            yield Problem(("scenarios", index), f'no file "{name}{SCENARIO_SUFFIX}" beside it', *choice(name, known))
    for name, trial in file.trials.items():
        yield from _problems_of_trial(("trials", name), trial, file, folder, file.scenarios)
    settable = (*file.scenarios, *(trial.scenario for trial in file.trials.values()))
    yield from _problems_of_variant(("variant",), file.variant, settable)
    for name, prediction in file.predictions.items():
        for scenario in prediction.before:
            yield from _unless_known(("predictions", name, "before"), scenario, file.scenarios)
        if name in file.answers:
            yield Problem(("predictions", name), "the name of an answer", "another one", "Rename the prediction.")
    own = [deliverable.file for deliverable in file.deliverables]
    for index, deliverable in enumerate(own):
        if deliverable in own[:index]:
            yield Problem(("deliverables", index), f'"{deliverable}" a second time', "it once", "Remove one.")


def _problems_of_trial(
    at: KeyPath, trial: Trial, file: AssignmentFile, folder: Path, taken: Sequence[str] = ()
) -> Iterator[Problem]:
    """What is wrong with a trial whose scenario is in a folder, and none of those that are `taken`."""
    if trial.scenario in taken:
        found = f'"{trial.scenario}", which students run themselves'
        yield Problem((*at, "scenario"), found, "another one", "Make a scenario for the trial.")
    known = [deliverable.file for deliverable in file.deliverables]
    yield from _unless_known((*at, "file"), trial.file, known, ", which is no deliverable")
    path = folder / f"{trial.scenario}{SCENARIO_SUFFIX}"
    if not path.is_file():
        others = sorted(path.stem for path in folder.glob(f"*{SCENARIO_SUFFIX}") if path.name not in (FILE, MARKING))
        yield Problem((*at, "scenario"), f'no file "{path.name}" in {folder.name}', *choice(trial.scenario, others))
    elif trial.file not in (programs := programs_of(path)):
        found = f"the programs {', '.join(programs)}" if programs else "no workload of kind policy or transport"
        found, expected = f"{found} in {path.name}", f"one with {trial.file}"
        yield Problem((*at, "scenario"), found, expected, "Correct the scenario.")
    names = (*file.variant, *(trial.variant if isinstance(trial, HiddenTrial) else ()))
    yield from _read_formula({}, (*at, "share"), trial.share, names, [trial.scenario])


def _read_formula(
    formulas: dict[KeyPath, ReadFormula], at: KeyPath, source: str, names: Collection[str], scenarios: Sequence[str]
) -> Iterator[Problem]:
    """Reads a formula over the parameters of these names and the results of these scenarios to its place among
    `formulas`.
    """
    try:
        formulas[at] = parse(source, names)
    except FormulaError as error:
        yield error.at(at, "Correct the formula.")
        return
    for name, (scenario, *_) in ((name, arguments or (None,)) for name, arguments in formulas[at].calls):
        if name in OF_RESULTS and scenario not in scenarios:
            found = f"{name}({scenario!r}, …), whose first argument is no scenario"
            yield Problem(at, found, *choice(scenario, scenarios))


def programs_of(scenario: Path) -> list[str]:
    """The programs of the user's that a scenario names, in its workloads or as values of an axis."""
    return list(dict.fromkeys(_programs_in(read(scenario, SCENARIO_FORM).data)))


def _programs_in(data: object) -> Iterator[str]:
    if isinstance(data, str) and is_program_name(data):
        yield data
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _programs_in(value)


def _problems_of_variant(
    at: KeyPath, variant: Mapping[str, model.Parameter], known: Sequence[str]
) -> Iterator[Problem]:
    """What is wrong with parameters that set values of the known scenarios."""
    above: list[str] = []
    for name, parameter in variant.items():
        try:
            if isinstance(parameter, Formula):
                parse(parameter.value, above)
            else:
                parameter.value_at(-1)
        except (model.DrawError, FormulaError) as error:
            yield error.at((*at, name), "Correct the parameter.")
        if isinstance(parameter, model.Choice) and len({type(value) for value in parameter.values}) > 1:
            expected = "numbers alone, or texts alone"
            yield Problem((*at, name, "values"), "values of several types", expected, "Write them alike.")
        for target in parameter.set:
            only = model.split_target(target)[0]
            if only and only not in known:
                yield Problem((*at, name, "set"), f'"{target}"', *choice(only, known))
        above.append(name)


def differences(file: AssignmentFile, marking: MarkingFile, folder: Path) -> Iterator[Problem]:
    """Where marking.yaml, which is in this folder, does not fit assignment.yaml."""
    yield from _names_that_differ("predictions", file.predictions, marking.predictions)
    yield from _names_that_differ("answers", file.answers, marking.answers)
    for name, answer in file.answers.items():
        if name in marking.answers:
            yield from _unlike(("answers", name), answer, marking.answers[name])
    for name, prediction in file.predictions.items():
        if name in marking.predictions:
            at, kind = ("predictions", name, "kind"), prediction.kind
            yield from _unless_known(at, marking.predictions[name].kind, (kind,), f" for a prediction of kind {kind}")
    files = {deliverable.file: deliverable.points for deliverable in file.deliverables}
    for name in (*marking.deliverables, *marking.lines):
        yield from _unless_known(("deliverables", name), name, files, f", which {FILE} does not ask for")
    for name, trial in marking.trials.items():
        if name in file.trials:
            yield Problem(("trials", name), f"the name of a trial of {FILE}", "another one", "Rename the trial.")
        yield from _problems_of_trial(("trials", name), trial, file, folder)
        yield from _problems_of_variant(("trials", name, "variant"), trial.variant, (trial.scenario,))
    for name, points in files.items():
        tried = [trial for trial in (*file.trials.values(), *marking.trials.values()) if trial.file == name]
        others: list[Trial | model.Lines] = [*tried]
        others += [lines for file, lines in marking.lines.items() if file == name]
        yield from _unlike_sum(("deliverables", name), marking.deliverables.get(name, ()), points, others)
    yield from _unlike_sum(("write_up",), marking.write_up, file.write_up_points if file.write_up else 0)


def _names_that_differ(section: str, asked: Mapping[str, object], marked: Mapping[str, object]) -> Iterator[Problem]:
    for name in marked:
        yield from _unless_known((section, name), name, asked, f", which {FILE} does not ask")
    for name in asked:
        if name not in marked:
            yield Problem((section,), f'nothing for "{name}"', "how it is marked", "Add it.")


def _unlike(at: KeyPath, answer: model.Answer, marked: model.Marked) -> Iterator[Problem]:
    if marked.kind != answer.kind:
        yield Problem((*at, "kind"), f'"{marked.kind}"', f"{answer.kind}, which {FILE} says", "Correct the word.")
    elif marked.kind == "text":
        yield from _unlike_sum((*at, "rubric"), marked.rubric, answer.points)
    elif marked.kind == "choice" and isinstance(answer, model.ChoiceAnswer):
        for index, wrong in enumerate(marked.wrong):
            yield from _unless_known((*at, "wrong", index), wrong.value, answer.choices)


def _unlike_sum(
    at: KeyPath, rubric: Sequence[model.Item], points: float, others: Sequence[Trial | model.Lines] = ()
) -> Iterator[Problem]:
    found = sum(item.points for item in (*rubric, *others))
    if abs(found - points) > 1e-9:
        where = "the rubric, the trials and the lines" if others else "the rubric"
        yield Problem(at, f"{found:g} points in {where}", f"{points:g}, as in {FILE}", "Correct one of the two.")


def sources(file: MarkingFile) -> Iterator[tuple[KeyPath, str]]:
    """Every formula of marking.yaml with its place."""
    for index, band in enumerate(file.difficulty.bands if file.difficulty else ()):
        yield ("difficulty", "bands", index, "value"), band.value
    for name, scoring in file.predictions.items():
        yield ("predictions", name, "truth"), scoring.truth
    for name, lines in file.lines.items():
        yield ("lines", name, "keys"), lines.keys
        yield ("lines", name, "expected"), lines.expected
    for name, marked in file.answers.items():
        if marked.kind != "text":
            yield ("answers", name, "expected"), marked.expected
        if marked.kind == "number":
            for index, wrong in enumerate(marked.wrong):
                yield ("answers", name, "wrong", index, "value"), wrong.value


def settings(variant: Mapping[str, model.Parameter], values: Mapping[str, AxisValue], scenario: str) -> list[str]:
    """What these values of parameters set in a scenario, as options of `--set`."""
    return [f"{path}={json.dumps(values[name], ensure_ascii=False)}" for name, path in _targets(variant, scenario)]


def _targets(variant: Mapping[str, model.Parameter], scenario: str) -> Iterator[tuple[str, str]]:
    """The parameters that set something in a scenario, each with the path that it sets."""
    for name, parameter in variant.items():
        for only, path in map(model.split_target, parameter.set):
            if only in ("", scenario):
                yield name, path


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

    def before(self, prediction: str) -> tuple[str, ...]:
        """The scenarios before which a prediction has to be made."""
        return self.file.predictions[prediction].before or self.file.scenarios

    def settings(self, parameters: Mapping[str, AxisValue], scenario: str) -> list[str]:
        """What a variant sets in a scenario, as options of `--set`."""
        return settings(self.file.variant, parameters, scenario)

    def loaded(self, parameters: Mapping[str, AxisValue], scenario: str) -> Scenario:
        """One of its scenarios with the parameters of a variant.

        Raises:
            ScenarioError: they do not fit it.
        """
        return load_scenario(str(self.scenario(scenario)), self.settings(parameters, scenario))

    def drawn(self, key: bytes, whose: model.Whose, attempt: int) -> dict[str, AxisValue]:
        """A value for every parameter.

        Raises:
            ScenarioError: a formula has no value for the values above it.
        """
        try:
            return model.drawn(key, whose, self.file.variant, attempt)
        except model.DrawError as error:
            parameter = self.file.variant[error.name]
            formula = f" {parameter.value!r}" if isinstance(parameter, Formula) else ""
            advice = f"Correct the formula{formula}, or the parameters that it reads."
            raise self.places.error([error.at(("variant", error.name, "value"), advice)]) from error

    def check_settings(self, parameters: Mapping[str, AxisValue]) -> None:
        """Holds what a variant sets against the scenarios that students run.

        Raises:
            ScenarioError: a scenario is not valid with it. What a parameter sets has the line of the parameter.
        """
        for scenario in self.file.scenarios:
            try:
                self.loaded(parameters, scenario)
            except ScenarioError as error:
                lines = str(error).splitlines()
                raise ScenarioError("\n".join(self._placed(line, scenario) for line in lines)) from error

    def _placed(self, said: str, scenario: str) -> str:
        """A line about a scenario: behind the place of the parameter that set it, if one did."""
        for name, target in _targets(self.file.variant, scenario):
            if said.startswith(f"--set {target}="):
                refused = said.removeprefix("--set ").replace("Correct the option.", "Correct the path.")
                place = self.places.of(("variant", name, "set"))
                return f"{place}: found what {scenario}{SCENARIO_SUFFIX} does not take, {refused}"
        return said

    @cached_property
    def material(self) -> str:
        """SHA-256 of everything that decides what a variant's runs are: the data of the scenarios, their programs, and
        `variant`. Comments do not count.
        """
        data = {name: read(self.scenario(name), SCENARIO_FORM).data for name in self.file.scenarios}
        files = (file for name in self.file.scenarios for file in programs_of(self.scenario(name)))
        programs = {file: read_program(self.folder / file) for file in files}
        drawn = {
            name: parameter.model_dump(mode="json", by_alias=True, exclude={"says"})
            for name, parameter in self.file.variant.items()
        }
        decides = [data, list(drawn.items()), *([programs] if programs else [])]
        text = json.dumps(decides, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Marking:
    """The instructor's part of an assignment: its folder, marking.yaml, and the formulas of that, read."""

    folder: Path
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
        expected = "a name of letters, digits, - and _"
        wrong.append(Problem((), f'the folder "{assignment.name}"', expected, "Rename the folder."))
    if wrong:
        raise places.error(wrong)
    return assignment


def load_marking(assignment: Assignment, instructors: Path | None = None) -> Marking:
    """The instructor's part: the one beside the students' part, as clones and instructors' own assignments have it, or
    that of the assignment's name in a folder of such parts (`opened`).

    Raises:
        ScenarioError: there is none, or all errors of it, one line each.
    """
    folder = assignment.folder / INSTRUCTOR
    if instructors is not None and not folder.is_dir():
        folder = instructors / assignment.name / INSTRUCTOR
    if not (folder / MARKING).is_file():
        expected = "expected the instructor's part, which no student gets"
        raise ScenarioError(f"{folder / MARKING}: found no file; {expected}. Instructors name it with --instructors.")
    file, places = load(folder / MARKING, MARKING_FORM, MarkingFile)
    formulas: dict[KeyPath, ReadFormula] = {}
    wrong = list(differences(assignment.file, file, folder))
    for at, source in sources(file):
        wrong += _read_formula(formulas, at, source, assignment.file.variant, assignment.file.scenarios)
    if wrong:
        raise places.error(wrong)
    return Marking(folder, file, places, formulas)


NAME, VERSION_FILE = "scpslab-instructors", "VERSION"
LIMITS = ArchiveLimits(members=2_000, bytes=64 << 20)
LONGEST_VERSION = 100


@contextmanager
def opened(path: Path | None) -> Iterator[Path | None]:
    """The folder that has a folder for each assignment: what an archive holds, unpacked until the block ends, or `path`
    itself, if somebody has unpacked it.

    Raises:
        UsageError: there are no parts at `path`, or those of another version.
    """
    if path is None:
        yield None
        return
    with scratch() as aside:
        folder = path if path.is_dir() else _unpacked(path, aside / NAME)
        _check_version(path, folder / VERSION_FILE)
        yield folder


def _unpacked(path: Path, target: Path) -> Path:
    try:
        with path.open("rb") as packed:
            unpack_members(packed, target, LIMITS)
    except (MemberError, OSError) as error:
        raise _refused(path, getattr(error, "strerror", None) or str(error)) from error
    return next(target.iterdir(), target)


def _check_version(path: Path, file: Path) -> None:
    try:
        found = content_of(file, LONGEST_VERSION).decode("utf-8").strip()
    except (OSError, ValueError, ScpslabError) as error:
        raise _refused(path, f"found no {VERSION_FILE}") from error
    if found != version():
        expected = f"expected {version()}. Take the archive of the same release."
        raise UsageError(f"{path}: found the instructors' parts of version {shown(found)}; {expected}")


def _refused(path: Path, found: str) -> UsageError:
    said = found if found.startswith("found") else f"found {found}"
    return UsageError(f"{path}: {said}; expected {NAME}-{version()}.tar.gz, or the folder in it. Correct the path.")
