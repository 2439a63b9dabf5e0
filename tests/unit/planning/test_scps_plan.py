"""Hosts with the stack `scps` in plans: addresses the kernel does not own, ways to them, and the rate that fits. Hosts
that protect their segments by SCPS-SP: what plans say, the files that the lab makes, and what does not fit.
"""

import json
import re
import stat
from pathlib import Path

import pytest
import yaml

from scpslab import scenario
from scpslab.lab.scps_end import master_key, sp_file, why, write_sp
from scpslab.plan import parse, text, write
from scpslab.scenario import planning
from tests import golden
from tests.cases import changed, refusal

from scpslab.kinds.probes.tcp_info.lab import Trace, samples
from scpslab.kinds.stacks.scps.scenario import PRESETS

SETTINGS = Path(__file__).parents[3] / "stack" / "crates" / "scps-cli" / "src" / "settings.rs"
FY97 = ("sweep={}", "repeats=1")


def plan(*overrides):
    loaded = scenario.load("fy97/fig04", [*FY97, *overrides])
    (cell,) = scenario.cells(loaded)
    return write(planning.plan(cell))


def routes(planned, name):
    (node,) = (node for node in planned["network"]["nodes"] if node["name"] == name)
    return {route["to"]: route["via"] for route in node["routes"]}


def test_every_node_knows_the_way_and_the_host_drops_the_rest():
    """ws2 is behind both routers: each node sends its prefix towards it, itself drops what no program owns."""
    planned = plan("hosts.ws2={stack: scps}")
    (transfer,) = planned["cell"]["workloads"]
    prefix = "198.18.1.0/24"
    assert transfer["to_ip"] == transfer["to_scps"]["ip"] == "198.18.1.1"
    assert transfer["from_scps"] is None
    assert routes(planned, "ws1")[prefix] == routes(planned, "ws1")["default"]
    assert routes(planned, "r1")[prefix] == "10.9.0.2"
    assert routes(planned, "r2")[prefix] == "10.2.0.2"
    assert routes(planned, "ws2")[prefix] is None
    # Kernel hosts have no such thing.
    planned = plan()
    nodes = [node["name"] for node in planned["network"]["nodes"] if node["kind"] != "switch"]
    assert [node for node in nodes if any("198.18" in to for to in routes(planned, node))] == []


def test_a_rate_that_is_not_named_fills_the_slowest_hop_with_its_framing():
    """1452 bytes of IP are 1456 on the hop of 2 Mbit/s."""
    (transfer,) = plan("hosts.*={stack: scps, preset: fy97-rate}")["cell"]["workloads"]
    assert transfer["from_scps"]["settings"]["rate"] == str(2_000_000 * 1452 // 1456)
    assert transfer["from_scps"]["settings"]["segment"] == 1400


def test_a_rate_on_a_serial_line_leaves_room_for_start_bits_framing_and_escapes():
    """115,200 baud are 11,520 bytes a second; a packet of 1500 has 4 bytes of PPP and two in 256 of its own escaped."""
    overrides = ["sweep={}", "repeats=1", "workloads.transfer.kind=fp", "hosts.*={stack: scps, preset: fy97-rate}"]
    (cell,) = scenario.cells(scenario.load("sgls/aero-fig02", overrides))
    (transfer,) = write(planning.plan(cell))["cell"]["workloads"]

    assert transfer["from_scps"]["settings"]["rate"] == str(115_200 * 8 * 1500 // (10 * (1500 + 4 + 12)))
    assert "segment" not in transfer["from_scps"]["settings"]
    assert transfer["server_ip"] == transfer["from_scps"]["ip"]


def test_where_a_transfer_is_stopped_is_a_share_of_its_file_drawn_by_repeat_alone():
    cells = [
        cell
        for cell in scenario.cells(scenario.load("fp/restart"))
        if (cell.axes["stop"], cell.axes["command"]) == ("kill-client", "get")
    ]
    transfers = {
        (cell.repeat, cell.axes["stack"]): write(planning.plan(cell))["cell"]["workloads"][0] for cell in cells
    }
    shares = {key: transfer["stop_at"] / transfer["bytes"] for key, transfer in transfers.items()}

    assert len({shares[repeat, "fp-vj"] for repeat in range(1, 11)}) == 10
    assert all(0.049 < share < 0.75 for share in shares.values())
    assert all(abs(shares[repeat, "fp-vj"] - shares[repeat, "fp-tcp"]) < 1e-4 for repeat in range(1, 11))


@golden.each("settings of programs of SCPS-TP")
def test_named_settings_reach_the_program_in_its_own_words(case):
    (transfer,) = plan(f"hosts.*={{stack: scps, {case}}}")["cell"]["workloads"]
    case.hold(yaml.safe_dump(json.loads(json.dumps(transfer["from_scps"]["settings"])), sort_keys=False))


def test_programs_of_one_host_have_an_address_and_a_device_each():
    ends = "kind: bulk, from: ws1, to: ws2, size: 1 kB"
    two = f"workloads=[{{{ends}, name: a}}, {{{ends}, name: b, port: 5002}}]"
    first, second = plan("hosts.*={stack: scps}", two)["cell"]["workloads"]
    assert (first["from_scps"]["ip"], first["from_scps"]["device"]) == ("198.18.1.1", "scps0")
    assert (second["from_scps"]["ip"], second["from_scps"]["device"]) == ("198.18.1.2", "scps1")
    assert first["from_scps"]["seed"] != second["from_scps"]["seed"]


def test_a_trace_is_sampled_on_the_grid(tmp_path):
    """Events at 0.05, 0.12 and 0.31 s: samples at 0.1, 0.2, 0.3 and 0.4 s, each with the last event before it."""
    event = {"event": "sent", "cwnd": 2800, "ssthresh": None, "srtt_s": 0.5, "rto_s": 1.5, "flight_size": 1400}
    event |= {"rate_credit": None}
    lines = [event | {"t_s": 0.05}, event | {"t_s": 0.12, "event": "resent"}, event | {"t_s": 0.31, "cwnd": None}]
    found = list(samples(Trace(tmp_path / "trace", 0, "a:1", "b:2", 1400), lines, 0.1))
    assert [line["t_s"] for line in found] == [0.1, 0.2, 0.3, 0.4]
    assert [line["retrans_total"] for line in found] == [0, 1, 1, 1]
    assert [line["cwnd_segments"] for line in found] == [2, 2, 2, None]
    assert found[0]["unacked"] == 1


def test_the_presets_of_scenarios_are_those_of_the_program():
    (body,) = re.findall(r"^pub enum Preset \{(.*?)^\}", SETTINGS.read_text(), flags=re.DOTALL | re.MULTILINE)
    variants = re.findall(r"^    (\w+),$", body, flags=re.MULTILINE)

    assert [re.sub(r"(?<=.)(?=[A-Z])", "-", name).lower() for name in variants] == list(PRESETS)


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
        planned(*changes, ("size: 400 kB", "size: 400 kB, start: {random: 0 s..1 s}"), repeat=repeat)
        .cell.workloads[0]
        .to_scps.sp.key_seed
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
