"""An engine without labs for runs within this process, and scenarios of a test's own."""

import importlib.util
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.running import RunOptions, run_scenario
from scpslab.runs.store import Store
from scpslab.scenario import planning

HERE = Path(__file__).parent
DATA = HERE / "data"
# What a folder says of its tests.
MARKS = {HERE / "lab": "lab", HERE / "processes": "slow"}
PROGRAM = DATA / "run_with_fake_engine.py"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks tests by their folder."""
    for item in items:
        for folder, mark in MARKS.items():
            if item.path.is_relative_to(folder):
                item.add_marker(mark)


@pytest.fixture(autouse=True)
def rows_of_no_other_test(monkeypatch, tmp_path_factory):
    """Rows that a test damages, or derives by other code, are never in the user's cache."""
    monkeypatch.setattr("scpslab.analysis.table.own_store", lambda: Store(tmp_path_factory.mktemp("rows")))


@pytest.fixture
def run_fake(monkeypatch, tmp_path):
    """Runs a scenario (links/transfer) with the fake engine into tmp_path/runs; the cache is tmp_path/cache."""
    spec = importlib.util.spec_from_file_location("run_with_fake_engine", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.Fake.memory = tmp_path / "memory"
    module.Fake.memory.mkdir()
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("scpslab.running.runner.places", lambda: ())

    def run(name="links/transfer", *, repeats: bool = True, run=run_scenario, listeners=(), **options):
        monkeypatch.setattr(module.Fake, "deterministic", repeats)
        monkeypatch.setitem(run_scenario.__globals__["ENGINES"], "virtual", module.Fake)
        return run(name, RunOptions(**({"out": tmp_path / "runs", "jobs": 1} | options)), listeners)

    return run


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
