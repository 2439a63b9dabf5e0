"""An engine without labs for runs within this process."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from scpslab.running import RunOptions, run_scenario

PROGRAM = Path(__file__).parent / "data" / "run_with_fake_engine.py"


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
