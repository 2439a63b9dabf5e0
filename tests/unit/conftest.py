"""Synthetic runs; the model that makes them is tests/data/synthetic_run.py."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

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
