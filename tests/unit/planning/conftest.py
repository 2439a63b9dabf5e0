"""Plans of the small scenario, changed here and there."""

from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.plan import write
from scpslab.scenario import planning

SMALL = (Path(__file__).parents[2] / "data" / "small-scenario.yaml").read_text()


@pytest.fixture
def plans(tmp_path):
    """Cell id to plan of the small scenario after replacements (pairs of old and new text) and overrides."""

    def make(*changes: tuple[str, str], overrides: tuple[str, ...] = ()):
        text = SMALL
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        path = tmp_path / "small.yaml"
        path.write_text(text)
        return {cell.id: write(planning.plan(cell)) for cell in scenario.cells(scenario.load(str(path), overrides))}

    return make


@pytest.fixture
def first(plans):
    """The first plan of the small scenario after overrides."""
    return lambda *overrides: next(iter(plans(overrides=overrides).values()))
