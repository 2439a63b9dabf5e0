"""Reads files of claims, and reports their errors with the line; also errors that only the runs show which they are
tested on.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from scpslab.analysis.claims.measured import Evidence, EvidenceRow
from scpslab.analysis.claims.model import ClaimsFile, Contradiction, ContradictionsFile
from scpslab.analysis.figures.recipe import RECIPES, recipe_files
from scpslab.analysis.figures.source import axis_number
from scpslab.core.choices import choice
from scpslab.core.errors import ScenarioError
from scpslab.core.problems import KeyPath, Problem
from scpslab.core.project import ROOT
from scpslab.documents.document import Places
from scpslab.documents.document import load as load_document
from scpslab.documents.yaml_lines import Form
from scpslab.runs import RunFolder
from scpslab.runs.run import CLAIMS
from scpslab.scenario import names

FOLDER = ROOT / "analysis" / "claims"
FORM = Form("a claims", "kind, title, series, claims", "docs/claims.md")
# The questions that the papers left open, as statements of the same form.
QUESTIONS = FOLDER.parent / "questions"
CONTRADICTIONS = FOLDER.parent / "contradictions.yaml"
CONTRADICTIONS_FORM = Form("a contradictions file", "kind, contradictions", "docs/claims.md")


@dataclass(frozen=True)
class Paper:
    """A paper's claims; `name` is the file's."""

    name: str
    file: ClaimsFile
    places: Places


def load(path: Path) -> Paper:
    """Reads one file.

    Raises:
        ScenarioError: all errors of the file, one line each.
    """
    file, places = load_document(path, FORM, ClaimsFile)
    wrong = list(_problems(file, path))
    if wrong:
        raise places.error(wrong)
    return Paper(path.stem, file, places)


def load_all(folder: Path = FOLDER) -> list[Paper]:
    """Every file of a folder, oldest paper first.

    Raises:
        ScenarioError: see `load`.
    """
    return sorted((load(path) for path in folder.glob("*.yaml")), key=lambda paper: (paper.file.year, paper.name))


def load_beside(runs: Sequence[Path], known: Sequence[Paper]) -> tuple[list[Paper], list[str]]:
    """The files of claims that users put beside the scenarios of these runs (claims/*.yaml), and complaints about those
    that cannot be used.
    """
    papers_beside: dict[str, Paper] = {}
    wrong: list[str] = []
    for folder in dict.fromkeys(RunFolder(run).beside().resolve() / CLAIMS for run in runs):
        for path in sorted(folder.glob("*.yaml")):
            if any(path.stem == paper.name for paper in known):
                wrong.append(
                    f"{path}: found the name of a file of {FOLDER.parent.name}/{FOLDER.name}/; "
                    "expected another name. Rename the file."
                )
            elif path.stem not in papers_beside:
                try:
                    papers_beside[path.stem] = load(path)
                except ScenarioError as error:
                    wrong.append(str(error))
    return sorted(papers_beside.values(), key=lambda paper: (paper.file.year, paper.name)), wrong


def _problems(file: ClaimsFile, path: Path) -> Iterator[Problem]:
    """Errors between the parts of the file and of the project: ids used twice, series and figures that do not exist."""
    # A user's own figures lie beside the scenario, as the folder of the claims does, or beside the file.
    folders = (RECIPES, *(beside / "figures" for beside in path.resolve().parents[:2]))
    figures = [recipe.stem for folder in folders for recipe in recipe_files(folder)]
    seen: set[str] = set()
    for index, claim in enumerate(file.claims):
        if claim.id in seen:
            yield Problem(("claims", index, "id"), f'"{claim.id}" a second time', "an id once", "Choose another one.")
        seen.add(claim.id)
        if claim.figure is not None and claim.figure not in figures:
            yield Problem(("claims", index, "figure"), f'"{claim.figure}"', *choice(claim.figure, figures))
        for number, check in enumerate(claim.checks):
            for operand in check.operands():
                if operand.series not in file.series:
                    found = f'the series "{operand.series}"'
                    yield Problem(("claims", index, "checks", number), found, *choice(operand.series, file.series))


def load_contradictions(papers: Sequence[Paper], path: Path = CONTRADICTIONS) -> tuple[Contradiction, ...]:
    """Reads the file of contradictions between the papers.

    Raises:
        ScenarioError: all errors of the file, including claims that no paper has.
    """
    file, places = load_document(path, CONTRADICTIONS_FORM, ContradictionsFile)
    known = [f"{paper.name}/{claim.id}" for paper in papers for claim in paper.file.claims]
    wrong = [
        Problem(("contradictions", index, "claims", number), f'"{name}"', *choice(name, known))
        for index, item in enumerate(file.contradictions)
        for number, name in enumerate(item.claims)
        if name not in known
    ]
    if wrong:
        raise places.error(wrong)
    return file.contradictions


def strange_words(paper: Paper, evidence: Evidence) -> Iterator[Problem]:
    """Scenarios that do not exist, columns that the runs of a series do not have, and axes whose values are words."""
    beside = [path.stem for folder in paper.places.path.resolve().parents[:2] for path in folder.glob("*.yaml")]
    known = sorted({*names(), *beside, *(row.scenario for row in evidence.rows)})
    columns: dict[str, set[str]] = {}
    of_series: dict[str, list[EvidenceRow]] = {}
    for name, series in paper.file.series.items():
        for number, pattern in enumerate(series.scenarios):
            if not any(fnmatchcase(scenario, pattern) for scenario in known):
                yield Problem(("series", name, "scenarios", number), f'"{pattern}"', *choice(pattern, known))
        of_series[name] = [row for row in evidence.rows if series.has(row.scenario)]
        columns[name] = {column for row in of_series[name] for column in row.values}
        for word in series.where:
            yield from _unknown(("series", name, "where", word), [word], columns[name])
    for index, claim in enumerate(paper.file.claims):
        for number, check in enumerate(claim.checks):
            metric, along = getattr(check, "metric", None), getattr(check, "along", None)
            at = ("claims", index, "checks", number)
            for operand in check.operands():
                words = [*check.every, *operand.at, *filter(None, [operand.metric or metric, along])]
                yield from _unknown(at, words, columns[operand.series])
                found = {row.values.get(along, "") for row in of_series[operand.series]} - {""} if along else set()
                if found and all(axis_number(text) is None for text in found):
                    said = f'the axis "{along}", whose values are words such as "{min(found)}"'
                    yield Problem(at, said, "numbers", "Name another axis in `along`.")


def _unknown(at: KeyPath, words: Iterable[str], columns: set[str]) -> Iterator[Problem]:
    if columns:
        strange = (word for word in words if word not in columns)
        yield from (Problem(at, f'"{word}"', *choice(word, sorted(columns))) for word in strange)
