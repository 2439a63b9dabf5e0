"""The mark of a test, and scenarios of a test's own."""

import os
import time
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.core.errors import ScpslabError
from scpslab.runs.store import Store
from scpslab.scenario import planning
from tests import golden
from tests.cases import refusal

HERE = Path(__file__).parent
DATA = HERE / "data"
# What a folder says of its tests.
MARKS = {HERE / "lab": "lab", HERE / "processes": "slow"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks tests by their folder."""
    for item in items:
        for folder, mark in MARKS.items():
            if item.path.is_relative_to(folder):
                item.add_marker(mark)


def pytest_runtest_setup(item):
    """Begins no test after the moment that SCPSLAB_TESTS_UNTIL gives, in seconds since 1970 (.ci/run)."""
    if time.time() > float(os.environ.get("SCPSLAB_TESTS_UNTIL", "inf")):
        pytest.skip("NOT RUN: the time of .ci/run is over")


@pytest.fixture(autouse=True)
def rows_of_no_other_test(monkeypatch, tmp_path_factory):
    """Rows that a test damages, or derives by other code, are never in the user's cache."""
    monkeypatch.setattr("scpslab.analysis.table.own_store", lambda: Store(tmp_path_factory.mktemp("rows")))


@pytest.fixture
def told(tmp_path):
    """Holds what a call is refused with against a case of a family in the golden file; paths are below tmp_path."""

    def held(family, case, call, *given, error=ScpslabError, **named) -> str:
        return golden.Case(family, case).hold(refusal(call, *given, error=error, **named), tmp_path)

    return held


@pytest.fixture(scope="session")
def small() -> str:
    """The text of a small scenario."""
    return (DATA / "small-scenario.yaml").read_text()


@pytest.fixture
def write(tmp_path):
    """Writes text to small.yaml and returns the path."""

    def to_file(text: str | bytes) -> Path:
        path = tmp_path / "small.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return to_file


@pytest.fixture
def load(write):
    """Loads text as a scenario, cells included, after overrides."""

    def from_text(text: str | bytes, *overrides: str):
        loaded = scenario.load(str(write(text)), overrides)
        scenario.cells(loaded)
        return loaded

    return from_text


@pytest.fixture
def cells(write):
    """The cells of a scenario's text after overrides."""
    return lambda text, *overrides: scenario.cells(scenario.load(str(write(text)), overrides))


@pytest.fixture
def planned(cells):
    """The plan of the only cell of a scenario's text after overrides."""

    def of(text: str, *overrides: str):
        (cell,) = cells(text, *overrides)
        return planning.plan(cell)

    return of
