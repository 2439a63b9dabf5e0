"""The recipes from which a run's figures are drawn: those of the project, and the user's own in the folder figures/
beside the scenario.

A file with a mistake costs what it says: the others are found all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scpslab.analysis.figures.plots import MODELS
from scpslab.analysis.figures.recipe import RECIPES, Recipe, load, near, recipe_files
from scpslab.core.errors import ScenarioError, UsageError
from scpslab.runs import RunFolder

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Found:
    """Recipes by name, and what is wrong with the files that are none.

    A recipe of the user's own hides one of the project's with its name.
    """

    recipes: dict[str, Recipe]
    broken: dict[str, ScenarioError]

    def named(self, name: str) -> Recipe:
        """The recipe of that name, or in the file of that path.

        Raises:
            ScenarioError: its file has mistakes.
            UsageError: there is no such recipe; the message has the nearest names.
        """
        if name.endswith(SUFFIXES) or "/" in name:
            return load(Path(name), MODELS, is_own=True)
        if name in self.broken:
            raise self.broken[name]
        if name not in self.recipes:
            raise UsageError(f"--figure {name}: found no such recipe; {near(name, self.recipes)}")
        return self.recipes[name]


def find(run_dir: Path) -> Found:
    """The recipes for a run: all of the project, and those beside its scenario."""
    found = Found({}, {})
    for folder, is_own in ((RECIPES, False), (RunFolder(run_dir).beside() / "figures", True)):
        for path in recipe_files(folder):
            found.recipes.pop(path.stem, None)
            try:
                found.recipes[path.stem] = load(path, MODELS, is_own=is_own)
            except ScenarioError as error:
                found.broken[path.stem] = error
    return found
