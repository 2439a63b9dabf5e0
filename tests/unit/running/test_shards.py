"""Shards: parts of a run on machines that know nothing of each other. Their joined stores are the run."""

import json
import shutil

import pytest

from scpslab import scenario
from scpslab.core.errors import UsageError
from scpslab.running import run_campaign
from scpslab.running.events import CellDone
from scpslab.running.shard import Shard, batches, cut
from scpslab.scenario import planning

NAME = "links/transfer"
DIFFER = ("machine", "program", "took_s", "wall_s")


def files(folder):
    """The bytes of all files of a run, by path; the manifest without what may differ."""
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
    manifest = json.loads(found["manifest.json"])
    return found | {"manifest.json": json.dumps({key: value for key, value in manifest.items() if key not in DIFFER})}


@pytest.mark.parametrize("of", [1, 2, 5])
def test_a_run_on_joined_stores_has_the_bytes_of_a_local_one(run_fake, tmp_path, monkeypatch, of):
    whole = run_fake(NAME, out=tmp_path / "local").folder
    for number in range(1, of + 1):
        monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / f"machine-{number}"))
        # A shard of few cells may have none, and its machine nothing to give.
        (tmp_path / f"machine-{number}" / "results").mkdir(parents=True)
        run_fake(NAME, shard=Shard(number, of), out=tmp_path / f"out-{number}")
        shutil.copytree(tmp_path / f"machine-{number}" / "results", tmp_path / "joined" / "results", dirs_exist_ok=True)
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "joined"))

    events = []
    merged = run_fake(NAME, listeners=[events.append]).folder

    assert files(merged) == files(whole)
    assert all(event.cached for event in events if isinstance(event, CellDone))


def test_shards_of_a_campaign_are_the_campaign(run_fake, tmp_path):
    (tmp_path / "both.yaml").write_text(
        "kind: campaign\nversion: 1\ntitle: Two\nruns:\n- {scenario: links/transfer}\n- {scenario: links/round-trip}\n"
    )
    file = str(tmp_path / "both.yaml")
    for number in (1, 2):
        run_fake(file, run=run_campaign, shard=Shard(number, 2))
    whole = json.loads((run_fake(file, run=run_campaign).folder / "campaign.json").read_text())
    assert whole["cells_from_cache"] == whole["cells"] > 0


def test_every_cell_is_in_one_part_and_networks_stay_together():
    plans = {cell.id: planning.plan(cell) for cell in scenario.cells(scenario.load("fy97/fig04:kernel-demo"))}
    for parts in (1, 3, len(plans), 4 * len(plans)):
        found = cut(plans, parts)
        assert len(found) == parts
        assert sorted(cell for part in found for cell in part) == sorted(plans)
    sizes = [len(part) for part in cut(plans, 3)]
    assert min(sizes) > 0


@pytest.mark.parametrize("most_s", [0, 3, 1e9])
def test_batches_hold_every_cell_once_and_are_no_longer_than_asked(most_s):
    plans = {cell.id: planning.plan(cell) for cell in scenario.cells(scenario.load("fy97/fig04:kernel-demo"))}
    found = list(batches(plans, most_s))
    assert sorted(cell for batch in found for cell in batch) == sorted(plans)
    assert all(
        len(batch) == 1 or sum(planning.expected(plans[cell]).wall_s for cell in batch) <= most_s for batch in found
    )
    assert (max(map(len, found)) == 1) == (most_s == 0)


@pytest.mark.parametrize("text", ["", "3", "0/2", "3/2", "1/0", "1/2/3", "a/b", "1/999999", "-1/2"])
def test_a_shard_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="expected k/n with 1 ≤ k ≤ n"):
        Shard.parse(text)
