"""Hosts that protect their segments by SCPS-SP: what plans say, the files that the lab makes, and what does not fit."""

import json
import stat
from pathlib import Path

import pytest

from scpslab.lab.scps_end import master_key, sp_file, why, write_sp
from scpslab.plan import parse, text, write
from scpslab.scenario import planning
from tests import golden
from tests.cases import changed, refusal

BASE = """kind: scenario
version: 1
title: SP
topology: fy97
hosts:
  ws1: {stack: scps, preset: fy97-rate, sp: {}}
  ws2: {stack: scps, preset: fy97-rate, sp: {}}
workloads:
- {kind: bulk, name: transfer, from: ws1, to: ws2, size: 400 kB}
- {kind: fp, name: file, from: ws1, to: ws2, size: 10 kB}
"""
A, B = "ws1: {stack: scps, preset: fy97-rate, sp: {}}", "ws2: {stack: scps, preset: fy97-rate, sp: {}}"


@pytest.fixture
def planned(cells):
    """Plans the scenario with words replaced: the last of its repeats."""
    return lambda *changes, repeat=1: planning.plan(cells(changed(BASE, *changes), f"repeats={repeat}")[-1])


class Node:
    """A network of one node whose files are in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tmp").mkdir()

    def inside(self, _name: str, path: str) -> Path:
        return self.root / path.lstrip("/")


def test_both_programs_of_a_transfer_know_each_other_and_have_one_key(planned):
    plan = planned()
    for workload in plan.cell.workloads:
        first, second = workload.from_scps, workload.to_scps
        assert (first.sp.peer, second.sp.peer) == (second.ip, first.ip)
        assert first.sp.key_seed == second.sp.key_seed
        assert first.sp.services == ("confidentiality", "authentication", "integrity")
    assert parse(text(plan).encode()) == plan


def test_names_of_keys_and_repeats_have_keys_of_their_own(planned):
    seeds = [
        planned(*changes, repeat=repeat).cell.workloads[0].to_scps.sp.key_seed
        for changes in ((), ((B, B.replace("{}", "{key_name: other}")),))
        for repeat in (1, 2)
    ]
    assert len({master_key(seed) for seed in seeds}) == 4


def test_keys_are_the_owners_alone_and_their_numbers_go_on(planned, tmp_path):
    plan, node = planned(), Node(tmp_path)
    ends = [workload.from_scps for workload in plan.cell.workloads]
    write_sp(node, "a", ends[0], ends[0].sp)
    key, record = tmp_path / "tmp/lab.key", tmp_path / "tmp/lab.key.sequence"
    assert key.read_text() == f"master {master_key(ends[0].sp.key_seed)}\n"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (key, record)] == [0o600, 0o600]
    record.write_text(record.read_text() + "198.18.1.1 198.18.2.1 1 65537\n")
    write_sp(node, "a", ends[1], ends[1].sp)
    assert "65537" in record.read_text()
    assert sorted(path.name for path in (tmp_path / "tmp").glob("*.json")) == ["scps0-sp.json", "scps1-sp.json"]


def test_the_plan_and_the_settings_do_not_have_the_key(planned):
    plan = planned()
    end = plan.cell.workloads[0].from_scps
    key = master_key(end.sp.key_seed)
    assert key not in text(plan)
    said = sp_file(end, end.sp)
    assert key not in json.dumps(said)
    assert [(one["src"], one["dst"]) for one in said["associations"]] == [(end.ip, end.sp.peer), (end.sp.peer, end.ip)]


@pytest.mark.parametrize(
    ("sp", "overhead"), [("{}", 34), ("{confidentiality: false}", 34), ("{authentication: false}", 26)]
)
def test_rate_control_alone_leaves_room_for_the_protection(planned, sp, overhead):
    """1400 bytes, 20 of TCP, 20 of IP, 12 of timestamps; 4 of framing on the hop."""
    packet = 1400 + 20 + 20 + 12 + overhead
    plan = planned(*((end, end.replace("{}", sp)) for end in (A, B)))
    assert plan.cell.workloads[0].from_scps.settings["rate"] == str(2_000_000 * packet // (packet + 4))


def test_a_host_without_protection_plans_as_before(planned):
    plan = planned((A, "ws1: {stack: scps}"), (B, "ws2: {stack: scps}"))
    assert "sp" not in write(plan)["cell"]["workloads"][0]["from_scps"]


@golden.each("SCPS-SP", "case old new")
def test_what_does_not_fit_is_named(case, planned, old, new, tmp_path):
    case.hold(refusal(planned, (old, new)), tmp_path)


def test_a_transfer_of_which_nothing_verified_says_so():
    report = {"reason": "timed out", "sp": {"sealed": 3, "opened": 0}}
    assert why(report) == "timed out; SCPS-SP: nothing came that verifies, the other end may have another key"
    assert why({"reason": "timed out", "sp": {"sealed": 3, "opened": 2}}) == "timed out"
    assert why({"reason": None}) == ""
