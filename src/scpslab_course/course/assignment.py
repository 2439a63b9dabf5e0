"""Finds assignments and loads their files; the conditions between the files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError
from scpslab.core.names import is_name
from scpslab.core.project import ROOT
from scpslab.documents import Form, KeyPath, Places, load, read
from scpslab.documents.quantities import AxisValue
from scpslab.scenario.load import FORM as SCENARIO_FORM
from scpslab_course.course.consistency import differences, policies_of, problems, sources, unknown_scenarios
from scpslab_course.course.expression import Formula, FormulaError, advised, parse
from scpslab_course.course.marking import MarkingFile
from scpslab_course.course.model import FILE, MARKING, SCENARIO_SUFFIX, AssignmentFile, split_target
from scpslab_course.course.numbers import NAMES, OF_RESULTS

from scpslab.kinds.workloads.policy.scenario import read_policy

FOLDER = ROOT / "assignments"
HANDOUT, STARTER, PRACTICE = "handout.md", "starter", "practice.json"
INSTRUCTOR, SOLUTION, NOTES = "instructor", "solution", "instructor.md"
PAGE = "docs/assignment-reference.md"
FORM = Form("an assignment", "kind, title, goals, scenarios, answers", PAGE)
MARKING_FORM = Form("a marking", "kind, answers, difficulty", PAGE)


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

    def material(self) -> str:
        """SHA-256 of everything that decides what a variant's runs are: the data of the scenarios, their policies, and `variant`. Comments do not count."""
        data = {name: read(self.scenario(name), SCENARIO_FORM).data for name in self.scenario_names}
        policies = {file: read_policy(self.folder / file) for name in self.scenario_names for file in policies_of(self.scenario(name))}
        drawn = {name: parameter.model_dump(mode="json", by_alias=True, exclude={"says"}) for name, parameter in self.file.variant.items()}
        text = json.dumps([data, list(drawn.items()), *([policies] if policies else [])], sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Marking:
    """The instructor's part of an assignment: marking.yaml, and its formulas, read."""

    file: MarkingFile
    places: Places
    formulas: Mapping[KeyPath, Formula]

    def needs_results(self, at: KeyPath) -> bool:
        """Whether the formula at a key path reads results of runs."""
        return any(name in OF_RESULTS for name, _ in self.formulas[at].calls)


def names() -> list[str]:
    """The project's assignments."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{FILE}"))


def find(name: str, folders: Sequence[Path] = (FOLDER,)) -> Path:
    """The folder of an assignment: a name in one of the folders, or a path. A student's own folder often has the name of the assignment, and is not meant.

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
        wrong.append(((), f'found the folder "{assignment.name}"; expected a name of letters, digits, - and _. Rename the folder.'))
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
    formulas: dict[KeyPath, Formula] = {}
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
