"""Unmodified programs on hosts of stack `scps`: iperf3, FTP, curl and what commands run go over SCPS-TP, through the
host's own gateway.
"""

from __future__ import annotations

import csv
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from scpslab.analysis.run import RunCell, open_run
from scpslab.running import RunOptions, run_scenario
from tests.lab.forks import digests
from tests.lab.terminal import Terminal

pytestmark = pytest.mark.lab

# A satellite hop of 2 Mbit/s on which one of nine packets is lost.
SCENARIO = """kind: scenario
version: 1
title: Gateways of hosts
topology: point_to_point
hosts:
  h1: {stack: scps, preset: fy97-rate}
  h2: {stack: scps, preset: fy97-rate}
links:
  hop:
    data: {errors: {ber: 1e-5}}
    ack: {errors: {ber: 1e-5}}
probes:
  - {kind: capture, node: h1}
  - {kind: capture, node: h2}
seed: 11
limits: {virtual: 600 s, wall: 600 s}
"""
SCPS_CAPABILITIES = 20
SYN, ACK = 0x02, 0x10
TCP, ICMP = 6, 1
RATE_BPS = 2_000_000


def ran(tmp_path: Path, more: str, *overrides: str, name: str = "run") -> tuple[RunCell, dict[str, Any]]:
    """The one cell of the scenario with what `more` says, whether it completed or not."""
    scenario = tmp_path / "builtin.yaml"
    scenario.write_text(SCENARIO + more)
    result = run_scenario(
        str(scenario), RunOptions(out=tmp_path / name, overrides=list(overrides), jobs=1, use_cache=False)
    )
    (cell,) = open_run(result.folder).cells
    return cell, json.loads((cell.folder / "status.json").read_text())


def packets(cell: RunCell, node: str) -> list[bytes]:
    """The IP packets of a host's capture."""
    content = (cell.folder / "captures" / f"{node}.pcap").read_bytes()
    found, at = [], 24
    while at < len(content):
        (length,) = struct.unpack_from("<I", content, at + 8)
        found.append(content[at + 16 : at + 16 + length])
        at += 16 + length
    link = struct.unpack_from("<I", content, 20)[0]
    assert link == 1  # Ethernet
    return [packet[14:] for packet in found]


def option_kinds(packet: bytes) -> list[int]:
    """The options of a TCP segment."""
    header = packet[20 : 20 + (packet[32] >> 4) * 4]
    kinds, at = [], 20
    while at < len(header) and header[at]:
        kinds.append(header[at])
        at += 1 if header[at] == 1 else header[at + 1]
    return kinds


def openings(cell: RunCell, node: str) -> list[tuple[str, bool, bool]]:
    """Every SYN on a host's link: who sent it, whether it answers one, whether it offers SCPS."""
    segments = [packet for packet in packets(cell, node) if packet[9] == TCP and packet[33] & SYN]
    return [
        (".".join(map(str, one[12:16])), bool(one[33] & ACK), SCPS_CAPABILITIES in option_kinds(one))
        for one in segments
    ]


def account(cell: RunCell, host: str) -> dict[str, Any]:
    """The last line of a gateway's account."""
    lines = list(cell.records(f"gateway-{host}"))
    assert lines[-1]["event"] == "counters"
    assert lines[-1]["closes"]
    return lines[-1]


def rows(cell: RunCell) -> list[dict[str, str]]:
    """The rows of the run's results.csv."""
    with (cell.folder.parents[1] / "results.csv").open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def said(cell: RunCell, step: int, node: str) -> str:
    return (cell.folder / "logs" / f"script-{step}-{node}.log").read_text()


IPERF3 = """workloads:
  - {kind: iperf3, name: flow, from: h1, to: h2, duration: 60 s}
"""


