"""A made-up kind of every sort in a copy of the project, and a cell with it: its traces are in the cell's files."""

from pathlib import Path

import pytest

from scpslab.setup import ensure_stack
from tests.lab.copied_tree import OF_SCENARIOS, CopiedTree, NewKind, built_parts


@pytest.fixture
def cache(engine, tmp_path: Path) -> Path:
    """What is built, in a cache of the copy's own, the SCPS stack too: compiling it would pass the time limit."""
    ensure_stack(print)
    # What a copy makes for itself, and nobody else needs.
    return built_parts(tmp_path / "cache", without=("results", "lab"))


@pytest.mark.parametrize("sort", OF_SCENARIOS)
def test_a_cell_with_a_kind_from_files_of_its_own_does_what_the_kind_says(sort: str, cache: Path, tmp_path: Path):
    kind = NewKind(sort)
    tree = CopiedTree(tmp_path / "tree", kind)
    done = tree.scpslab("run", str(kind.alone(tmp_path / "mine")), "--out", str(tmp_path / "runs"), cache=cache)

    assert done.returncode == 0, done.stderr
    assert kind.untrue(Path(done.stdout.splitlines()[-1])) == []
