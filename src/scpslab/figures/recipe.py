"""Figure recipes: what is drawn, from which runs, with which marks from the papers. Data, read from analysis/figures/*.yaml.

A recipe may extend one base (a file whose name starts with "_", which is never drawn by itself); a base extends nothing.
Keys that the recipe states win, `x` and `y` are merged key by key, everything else is replaced whole.
"""

from __future__ import annotations

import difflib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scpslab.errors import ScenarioError, UsageError

RECIPES = Path(__file__).resolve().parents[3] / "analysis" / "figures"
MERGED_KEYS = ("x", "y")

AxisValue: TypeAlias = str | int | float


class Strict(BaseModel):
    """No unknown keys, no change after loading."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class AxisStyle(Strict):
    """One axis of a picture: label with unit, scale, and limits (None: from the values). `divide` brings a swept value from base units to the label's."""

    label: str
    divide: float = 1.0
    scale: Literal["linear", "log"] = "linear"
    min: float | None = None
    max: float | None = None


class PaperSeries(Strict):
    """Values that a paper states, drawn as marks: [x, y] pairs, with the place in the paper where each stands or follows from."""

    label: str
    source: str
    points: tuple[tuple[float, float], ...]
    is_upper_bound: bool = False


class Recipe(Strict):
    """What every recipe says. `source` names the figure of a paper that this one re-draws; `applies_to` are scenario name patterns."""

    kind: Literal["figure"]
    version: Literal[1]
    name: Annotated[str, Field(min_length=1)]
    plot: str
    title: str
    source: str
    applies_to: tuple[str, ...] = ()
    x: AxisStyle
    y: AxisStyle

    def applies(self, scenario: str) -> bool:
        """Whether `scpslab plot` draws this figure for runs of the scenario without being asked."""
        return any(fnmatchcase(scenario, pattern) for pattern in self.applies_to)


def load(path: Path, models: dict[str, type[Recipe]]) -> Recipe:
    """Reads one recipe, its base merged in; `models` says which fields each `plot` has.

    Raises:
        ScenarioError: all that is wrong with the file.
    """
    fields = _fields(path)
    base_name = fields.pop("extends", None)
    if base_name is not None:
        base_path = path.parent / f"_{base_name}.yaml"
        if not base_path.is_file():
            raise ScenarioError(f'{path}: extends: found "{base_name}"; expected a base, which is a file {base_path.name} beside it.')
        base = _fields(base_path)
        if "extends" in base:
            raise ScenarioError(f"{base_path}: extends: found a base that extends another; expected one level.")
        for key in MERGED_KEYS:
            if isinstance(base.get(key), dict) and isinstance(fields.get(key), dict):
                fields[key] = base[key] | fields[key]
        fields = base | fields
    plot = fields.get("plot")
    model = models.get(plot) if isinstance(plot, str) else None
    if model is None:
        raise ScenarioError(f'{path}: plot: found "{plot}"; expected one of {", ".join(sorted(models))}.')
    try:
        return model.model_validate({"name": path.stem, **fields})
    except ValidationError as error:
        wrong = [f"{path}: {'.'.join(str(part) for part in item['loc'])}: {item['msg']} (found {item['input']!r})." for item in error.errors()]
        raise ScenarioError("\n".join(wrong)) from error


def load_all(models: dict[str, type[Recipe]], folder: Path = RECIPES) -> dict[str, Recipe]:
    """Every recipe of a folder by name, in the order of the names.

    Raises:
        ScenarioError: see `load`.
    """
    paths = sorted(path for path in folder.glob("*.yaml") if not path.name.startswith("_"))
    return {path.stem: load(path, models) for path in paths}


def named(recipes: dict[str, Recipe], name: str) -> Recipe:
    """The recipe of that name.

    Raises:
        UsageError: there is none; the message has the nearest names.
    """
    if name not in recipes:
        near = difflib.get_close_matches(name, recipes, n=3) or list(recipes)
        raise UsageError(f"--figure {name}: found no such recipe; expected one of {', '.join(near)}. All are in {RECIPES.parent.name}/{RECIPES.name}/.")
    return recipes[name]


def _fields(path: Path) -> dict[str, Any]:
    try:
        fields = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ScenarioError(f"{path}: {error}; expected a figure recipe in YAML.") from error
    if not isinstance(fields, dict):
        raise ScenarioError(f"{path}: found {type(fields).__name__}; expected a figure recipe: keys and values.")
    return fields