def test_iperf3_runs_over_scps_and_fills_the_link_that_loses_every_ninth_packet(tmp_path):
    cell, status = ran(tmp_path, IPERF3)
    (line,) = cell.records("flow")

    assert status["status"] == "completed", status
    # Rate control alone: the rate but for headers, what is lost, and what is under way when it ends.
    assert 0.7 < line["result"]["end"]["sum_received"]["bits_per_second"] / RATE_BPS < 0.97
    seen = openings(cell, "h1")
    assert {(who, answers) for who, answers, _ in seen} == {("10.0.0.1", False), ("10.0.0.2", True)}
    assert all(offers for _, _, offers in seen)
    sender, receiver = account(cell, "h1"), account(cell, "h2")
    assert sender["from_lan"]["delivered"] == pytest.approx(receiver["from_wan"]["delivered"], rel=0.05)
    assert sender["wan"]["resends"] > 500
    (row,) = rows(cell)
    assert row["stack"] == "scps fy97-rate"
    assert row["retransmissions"] == str(sender["wan"]["resends"])
    # Nothing is lost inside the host.
    assert sender["lan"]["resends"] < 5


def test_the_same_cell_has_the_same_bytes_twice(tmp_path):
    first, second = (
        ran(tmp_path, IPERF3, "workloads.flow.duration=10 s", name=name)[0] for name in ("first", "second")
    )

    assert digests(first.folder) == digests(second.folder)


@pytest.mark.parametrize(("command", "mode"), [("get", "active"), ("put", "passive")])
def test_files_come_by_ftp_whoever_opens_the_data_connection(tmp_path, command, mode):
    more = (
        f"workloads:\n  - {{kind: ftp, name: file, from: h1, to: h2, size: 1 MB, command: {command}, mode: {mode}}}\n"
    )
    cell, status = ran(tmp_path, more)
    (file,) = [line for line in cell.records("file") if line["event"] == "file"]

    assert status["status"] == "completed", status
    assert file["sha256"] == file["sent_sha256"]
    connections = [line for line in cell.records("gateway-h1") if line["event"] == "connection"]
    # Control and data connection.
    assert len(connections) == 2
    assert sorted(line["from_lan"]["delivered"] + line["from_wan"]["delivered"] > 900_000 for line in connections) == [
        False,
        True,
    ]


CURL = """services:
  - {kind: command, name: web, node: h2, ready_port: 8080,
     command: "mkdir /tmp/www && head -c 400000 /dev/urandom > /tmp/www/page && exec python3 -m http.server 8080 --directory /tmp/www"}
script:
  - {do: run, at: 1 s, node: h1, patience: 100 s, command: "curl -sSf http://10.0.0.2:8080/page | sha256sum"}
  - {do: run, at: 1 s, node: h2, command: "sha256sum < /tmp/www/page"}
  - {do: run, at: 2 s, node: h1, patience: 100 s, command: "curl -sS http://10.0.0.2:9/; test $? = 7"}
  - {do: run, at: 3 s, node: h1, command: "curl -sS --max-time 5 http://127.0.0.1:9/; test $? = 7"}
  - {do: run, at: 4 s, node: h1, patience: 60 s, command: "ping -c 2 10.0.0.2"}
"""


def test_a_page_comes_by_curl_a_refusal_is_one_and_ping_goes_its_own_way(tmp_path):
    cell, status = ran(tmp_path, CURL, "links.hop.*.errors={ber: 0}")

    assert status["status"] == "completed", (status, said(cell, 1, "h1"))
    assert said(cell, 1, "h1") == said(cell, 2, "h2")
    assert "2 received" in said(cell, 5, "h1")
    # No router, and no gateway, has reduced it.
    assert "ttl=64" in said(cell, 5, "h1")
    found = account(cell, "h1")
    # The connection inside the host is none of the gateway's.
    assert (found["begun"], found["finished"], found["broken"]) == (2, 1, 1)
    (page,) = [
        line for line in cell.records("gateway-h1") if line["event"] == "connection" and line["end"] == "finished"
    ]
    assert page["from_wan"]["delivered"] > 400_000
    # The gateway writes packets of its own with 250, which the host forwards; those of ICMP are its kernel's.
    assert {
        packet[8] for packet in packets(cell, "h2") if packet[9] == TCP and packet[12:16] == bytes([10, 0, 0, 1])
    } == {249}
    assert {packet[8] for packet in packets(cell, "h2") if packet[9] == ICMP} == {64}


