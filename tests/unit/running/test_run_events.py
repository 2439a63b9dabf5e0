"""Executors and listeners of one's own, the order in which events come, and what a campaign leaves behind."""

import io
import json
from typing import ClassVar

import pytest
from rich.console import Console

from scpslab import plan as plans
from scpslab.analysis.run import open_run
from scpslab.cli.progress import ConsoleProgress
from scpslab.core.errors import LabError, ResultError
from scpslab.engine import ENGINES
from scpslab.engine.base import Engine, Interrupted
from scpslab.lab.records import Status
from scpslab.running import RunOptions, run_campaign, run_scenario
from scpslab.running.events import (
    CampaignDone,
    CampaignFailed,
    CampaignInterrupted,
    CampaignStarted,
    CellDone,
    CellStarted,
    Note,
    RunDone,
    RunFailed,
    RunInterrupted,
    RunStarted,
    Tally,
)
from scpslab.running.executors import Executor
from scpslab.runs import find_run, runs_of

CELLS = ["delay=1ms,r1", "delay=25ms,r1", "delay=250ms,r1"]


class StepEngine(Engine):
    """Writes the files of a cell at once; `trouble` is what it raises at the cell `at`."""

    name, deterministic = "step", True
    at, trouble = "", None
    ran: ClassVar[list[str]] = []
    closed: ClassVar[list[int]] = []

    def prepare(self, say, plans):
        say("engine step: ready")

    def hash(self, plan):
        return "step"

    def run(self, cell):
        if cell.plan.cell.id == self.at:
            raise self.trouble
        self.ran.append(cell.plan.cell.id)
        cell.folder.mkdir(parents=True)
        status = Status("incomplete", "nothing was sent", epoch_realtime_ns=0, virtual_s=10.0)
        (cell.folder / "plan.json").write_text(plans.text(cell.plan))
        (cell.folder / "status.json").write_text(status.text())
        return status

    def stop(self):
        """Nothing runs."""

    def close(self):
        self.closed.append(len(self.ran))


