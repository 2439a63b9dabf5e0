"""Shards and their merge: the same bytes as a run on one machine, and every way in which shards do not belong together."""

from __future__ import annotations

import json
import shutil

import pytest

from scpslab import planning, scenario
from scpslab.errors import CapabilityError, ResultError, UsageError
from scpslab.running import run_campaign
from scpslab.running.build import Build
from scpslab.running.merge import merge
from scpslab.running.parts import cut
from scpslab.running.shard import Shard

NAME = "links/transfer"
OTHER = ["workloads.transfer.size=20 kB"]
DIFFER = ("machine", "program", "took_s", "wall_s")


def files(folder):
    """The bytes of all files of a run, by path; the manifest without what may differ."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}
    manifest = json.loads(found["manifest.json"])
    return found | {"manifest.json": json.dumps({key: value for key, value in manifest.items() if key not in DIFFER})}


@pytest.fixture
def shards(run_fake):
    return [run_fake(NAME, shard=Shard(number, 3)).folder for number in (1, 2, 3)]


@pytest.mark.parametrize("of", [1, 2, 5])
def test_a_merged_run_has_the_bytes_of_a_local_one(run_fake, tmp_path, of):
    parts = [run_fake(NAME, shard=Shard(number, of), out=tmp_path / "cluster").folder for number in range(1, of + 1)]
    whole = run_fake(NAME).folder

    (merged,) = merge(parts[::-1])

    assert merged == tmp_path / "cluster" / whole.name
    assert files(merged) == files(whole)
    assert merge(parts) == [merged]


def test_a_merged_campaign_is_a_local_one(run_fake, tmp_path, monkeypatch):
    (tmp_path / "both.yaml").write_text("kind: campaign\nversion: 1\ntitle: Two\nruns:\n- {scenario: links/transfer}\n- {scenario: links/round-trip}\n")
    file = str(tmp_path / "both.yaml")
    parts = [run_fake(file, run=run_campaign, shard=Shard(number, 2), out=tmp_path / "cluster").folder for number in (1, 2)]
    whole = run_fake(file, run=run_campaign).folder

    *runs, campaign = merge(parts)

    assert [files(run) for run in runs] == [files(tmp_path / "runs" / run.name) for run in runs]
    assert campaign.name == whole.name
    local, merged = (json.loads((folder / "campaign.json").read_text()) for folder in (whole, campaign))
    assert {**merged, "wall_s": 0, "cells_from_cache": 0, "virtual_s": 0} == {**local, "wall_s": 0, "cells_from_cache": 0, "virtual_s": 0}
    assert sorted(path.name for path in campaign.iterdir() if path.is_symlink()) == sorted(run.name for run in runs)


def test_every_cell_is_in_one_part_and_networks_stay_together():
    plans = {cell.id: planning.plan(cell) for cell in scenario.cells(scenario.load("fy97/fig04:kernel-demo"))}
    for parts in (1, 3, len(plans), 4 * len(plans)):
        found = cut(plans, parts)
        assert len(found) == parts
        assert sorted(cell for part in found for cell in part) == sorted(plans)
    sizes = [len(part) for part in cut(plans, 3)]
    assert min(sizes) > 0


@pytest.mark.parametrize("text", ["", "3", "0/2", "3/2", "1/0", "1/2/3", "a/b", "1/999999", "-1/2"])
def test_a_shard_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="expected k/n with 1 ≤ k ≤ n"):
        Shard.parse(text)


def changed(folder, **facts):
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | facts))


def refused(parts, words, error=ResultError):
    with pytest.raises(error) as caught:
        merge(parts)
    assert words in str(caught.value)


def test_missing_and_doubled_shards_are_named(shards, tmp_path):
    refused([shards[0]], "found 1 of 3 shards, not 2/3, 3/3")
    refused([*shards, shards[1]], "found shard 2/3 twice")
    assert not (tmp_path / "runs" / shards[0].name.removesuffix("-1-of-3")).exists()


def test_shards_of_another_run_are_refused(shards, run_fake):
    refused([*shards[:2], run_fake(NAME, overrides=OTHER, shard=Shard(3, 3)).folder], "found shards of different runs")
    refused([*shards[:2], run_fake(NAME, shard=Shard(3, 4)).folder], "found shards of 3 and of 4")
    refused([*shards[:2], run_fake(NAME).folder], "found a whole run; expected a shard")


def test_shards_of_another_build_are_refused(shards):
    fields = json.loads((shards[2] / "manifest.json").read_text())["shard"]
    changed(shards[2], shard=fields | {"build": fields["build"] | {"engine": "0" * 16}})
    refused(shards, "another lab program or SCPS stack (engine 0000000000000000 instead of")


def test_a_shard_that_did_not_end_is_to_be_run_again(shards):
    changed(shards[1], status="interrupted")
    refused(shards, 'Run "scpslab run links/transfer --shard 2/3": it resumes.')


def test_a_plan_that_was_changed_is_found(shards):
    full = next(folder for folder in shards if any((folder / "cells").iterdir()))
    plan = next(full.glob("cells/*/plan.json"))
    plan.write_text(plan.read_text().replace('"repeat": 1', '"repeat": 2'))
    refused(shards, "found a plan that is not the one that ran")


def test_a_cell_that_is_gone_is_found(shards):
    full = next(folder for folder in shards if any((folder / "cells").iterdir()))
    manifest = json.loads((full / "manifest.json").read_text())
    changed(full, cells={})
    refused(shards, "cells that are not all cells of the run")
    changed(full, cells=manifest["cells"])
    shutil.rmtree(next((full / "cells").iterdir()))
    refused(shards, "plan.json: found No such file")


def test_another_run_is_not_replaced(shards, tmp_path):
    target = tmp_path / "mine"
    target.mkdir()
    (target / "notes").write_text("mine")
    with pytest.raises(UsageError, match="found a folder with something else"):
        merge(shards, target)
    assert (target / "notes").read_text() == "mine"


def test_a_machine_of_another_build_refuses(run_fake):
    own = Build.parse("plans=0123456789abcdef,engine=0123456789abcdef")
    with pytest.raises(CapabilityError, match=r"found other plans .* another lab program"):
        run_fake(NAME, build=own)
    with pytest.raises(UsageError, match="--build: found"):
        Build.parse("engine=0123456789abcdef")
    assert Build.parse(str(own)) == own
