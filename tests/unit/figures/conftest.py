"""What the tests of figures share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from scpslab.analysis.figures.plots import load
from scpslab.analysis.figures.recipe import RECIPES
from scpslab.analysis.figures.source import Source


@pytest.fixture
def drawn(run_dir: Path) -> Callable[..., Figure]:
    """Draws a recipe of the project for the run, some of its keys changed, and the cells wanted."""

    def draw(name: str, *cells: str, run: Path = run_dir, **keys: Any) -> Figure:
        return load(RECIPES / f"{name}.yaml").model_copy(update=keys).draw(Source(run, cells))

    return draw
