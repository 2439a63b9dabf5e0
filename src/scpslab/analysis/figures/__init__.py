"""Figures: recipes (analysis/figures/*.yaml) and records in, PNG and SVG out.

Order of reading: recipe.py (the form of a recipe, and what is said around its picture), plots/ (the kinds of pictures,
and how a recipe is read), source.py (the data of a figure), canvas.py (the looks), drawing.py (which figures a run has,
and their files).

Here is what need not be drawn again: pictures that still show what they were drawn from. The file `drawn.json` beside
them holds a digest of everything that a drawing reads, and one of each picture. It holds no times, so that pictures
that are drawn again have the same record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from scpslab.analysis.figures.recipe import RECIPES
from scpslab.core.contents import sha256_of
from scpslab.core.errors import ResultError
from scpslab.core.folders import own_folder
from scpslab.core.project import CARRIED, PACKAGE
from scpslab.core.scratch import replace_text
from scpslab.runs import RunFolder
from scpslab.runs.run import json_object

FILE = "drawn.json"
# Another version of these may draw other bytes.
LIBRARIES = ("matplotlib", "numpy", "pillow")
OUTPUTS = (".png", ".svg", ".pdf")


def draw(
    run_dir: Path,
    names: Sequence[str] | None = None,
    *,
    cells: Sequence[str] = (),
    formats: Sequence[str] = ("png", "svg"),
    models: Sequence[str] = (),
    warn: Callable[[str], None] | None = None,
) -> list[Path]:
    """See `scpslab.analysis.figures.drawing.draw`.

    Without names and cells, pictures that still show the run as it is are returned as they are.
    """
    drawing = None if names or cells else Drawing.of(run_dir, (formats, models))
    if drawing is not None and (pictures := drawing.pictures()) is not None:
        return pictures
    # Takes a second to import: not for commands that draw nothing.
    from scpslab.analysis.figures import drawing as drawer  # noqa: PLC0415 (the reason stands above)

    warnings: list[str] = []

    def note(text: str) -> None:
        warnings.append(text)
        (warn or drawer.refuse)(text)

    paths = drawer.draw(run_dir, names, cells=cells, formats=formats, models=models, warn=note)
    # What was warned of is said again the next time.
    if drawing is not None and not warnings:
        drawing.keep(paths)
    return paths


@dataclass(frozen=True)
class Drawing:
    """A drawing of all figures of a run: where its pictures lie, and the digest of what it reads."""

    folder: Path
    inputs: str

    @classmethod
    def of(cls, run_dir: Path, options: Sequence[Sequence[str]]) -> Drawing:
        """The drawing of a run with these options, such as formats.

        Raises:
            ResultError: there is no run.
        """
        run = RunFolder(run_dir)
        said = [options, [version(name) for name in LIBRARIES], run.manifest().scenario]
        digest = hashlib.sha256(json.dumps(said).encode())
        for root in (PACKAGE, RECIPES.parent, run.beside() / run.figures.name, run.resolved, run.results, run.cells):
            digest.update(_digest(root))
        return cls(run.figures, digest.hexdigest())

    def pictures(self) -> list[Path] | None:
        """The pictures, in the order in which they were drawn; None if one is missing, is not as it was drawn, or shows
        other inputs.
        """
        try:
            record = json_object(self.folder / FILE)
        except ResultError:
            return None
        drawn = record.get("pictures")
        if record.get("inputs") != self.inputs or not isinstance(drawn, dict):
            return None
        paths = [self.folder / Path(name).name for name in drawn]
        found = [sha256_of(path) if path.is_file() else None for path in paths]
        return paths if found == [*drawn.values()] else None

    def keep(self, pictures: Sequence[Path]) -> None:
        """Records the pictures that were drawn."""
        own_folder(self.folder)
        record = {"inputs": self.inputs, "pictures": {path.name: sha256_of(path) for path in pictures}}
        replace_text(self.folder / FILE, json.dumps(record, indent=1) + "\n")


def _digest(root: Path) -> bytes:
    """Of the files below a folder, or of the file itself: compiled code does not count, nor pictures, which are no
    inputs, nor the project's other files, which the package of an installation holds too.
    """
    digest = hashlib.sha256()
    for path in [root] if root.is_file() else sorted(root.rglob("*")):
        is_other = "__pycache__" in path.parts or (root == PACKAGE and path.is_relative_to(CARRIED))
        if path.is_file() and not is_other and path.suffix not in OUTPUTS and path.name != FILE:
            digest.update(f"{path.relative_to(root)}\0{sha256_of(path)}\n".encode())
    return digest.digest()
