"""A small scenario to spoil, and ways to load text as one."""

from pathlib import Path

import pytest

from scpslab import scenario

SMALL = (Path(__file__).parents[2] / "data" / "small-scenario.yaml").read_text()


@pytest.fixture
def small() -> str:
    """The small scenario's text."""
    return SMALL


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
    """Loads text as a scenario, cells included."""

    def from_text(text: str | bytes, *overrides: str):
        loaded = scenario.load(str(write(text)), overrides)
        scenario.cells(loaded)
        return loaded

    return from_text
