"""Campaigns run with an engine that needs no kernel: one folder, links, resuming, one row of progress."""

from __future__ import annotations

import io
import json
from typing import ClassVar

import pytest
from rich.console import Console

from scpslab import plan as plans
from scpslab.analysis.run import open_run
from scpslab.cli.progress import ConsoleProgress
from scpslab.core.errors import ResultError
from scpslab.engine import ENGINES
from scpslab.engine.base import Engine, Interrupted
from scpslab.running import RunOptions, run_campaign
from scpslab.runs import find_run, runs_of


class PaperEngine(Engine):
    """Writes the files of a cell whose workloads did nothing."""

    name = "paper"
    deterministic = True
    ran: ClassVar[list[str]] = []
    stop_at = ""

    def prepare(self, say, plans=()):
        return "0" * 24

    def hash(self, plan):
        return "0" * 24

    def run(self, cell):
        cell_id = cell.plan.cell.id
        if self.stop_at == cell_id:
            raise Interrupted
        self.ran.append(cell_id)
        cell.folder.mkdir(parents=True)
        status = {"status": "incomplete", "reason": "nothing was sent", "virtual_s": 1800.0, "epoch_realtime_ns": 0}
        (cell.folder / "plan.json").write_text(plans.text(cell.plan))
        (cell.folder / "status.json").write_text(json.dumps(status))
        return status

    def stop(self):
        """Nothing runs."""


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """Two small scenarios, and the engine that runs them."""
    monkeypatch.setitem(ENGINES, "paper", PaperEngine)
    monkeypatch.setattr("scpslab.runs.store.cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(PaperEngine, "ran", [])
    path = tmp_path / "two.yaml"
    path.write_text(
        "kind: campaign\nversion: 1\ntitle: Two\nruns:\n"
        "  - {scenario: links/round-trip, variant: [test]}\n  - {scenario: links/loss, variant: [test], set: "
        "{repeats: 2}}\n  - {scenario: nowhere/*}\n"
    )
    console = Console(file=io.StringIO(), width=200)

    def run():
        return run_campaign(
            str(path), RunOptions(engine="paper", out=tmp_path / "runs", jobs=1), [ConsoleProgress(console)]
        ), console.file.getvalue()

    return run


def test_a_campaign_is_one_folder_with_links_to_its_runs(campaign, tmp_path):
    result, said = campaign()

    facts = json.loads((result.folder / "campaign.json").read_text())
    links = sorted(path.name for path in result.folder.iterdir() if path.is_symlink())
    assert (facts["status"], facts["cells"], facts["left_out"]) == ("completed", 4, ["nowhere/*"])
    assert [entry["scenario"] for entry in facts["runs"]] == ["links/round-trip:test", "links/loss:test"]
    assert all((result.folder / name / "results.csv").is_file() for name in links)
    assert len(links) == 2
    assert "skipped nowhere/*, because no scenario has this name" in said
    assert "[4/4] 2 of 2 links/loss:test" in said
    assert find_run("last", tmp_path / "runs") == result.folder
    assert len(runs_of([str(result.folder)])) == 2


def test_an_interrupted_campaign_goes_on_where_it_stopped(campaign, tmp_path, monkeypatch):
    monkeypatch.setattr(PaperEngine, "stop_at", "errors=independent,ber=1e-05,r2")
    with pytest.raises(KeyboardInterrupt):
        campaign()
    folder = next(path.parent for path in (tmp_path / "runs").glob("*/campaign.json"))
    assert json.loads((folder / "campaign.json").read_text())["status"] == "interrupted"
    monkeypatch.setattr(PaperEngine, "stop_at", "")
    before = len(PaperEngine.ran)

    result, _ = campaign()

    assert result.folder == folder
    assert PaperEngine.ran[before:] == ["errors=independent,ber=1e-05,r2"]
    assert json.loads((folder / "campaign.json").read_text())["cells_from_cache"] == 3


def test_a_campaign_has_no_table_of_its_own(campaign):
    result, _ = campaign()

    with pytest.raises(ResultError, match="found a campaign; expected one of its runs"):
        open_run(result.folder)
