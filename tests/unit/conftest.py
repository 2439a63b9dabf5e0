"""Synthetic runs, whose model is tests/data/synthetic_run.py, and scenarios of a test's own."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from scpslab import scenario
from scpslab.scenario import planning

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """The generator of synthetic runs."""
    spec = importlib.util.spec_from_file_location("synthetic_run", DATA / "synthetic_run.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run_dir(tmp_path: Path, synthetic: ModuleType) -> Path:
    """A run of two stacks, three BERs and two repeats, one cell incomplete."""
    return synthetic.write_run(tmp_path / "fig04-golden-0002")


@pytest.fixture
def golden(tmp_path: Path, synthetic: ModuleType) -> Path:
    """A run with the committed table, which must not change without a reason."""
    folder: Path = synthetic.write_run(tmp_path / "golden" / "fig04-golden-0001")
    shutil.copyfile(DATA / "fig04-golden.csv", folder / "results.csv")
    return folder


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
