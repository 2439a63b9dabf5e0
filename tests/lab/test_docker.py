"""Nodes that are Docker containers: the same experiment, dockerd and the images of images/ inside the guest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scpslab.analysis.collect import measure
from scpslab.analysis.run import open_run
from scpslab.running import RunOptions, run_scenario
from scpslab.setup.images import DOCKER, cache_dir, find

pytestmark = pytest.mark.lab
NP_LANS = Path(__file__).parents[1] / "data/np-lans/np-lans.yaml"
OWN_GATEWAYS = """kind: scenario
version: 1
title: Gateways of containers
topology: point_to_point
hosts:
  h1: {stack: scps, preset: fy97-rate}
  h2: {stack: scps, preset: fy97-rate}
workloads:
  - {kind: iperf3, name: flow, from: h1, to: h2, duration: 10 s}
limits: {virtual: 600 s, wall: 600 s}
"""
CELL = ["sweep={}", "hosts.*={preset: fy97-reno}", "workloads.transfer.size=300 kB"]


def images_can_be_had() -> bool:
    """Whether the images of nodes are built, or there is a Docker Engine to build them with."""
    if find(DOCKER, cache_dir()):
        return True
    try:
        return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def transfer(out, *overrides):
    """The one cell of a small FY97 run, and its receiver's line."""
    result = run_scenario("fy97/fig04:test", RunOptions(out=out, overrides=[*CELL, *overrides], jobs=1))
    assert (result.completed, result.failed) == (1, 0)
    (cell,) = open_run(result.folder).cells
    return cell, next(line for line in cell.records("transfer") if line["event"] == "receiver")


needs_images = pytest.mark.skipif(
    not images_can_be_had(), reason="no Docker Engine here to build the images of nodes with"
)


@needs_images
def test_a_transfer_between_containers_is_the_transfer_between_processes(tmp_path):
    """Bytes, packets on every link and losses agree; times do to 1 ms, for a role starts its program by one step
    more.
    """
    in_docker, received = transfer(tmp_path / "docker", "containers=docker")
    plain, expected = transfer(tmp_path / "process")

    assert received["bytes"] == 300_000
    assert received["wrong_bytes"] == 0
    packets = [
        [
            (line["link"], line["direction"], line["offered_packets"], line["corrupt_packets"])
            for line in cell.records("accounting")
        ]
        for cell in (in_docker, plain)
    ]
    assert packets[0] == packets[1]
    assert received["last_data_t_s"] - received["accept_t_s"] == pytest.approx(
        expected["last_data_t_s"] - expected["accept_t_s"], abs=1e-3
    )


@needs_images
def test_a_container_forwards_protected_packets_of_scps_np_as_a_process_does(tmp_path):
    counts = []
    for containers in ("docker", "process"):
        result = run_scenario(
            str(NP_LANS), RunOptions(out=tmp_path / containers, overrides=[f"containers={containers}"], jobs=1)
        )
        assert (result.completed, result.failed) == (1, 0)
        (cell,) = open_run(result.folder).cells
        found = measure(cell)
        assert found["payload_match"] is True
        assert found["transfer_sender_sp_sealed"] == found["transfer_receiver_sp_opened"] > 70
        (counters,) = [line for line in cell.records("r") if line["event"] == "counters"]
        counts.append(
            [(interface["name"], interface["received"], interface["sent"]) for interface in counters["interfaces"]]
        )
    assert counts[0] == counts[1]
    assert counts[0][0][1] > 70


@needs_images
def test_routers_on_a_serial_line_can_be_containers(tmp_path):
    counts = []
    for containers in ("docker", "process"):
        overrides = ["sweep={}", "hosts.*.sp={}", "workloads.transfer.size=100 kB", f"containers={containers}"]
        result = run_scenario("np/sp", RunOptions(out=tmp_path / containers, overrides=overrides, jobs=1))
        assert (result.completed, result.failed) == (1, 0)
        (cell,) = open_run(result.folder).cells
        assert measure(cell)["payload_match"] is True
        lines = [line for line in cell.records("modem") if line["event"] == "direction"]
        assert all(line["lost_frames"] == 0 for line in lines)
        counts.append([(line["direction"], line["sent_frames"]) for line in lines])
    assert counts[0] == counts[1]
    assert counts[0][0][1] > 70


@needs_images
def test_gateways_of_routers_and_of_hosts_can_be_containers(tmp_path):
    """Kernel TCP between containers is split by containers; a container's own iperf3 runs over SCPS-TP. Both as between
    processes.
    """
    path = tmp_path / "own.yaml"
    path.write_text(OWN_GATEWAYS)
    for name, scenario, overrides, accounts in (
        ("split", "links/gateway:test", ["sweep.path=[split]"], {"near": "from_lan", "far": "from_wan"}),
        ("own", str(path), [], {"gateway-h1": "from_lan", "gateway-h2": "from_wan"}),
    ):
        found = []
        for containers in ("docker", "process"):
            options = RunOptions(
                out=tmp_path / name / containers, overrides=[*overrides, f"containers={containers}"], jobs=1
            )
            result = run_scenario(scenario, options)
            assert (result.completed, result.failed) == (1, 0)
            (cell,) = open_run(result.folder).cells
            totals = {account: list(cell.records(account))[-1] for account in accounts}
            assert all(total["closes"] for total in totals.values())
            found.append({account: totals[account][side]["delivered"] for account, side in accounts.items()})
        assert min(found[0].values()) > 900_000
        assert found[0] == pytest.approx(found[1], rel=0.03)
