"""Reads files of claims; what is wrong in them is said with the line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scpslab.claims.model import ClaimsFile
from scpslab.scenario.complaints import validated
from scpslab.scenario.places import Places, one_of
from scpslab.scenario.yaml_lines import KeyPath, read_yaml

FOLDER = Path(__file__).resolve().parents[3] / "analysis" / "claims"
# What the papers left open, as statements of the same form.
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
        ScenarioError: everything that is wrong with it, a line each.
    """
    data, lines = read_yaml(path)
    places = Places(path, lines)
    file = validated(data, places, ClaimsFile)
    wrong = list(_problems(file))
    if wrong:
        raise places.error(wrong)
    return Paper(path.stem, file, places)


def load_all(folder: Path = FOLDER) -> list[Paper]:
    """Every file of a folder, oldest paper first.

    Raises:
        ScenarioError: see `load`.
    """
    return sorted((load(path) for path in folder.glob("*.yaml")), key=lambda paper: (paper.file.year, paper.name))


def _problems(file: ClaimsFile) -> Iterator[tuple[KeyPath, str]]:
    """What no single part of the file knows: ids twice, series that are not there."""
    seen: set[str] = set()
    for index, claim in enumerate(file.claims):
        if claim.id in seen:
            yield ("claims", index, "id"), f'found "{claim.id}" a second time; expected an id once. Choose another one.'
        seen.add(claim.id)
        for number, check in enumerate(claim.checks):
            for operand in check.operands():
                if operand.series not in file.series:
                    yield ("claims", index, "checks", number), f'found the series "{operand.series}"; {one_of(operand.series, file.series)}'
