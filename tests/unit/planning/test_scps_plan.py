"""Hosts with the stack `scps` in plans: addresses the kernel does not own, ways to them, and the rate that fits."""

import json
import re
from pathlib import Path

import yaml

from scpslab import scenario
from scpslab.plan import write
from scpslab.scenario import planning
from tests import golden

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
