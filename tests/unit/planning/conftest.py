"""Plans of the small scenario, changed here and there."""

import pytest

from scpslab.plan import write as written
from scpslab.scenario import planning
from tests.cases import changed


@pytest.fixture
def plans(cells, small):
    """Cell id to plan of the small scenario after replacements (pairs of old and new text) and overrides."""

    def make(*changes: tuple[str, str], overrides: tuple[str, ...] = ()):
        return {cell.id: written(planning.plan(cell)) for cell in cells(changed(small, *changes), *overrides)}

    return make


@pytest.fixture
def first(plans):
    """The first plan of the small scenario after overrides."""
    return lambda *overrides: next(iter(plans(overrides=overrides).values()))
