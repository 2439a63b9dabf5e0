"""What a worker does with an order: it runs the cells of its own build, and says why it does not run others."""

import io
import json

import pytest
import yaml

from scpslab import scenario
from scpslab.core.errors import ResultError, UsageError
from scpslab.engine import ENGINES, CellSample
from scpslab.engine.console import read
from scpslab.running import remote
from scpslab.runs.store import unpack
from scpslab.scenario import planning
from tests import golden
from tests.cases import refusal


@pytest.fixture
def plans(run_fake):
    """The plans of a run, which has also put the fake engine in its place."""
    run_fake()
    return {cell.id: planning.plan(cell) for cell in scenario.cells(scenario.load("links/transfer"))}


@pytest.fixture
def benches(tmp_path):
    return remote.Benches(tmp_path)


def carried_out(benches, plans, run="run", engine=None, log=lambda *_said: None):
    order = remote.order(run, plans, engine or ENGINES["virtual"]())
    return remote.read_answer(benches.carry_out(order, log), list(plans))


def test_results_come_packed_and_leave_nothing(plans, benches, tmp_path):
    answer = carried_out(benches, plans)
    assert [given.cell for given in answer.cells] == list(plans)
    unpack(io.BytesIO(answer.cells[0].content), tmp_path / "cell")
    assert json.loads((tmp_path / "cell" / "plan.json").read_text())["cell"]["id"] == next(iter(plans))
    benches.stop("run")
    assert [path.name for path in tmp_path.glob("scpslab-*")] == []


def test_another_build_is_refused(plans, benches):
    class Other(ENGINES["virtual"]):
        def hash(self, plan):
            return "other"

    answer = carried_out(benches, plans, engine=Other())
    assert answer.cells == ()
    assert "found another lab program or SCPS stack" in answer.trouble


def test_a_run_that_was_stopped_begins_no_cell(plans, benches):
    benches.stop("over")
    assert carried_out(benches, plans, "over") == remote.Answer(())


def test_trouble_ends_the_batch(plans, benches, monkeypatch):
    def full(engine, cell):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ENGINES["virtual"], "run", full)
    assert carried_out(benches, plans) == remote.Answer((), "[Errno 28] No space left on device")


@pytest.mark.parametrize(("apart_s", "heard"), [(0.0, 6), (60.0, 1)])
def test_samples_of_cells_are_logged_now_and_then(plans, benches, monkeypatch, apart_s, heard):
    """The first is; a scheduler with many workers could not pass on all."""
    monkeypatch.setattr(remote, "SAMPLE_S", apart_s)
    run, logged = ENGINES["virtual"].run, []

    def talking(engine, cell):
        for t_s in (0.5, 1.5):
            cell.hear(CellSample(t_s, "transfer", {"bytes_acked": 7}))
        return run(engine, cell)

    monkeypatch.setattr(ENGINES["virtual"], "run", talking)
    answer = carried_out(benches, plans, log=lambda *said: logged.append(said))

    assert len(answer.cells) == len(plans) == 3
    assert [(topic, cell) for topic, (cell, _) in logged] == [("scpslab-run", cell) for cell in plans for _ in "12"][
        :heard
    ]
    said = [read(line.encode(), frozenset({"transfer"})) for _, (_, line) in logged]
    assert said == [CellSample(t_s, "transfer", {"bytes_acked": 7}) for _ in plans for t_s in (0.5, 1.5)][:heard]


def test_a_batch_that_has_become_large_ends(plans, benches, monkeypatch):
    monkeypatch.setattr(remote, "MOST_BYTES", 10)
    assert len(carried_out(benches, plans).cells) == 1


@golden.each("answer of a worker", "case given")
def test_an_answer_is_what_a_worker_of_ours_writes(case, given):
    case.hold(refusal(remote.read_answer, given.encode(), ["r1"], error=ResultError))


def test_an_object_of_python_is_no_answer(told):
    told("answer of a worker that is no text", "an object", remote.read_answer, {"cells": []}, ["r1"])
    told("answer of a worker that is no text", "nothing", remote.read_answer, b"", ["r1"])


def test_an_answer_says_what_the_worker_gave():
    given = remote.Answer((remote.Given("r1", b"one\n", 1.5), remote.Given("r3", b"", 0.0)), "found no room")
    assert remote.read_answer(remote.pack_answer(given), ["r1", "r3", "r4"]) == given


@golden.each("where cells run")
def test_what_was_asked_for_must_fit(case, run_fake):
    pytest.importorskip("distributed")
    case.hold(refusal(run_fake, **yaml.safe_load(case), error=UsageError))


def test_the_order_of_a_second_run_leaves_a_cell_that_runs_its_folder(plans, benches, monkeypatch):
    monkeypatch.setattr(remote, "IDLE_S", -1)
    run = ENGINES["virtual"].run
    folders = []

    def slow(engine, cell):
        if not folders:
            folders.append(cell.folder.parent)
            assert carried_out(benches, plans, "second").trouble is None
        assert folders[0].is_dir()
        run(engine, cell)

    monkeypatch.setattr(ENGINES["virtual"], "run", slow)
    assert carried_out(benches, plans, "first").trouble is None
    # Nothing runs any more: a third run's order closes both.
    monkeypatch.setattr(ENGINES["virtual"], "run", run)
    carried_out(benches, plans, "third")
    assert not folders[0].is_dir()