class BackwardsExecutor(Executor):
    """Carries out the last cell first, in the caller's thread."""

    def run(self, engine, cells, reports):
        for cell_id in reversed(list(cells)):
            reports.started(cell_id)
            reports.ended(cell_id, engine.run(cells[cell_id]))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A made-up engine, registered; and a campaign of two small scenarios."""
    monkeypatch.setitem(ENGINES, "step", StepEngine)
    monkeypatch.setattr("scpslab.runs.store.cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(StepEngine, "at", "")
    monkeypatch.setattr(StepEngine, "ran", [])
    monkeypatch.setattr(StepEngine, "closed", [])
    campaign = tmp_path / "two.yaml"
    campaign.write_text(
        "kind: campaign\nversion: 1\ntitle: Two\nruns:\n  - {scenario: links/round-trip, variant: [test]}\n"
        "  - {scenario: links/loss, variant: [test], set: {repeats: 2}}\n  - {scenario: nowhere/*}\n"
    )
    return tmp_path


def options(place):
    return RunOptions(engine="step", out=place / "runs", jobs=1)


@pytest.fixture
def backwards(monkeypatch):
    monkeypatch.setattr(RunOptions, "made_executor", lambda options: BackwardsExecutor(options.jobs))


def words(events):
    """Events in short: their kind, and the cell of those that have one."""
    return [
        " ".join([type(event).__name__, *([event.cell] if isinstance(event, CellDone | CellStarted) else [])])
        for event in events
    ]


def trouble(monkeypatch, at, error):
    monkeypatch.setattr(StepEngine, "at", at)
    monkeypatch.setattr(StepEngine, "trouble", error)


@pytest.mark.usefixtures("backwards")
def test_a_campaign_is_run_by_an_executor_and_heard_of_by_a_listener_of_one_s_own(place):
    events = []

    result = run_campaign(str(place / "two.yaml"), options(place), [events.append])

    kinds = [type(event) for event in events]
    assert kinds[:2] == [Note, CampaignStarted]
    assert events[0].text.endswith("skipped nowhere/*, because no scenario has this name")
    assert kinds[-1] is CampaignDone
    assert kinds.count(RunStarted) == kinds.count(RunDone) == len(result.runs) == 2
    for run in result.runs:
        begun = next(event for event in events if isinstance(event, RunStarted) and event.folder == run.folder)
        mine = [event for event in events if getattr(event, "scenario", "") == begun.scenario]
        assert [type(mine[0]), type(mine[-1])] == [RunStarted, RunDone]
        assert words(mine[1:-1]) == [
            f"{kind} {cell}" for cell in reversed(begun.cells) for kind in ("CellStarted", "CellDone")
        ]
        assert (run.folder / "results.csv").is_file()
    assert (
        events[1].cells
        == sum(len(event.cells) for event in events if isinstance(event, RunStarted))
        == kinds.count(CellDone)
    )


def test_runs_of_a_campaign_share_an_engine(place):
    result = run_campaign(str(place / "two.yaml"), options(place))

    assert StepEngine.closed == [len(StepEngine.ran)] == [sum(run.incomplete for run in result.runs)]


def test_listeners_are_called_in_their_order_and_hear_of_results_that_were_there(place):
    heard = []
    run_scenario("links/transfer", options(place))
    listeners = [lambda event, name=name: heard.append((name, event)) for name in ("first", "second")]

    run_scenario("links/transfer", options(place), listeners)

    assert [name for name, _ in heard] == ["first", "second"] * (len(heard) // 2)
    events = [event for name, event in heard if name == "first"]
    assert words(events) == ["Note", "RunStarted", *(f"CellDone {cell}" for cell in CELLS), "RunDone"]
    assert all(event.cached for event in events if isinstance(event, CellDone))


def test_a_cell_is_begun_when_the_one_before_it_is_kept(place):
    kept = []

    def look(event):
        if isinstance(event, CellStarted):
            kept.append(len(list((place / "cache" / "results").glob("*/*.cell"))))

    run_scenario("links/transfer", options(place), [look])

    assert kept == [0, 1, 2]


@pytest.mark.parametrize(
    ("error", "executor", "first", "end"),
    [
        (Interrupted(), "place", CELLS[0], RunInterrupted),
        (KeyboardInterrupt(), "backwards", CELLS[2], RunInterrupted),
        (LabError("broken"), "place", CELLS[0], RunFailed),
    ],
)
def test_a_run_that_ends_early_says_so_last(request, place, monkeypatch, error, executor, first, end):
    request.getfixturevalue(executor)
    events, tally = [], Tally()
    trouble(monkeypatch, CELLS[1], error)

    with pytest.raises((KeyboardInterrupt, LabError)):
        run_scenario("links/transfer", options(place), [events.append, tally])

    begun = ["Note", "RunStarted", f"CellStarted {first}", f"CellDone {first}", f"CellStarted {CELLS[1]}"]
    assert words(events) == [*begun, end.__name__]
    assert (tally.done, tally.cached, tally.virtual_s) == (1, 0, 10.0)
    if end is RunFailed:
        assert str(events[-1].error) == "broken"
    else:
        assert json.loads((events[-1].folder / "manifest.json").read_text())["status"] == "interrupted"


@pytest.mark.parametrize(
    ("error", "ends"),
    [(Interrupted(), [RunInterrupted, CampaignInterrupted]), (LabError("broken"), [RunFailed, CampaignFailed])],
)
def test_a_campaign_ends_as_the_run_does_that_ended_it(place, monkeypatch, error, ends):
    events = []
    trouble(monkeypatch, "errors=independent,ber=1e-05,r1", error)

    with pytest.raises((KeyboardInterrupt, LabError)):
        run_campaign(str(place / "two.yaml"), options(place), [events.append])

    assert [type(event) for event in events][-2:] == ends
    assert json.loads((events[-1].folder / "campaign.json").read_text())["status"] == "interrupted"
    assert [type(event) for event in events].count(RunStarted) == 2


def test_what_ends_beside_a_broken_cell_is_kept_and_heard_of(place, monkeypatch):
    events = []
    trouble(monkeypatch, CELLS[0], LabError("broken"))

    with pytest.raises(LabError):
        run_scenario("links/transfer", RunOptions(engine="step", out=place / "runs", jobs=3), [events.append])

    done = {event.cell for event in events if isinstance(event, CellDone)}
    assert done <= set(CELLS[1:])
    for cell in done:
        assert (events[-1].folder / "cells" / cell / "status.json").is_file()


def test_a_run_notes_first_that_its_sweep_changes_nothing(place):
    heard = []
    (place / "idle.yaml").write_text(
        "kind: scenario\nversion: 1\ntitle: Idle\ntopology: point_to_point\nlinks: {hop: {forward: {errors: {model: "
        "none}}}}\nworkloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 1 kB}]\nsweep: {ber: {set: "
        "[links.hop.forward.errors.ber], values: [0, 1e-6]}}\n"
    )

    run_scenario(str(place / "idle.yaml"), options(place), [heard.append])

    assert heard[0].text.startswith(
        f'warning: {place / "idle.yaml"}:7: sweep: found one plan for "ber=0,r1", "ber=1e-06,r1"'
    )


def test_a_campaign_is_one_folder_with_links_to_its_runs_and_has_no_table(place, told):
    console = Console(file=io.StringIO(), width=200)
    result = run_campaign(str(place / "two.yaml"), options(place), [ConsoleProgress(console)])

    facts = json.loads((result.folder / "campaign.json").read_text())
    links = sorted(path.name for path in result.folder.iterdir() if path.is_symlink())
    assert (facts["status"], facts["cells"], facts["left_out"]) == ("completed", 4, ["nowhere/*"])
    assert [entry["scenario"] for entry in facts["runs"]] == ["links/round-trip:test", "links/loss:test"]
    assert all((result.folder / name / "results.csv").is_file() for name in links)
    assert len(links) == 2
    assert "skipped nowhere/*, because no scenario has this name" in console.file.getvalue()
    assert "[1/4] 2 of 2 links/loss:test" in console.file.getvalue()
    assert "[4/4] 1 of 2 links/round-trip:test" in console.file.getvalue()
    assert find_run("last", place / "runs") == result.folder
    assert len(runs_of([str(result.folder)])) == 2
    told("a campaign for a run", "open", lambda: open_run(result.folder), error=ResultError)


def test_an_interrupted_campaign_goes_on_where_it_stopped(place, monkeypatch):
    last = "delay=120ms,payload=1472B,r1"
    trouble(monkeypatch, last, Interrupted())
    with pytest.raises(KeyboardInterrupt):
        run_campaign(str(place / "two.yaml"), options(place))
    (file,) = (place / "runs").glob("*/campaign.json")
    assert json.loads(file.read_text())["status"] == "interrupted"
    monkeypatch.setattr(StepEngine, "at", "")
    StepEngine.ran.clear()

    result = run_campaign(str(place / "two.yaml"), options(place))

    assert result.folder == file.parent
    assert StepEngine.ran == [last]
    assert json.loads(file.read_text())["cells_from_cache"] == 3


def test_a_run_notes_last_which_captures_were_cut_short(place, monkeypatch):
    heard = []
    monkeypatch.setattr("scpslab.analysis.collect", lambda _folder, warn, _row: warn("found a capture that ends early"))
    run_scenario("links/transfer", options(place), [heard.append])
    assert (words(heard[-2:]), heard[-2].text) == (["Note", "RunDone"], "warning: found a capture that ends early")