def test_a_kernel_host_at_the_other_end_speaks_tcp(tmp_path):
    cell, status = ran(
        tmp_path, IPERF3, "workloads.flow.duration=20 s", "hosts.h2={preset: modern}", "links.hop.*.errors={ber: 0}"
    )
    (line,) = cell.records("flow")

    assert status["status"] == "completed", status
    assert set(openings(cell, "h1")) == {("10.0.0.1", False, True), ("10.0.0.2", True, False)}
    assert line["result"]["end"]["sum_received"]["bytes"] > 1_000_000
    assert account(cell, "h1")["from_lan"]["delivered"] > 1_000_000
    assert not (cell.folder / "records" / "gateway-h2.jsonl").exists()


def test_a_kernel_host_reaches_a_server_on_a_host_of_scps(tmp_path):
    cell, status = ran(tmp_path, CURL, "hosts.h1={preset: modern}", "links.hop.*.errors={ber: 0}")

    assert status["status"] == "completed", status
    assert said(cell, 1, "h1") == said(cell, 2, "h2")
    # The client offers no SCPS, and the server's gateway answers without.
    assert not any(offers for _, _, offers in openings(cell, "h2"))
    assert account(cell, "h2")["from_lan"]["delivered"] > 400_000


def test_bulk_and_unmodified_programs_share_a_host(tmp_path):
    both = IPERF3 + "  - {kind: bulk, name: transfer, from: h1, to: h2, size: 500 kB}\n"
    cell, status = ran(tmp_path, both)

    assert status["status"] == "completed", status
    (receiver,) = [line for line in cell.records("transfer") if line["event"] == "receiver"]
    assert (receiver["bytes"], receiver["wrong_bytes"]) == (500_000, 0)


@pytest.mark.parametrize("node", ["h1", "h2"])
def test_a_gateway_that_is_killed_fails_the_cell_with_a_word(tmp_path, node):
    steps = [{"do": "run", "at": "10 s", "node": node, "command": "pkill -KILL -x scps"}]
    _, status = ran(tmp_path, IPERF3, f"script={json.dumps(steps)}")

    assert status["status"] == "failed"
    assert f"service gateway-{node} on {node}: scps gateway ended with SIGKILL while the cell ran" in status["reason"]


def test_what_is_typed_on_a_host_of_scps_goes_through_its_gateway():
    with Terminal("point_to_point", "--stack", "*=scps:fy97-rate") as terminal:
        terminal.do("h2 python3 -m http.server 8080 --directory /etc > /dev/null 2>&1 &")
        terminal.do("h1 sleep 2")
        assert "127.0.0.1" in terminal.do("h1 curl -sS http://10.0.0.2:8080/hosts")
        assert int(terminal.do("h1 cat /sys/class/net/gw-wan/statistics/rx_packets")) > 3
        terminal.type("exit\n")
        assert terminal.ends_within(20) == 0


def test_the_prompt_says_once_that_a_gateway_has_ended():
    with Terminal("point_to_point", "--stack", "*=scps:fy97-rate") as terminal:
        said = terminal.do("h1 pkill -KILL -x scps")
        said += terminal.do("h1 sleep 1")
        assert said.count("*** service gateway-h1 on h1: scps gateway has ended") == 1
        assert "service gateway-h2" not in said
        assert "ended" not in terminal.do("h2 true")
        terminal.type("exit\n")
        assert terminal.ends_within(20) == 0
