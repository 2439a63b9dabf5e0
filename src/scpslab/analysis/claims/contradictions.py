"""Contradictions between or within the papers: claims that cannot all hold, shown side by side
(analysis/contradictions.yaml).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from scpslab.analysis.claims.load import Paper
from scpslab.analysis.claims.model import Text
from scpslab.core.choices import one_of
from scpslab.core.project import ROOT
from scpslab.documents import Form, Part, key, load
from scpslab.documents.parts import Version

FILE = ROOT / "analysis" / "contradictions.yaml"
FORM = Form("a contradictions file", "kind, contradictions", "docs/claims.md")


class Contradiction(Part):
    """Claims that cannot all hold, and the probable reason."""

    title: Text = key(says="The question in dispute.", example="Does delay out to geostationary orbit cost anything?")
    says: Text = key(
        says="What each paper finds.", example="SmallSat 2000 finds no penalty, JZUS 2005 a significant one."
    )
    likely: Text = key(says="The probable reason for the difference.", example="The response to loss.")
    claims: Annotated[tuple[str, ...], Field(min_length=1)] = key(
        says="The claims, as PAPER/ID.", example=["smallsat2000/delay-3-vs-120-same"]
    )


class ContradictionsFile(Part):
    """All of them."""

    kind: Literal["contradictions"]
    version: Version
    contradictions: tuple[Contradiction, ...]


def load_contradictions(papers: Sequence[Paper], path: Path = FILE) -> tuple[Contradiction, ...]:
    """Reads the file.

    Raises:
        ScenarioError: all errors of the file, including claims that no paper has.
    """
    file, places = load(path, FORM, ContradictionsFile)
    known = [f"{paper.name}/{claim.id}" for paper in papers for claim in paper.file.claims]
    wrong = [
        (("contradictions", index, "claims", number), f'found "{name}"; {one_of(name, known)}')
        for index, item in enumerate(file.contradictions)
        for number, name in enumerate(item.claims)
        if name not in known
    ]
    if wrong:
        raise places.error(wrong)
    return file.contradictions
