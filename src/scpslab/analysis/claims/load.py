"""Reads files of claims, and reports their errors with the line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scpslab.analysis.claims.model import ClaimsFile
from scpslab.analysis.figures.recipe import RECIPES, recipe_files
from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError
from scpslab.core.project import ROOT
from scpslab.documents import Complaint, Form, Places
from scpslab.documents import load as load_document
from scpslab.runs import RunFolder
from scpslab.runs.run import CLAIMS

FOLDER = ROOT / "analysis" / "claims"
FORM = Form("a claims", "kind, title, series, claims", "docs/claims.md")
# The questions that the papers left open, as statements of the same form.
QUESTIONS = FOLDER.parent / "questions"


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
    found: dict[str, Paper] = {}
    wrong: list[str] = []
    for folder in dict.fromkeys(RunFolder(run).beside().resolve() / CLAIMS for run in runs):
        for path in sorted(folder.glob("*.yaml")):
            if any(path.stem == paper.name for paper in known):
                wrong.append(
                    f"{path}: found the name of a file of {FOLDER.parent.name}/{FOLDER.name}/; "
                    "expected another name. Rename the file."
                )
            elif path.stem not in found:
                try:
                    found[path.stem] = load(path)
                except ScenarioError as error:
                    wrong.append(str(error))
    return sorted(found.values(), key=lambda paper: (paper.file.year, paper.name)), wrong


def _problems(file: ClaimsFile, path: Path) -> Iterator[Complaint]:
    """Errors between the parts of the file and of the project: ids used twice, series and figures that do not exist."""
    # A user's own figures lie beside the scenario, as the folder of the claims does, or beside the file.
    folders = (RECIPES, *(beside / "figures" for beside in path.resolve().parents[:2]))
    figures = [recipe.stem for folder in folders for recipe in recipe_files(folder)]
    seen: set[str] = set()
    for index, claim in enumerate(file.claims):
        if claim.id in seen:
            yield ("claims", index, "id"), f'found "{claim.id}" a second time; expected an id once. Choose another one.'
        seen.add(claim.id)
        if claim.figure is not None and claim.figure not in figures:
            yield ("claims", index, "figure"), f'found "{claim.figure}"; {one_of(claim.figure, figures)}'
        for number, check in enumerate(claim.checks):
            for operand in check.operands():
                if operand.series not in file.series:
                    yield (
                        ("claims", index, "checks", number),
                        f'found the series "{operand.series}"; {one_of(operand.series, file.series)}',
                    )
