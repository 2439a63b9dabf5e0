"""Cells are carried out longest first, those of one network one after the other; cells with one key run once."""

import json

import pytest

from scpslab import scenario
from scpslab.engine.uml import no_network
from scpslab.running import run_campaign
from scpslab.running.order import batches, in_order
from scpslab.scenario import planning

NETWORKS = {name: no_network({"wall_s": 60, "memory_mib": mib}) for name, mib in (("a", 256), ("b", 512), ("c", 1024))}


@pytest.mark.parametrize(("jobs", "expected"), [(1, "a3 a1 b2 b1 c1"), (2, "a3 b2 a1 b1 c1"), (8, "a3 b2 c1 a1 b1")])
def test_longest_first_and_as_many_networks_at_a_time_as_jobs(jobs, expected):
    costs_s = {"b1": 1.0, "a1": 1.5, "c1": 0.5, "b2": 2.0, "a3": 3.0}
    plans = {name: NETWORKS[name[0]] for name in costs_s}
    assert in_order(plans, costs_s, jobs) == expected.split()


@pytest.mark.parametrize("most_s", [0, 3, 1e9])
def test_batches_hold_every_cell_once_and_are_no_longer_than_asked(most_s):
    plans = {cell.id: planning.plan(cell) for cell in scenario.cells(scenario.load("fy97/fig04:kernel-demo"))}
    found = list(batches(plans, most_s))
    assert sorted(cell for batch in found for cell in batch) == sorted(plans)
    assert all(
        len(batch) == 1 or sum(planning.expected(plans[cell]).wall_s for cell in batch) <= most_s for batch in found
    )
    assert (max(map(len, found)) == 1) == (most_s == 0)


def test_a_cell_of_two_runs_is_carried_out_once(run_fake, tmp_path):
    """The other one takes its result, and both runs are whole."""
    (tmp_path / "campaign.yaml").write_text(
        "kind: campaign\nversion: 1\ntitle: Twice\nruns:\n  - {scenario: links/transfer}\n"
        "  - {scenario: links/transfer, set: {title: Again}}\n"
    )
    result = run_fake(str(tmp_path / "campaign.yaml"), run=run_campaign)

    facts = json.loads((result.folder / "campaign.json").read_text())
    assert (facts["cells"], facts["cells_from_cache"]) == (6, 3)
    assert len({run.folder for run in result.runs}) == 2
    assert [run.incomplete for run in result.runs] == [3, 3]
