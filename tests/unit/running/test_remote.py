"""What a worker does with an order: it runs the cells of its own build, and says why it does not run others."""

from __future__ import annotations

import io
import json

import pytest

from scpslab import planning, scenario
from scpslab.engine import ENGINES
from scpslab.running import remote
from scpslab.running.build import Build
from scpslab.running.store import WRITING, Store, cell_key, packed, unpack


@pytest.fixture
def plans(run_fake):
    """The plans of a run, which has also put the fake engine in its place."""
    run_fake()
    return {cell.id: planning.plan(cell) for cell in scenario.cells(scenario.load("links/transfer"))}


def ordered(plans, tmp_path, **changes):
    made = remote.order("run", plans, Build.of(plans, ENGINES["virtual"]()), engine="virtual", snapshots=True, token="")
    return remote.carry_out(made | changes, str(tmp_path))


def test_results_come_packed_and_leave_nothing(plans, tmp_path):
    answer = ordered(plans, tmp_path)
    assert [cell for cell, _, _ in answer["cells"]] == list(plans)
    unpack(io.BytesIO(answer["cells"][0][1]), tmp_path / "cell")
    assert json.loads((tmp_path / "cell" / "plan.json").read_text())["cell"]["id"] == next(iter(plans))
    remote.stop("run")
    assert [path.name for path in tmp_path.glob("scpslab-*")] == []


def test_another_build_is_refused(plans, tmp_path):
    class Other(ENGINES["virtual"]):
        def hash(self, plan):
            return "other"

    answer = ordered(plans, tmp_path, build=str(Build.of(plans, Other())))
    assert answer["cells"] == []
    assert "found another lab program or SCPS stack" in answer["refused"]


def test_a_run_that_was_stopped_begins_no_cell(plans, tmp_path):
    remote.stop("over")
    assert ordered(plans, tmp_path, run="over") == {"cells": []}


def test_trouble_says_where(plans, tmp_path, monkeypatch):
    def full(engine, cell):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ENGINES["virtual"], "run", full)
    answer = ordered(plans, tmp_path, run="full")
    assert answer == {"cells": [], "trouble": "found [Errno 28] No space left on device", "at": next(iter(plans))}


def test_a_batch_that_has_become_large_ends(plans, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "MOST_BYTES", 10)
    assert len(ordered(plans, tmp_path, run="large")["cells"]) == 1


def test_a_result_travels_where_the_shared_store_has_another_one(plans, tmp_path, monkeypatch):
    store = Store(tmp_path / "store")
    (store.root / WRITING).mkdir(parents=True)
    mark = store.root / WRITING / "mark"
    mark.touch()
    monkeypatch.setenv("SCPSLAB_STORE", str(store.root))
    lie, *others = plans
    (tmp_path / "lie").mkdir()
    (tmp_path / "lie" / "plan.json").write_text("{}")
    store.put(cell_key(plans[lie], "fake"), packed(tmp_path / "lie"))

    answer = ordered(plans, tmp_path, run="shared", token=mark.name)

    results = {cell: content for cell, content, _ in answer["cells"]}
    assert [cell for cell, content in results.items() if content is None] == others
    assert all(store.has(cell_key(plans[cell], "fake"), packed(tmp_path / "lie")) == (cell == lie) for cell in plans)
    unpack(io.BytesIO(results[lie]), tmp_path / "cell")
    assert json.loads((tmp_path / "cell" / "plan.json").read_text())["cell"]["id"] == lie
