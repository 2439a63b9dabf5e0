"""Nodes that are Docker containers: the same experiment, dockerd and the images of images/ inside the guest."""

import subprocess
from pathlib import Path

import pytest

from scpslab.analysis.collect import measure
from scpslab.setup.images import DOCKER, cache_dir, find
from tests.lab.ran import Cell

NP_LANS = Path(__file__).parents[1] / "data/np-lans/np-lans.yaml"
OWN_GATEWAYS = """
hosts:
  h1: {stack: scps, preset: fy97-rate}
  h2: {stack: scps, preset: fy97-rate}
workloads:
  - {kind: iperf3, name: flow, from: h1, to: h2, duration: 10 s}
limits: {lab_time: 600 s, wall_time: 600 s}
"""


def images_can_be_had() -> bool:
    """Whether the images of nodes are built, or there is a Docker Engine to build them with."""
    if find(DOCKER, cache_dir()):
        return True
    try:
        return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_images = pytest.mark.skipif(
    not images_can_be_had(), reason="no Docker Engine here to build the images of nodes with"
)


@pytest.fixture
def run_both(run):
    """Runs the one cell of a scenario twice, with nodes that are containers and with nodes that are processes."""

    def cells(scenario, *overrides) -> list[Cell]:
        both = [run(scenario, *overrides, f"containers={kind}").cell for kind in ("docker", "process")]
        assert [cell.status for cell in both] == ["completed", "completed"]
        return both

    return cells


@needs_images
def test_a_transfer_between_containers_is_the_transfer_between_processes(run_both):
    """Times agree to 1 ms, for a role starts its program by one step more."""
    cells = run_both("fy97/fig04:test", "sweep={}", "hosts.*={preset: fy97-reno}", "workloads.transfer.size=300 kB")
    received, expected = (cell.line("transfer", event="receiver") for cell in cells)

    assert (received["bytes"], received["wrong_bytes"]) == (300_000, 0)
    keys = ("link", "direction", "offered_packets", "corrupt_packets")
    packets = [[[line[key] for key in keys] for line in cell.records("accounting")] for cell in cells]
    assert packets[0] == packets[1]
    assert received["last_data_t_s"] - received["accept_t_s"] == pytest.approx(
        expected["last_data_t_s"] - expected["accept_t_s"], abs=1e-3
    )


@needs_images
def test_a_container_forwards_protected_packets_of_scps_np_as_a_process_does(run_both):
    counts = []
    for cell in run_both(NP_LANS):
        metrics = measure(cell)
        assert metrics["payload_match"] is True
        assert metrics["transfer_sender_sp_sealed"] == metrics["transfer_receiver_sp_opened"] > 70
        interfaces = cell.line("r", event="counters")["interfaces"]
        counts.append([(interface["name"], interface["received"], interface["sent"]) for interface in interfaces])
    assert counts[0] == counts[1]
    assert counts[0][0][1] > 70


@needs_images
def test_routers_on_a_serial_line_can_be_containers(run_both):
    counts = []
    for cell in run_both("np/sp", "sweep={}", "hosts.*.sp={}", "workloads.transfer.size=100 kB"):
        assert measure(cell)["payload_match"] is True
        lines = cell.lines("modem", event="direction")
        assert all(line["lost_frames"] == 0 for line in lines)
        counts.append([(line["direction"], line["sent_frames"]) for line in lines])
    assert counts[0] == counts[1]
    assert counts[0][0][1] > 70


@needs_images
@pytest.mark.parametrize(
    ("scenario", "overrides", "accounts"),
    [
        ("links/gateway:test", ["sweep.path=[split]"], {"near": "from_lan", "far": "from_wan"}),
        (OWN_GATEWAYS, [], {"gateway-h1": "from_lan", "gateway-h2": "from_wan"}),
    ],
)
def test_gateways_of_routers_and_of_hosts_can_be_containers(run_both, scenario, overrides, accounts):
    """Kernel TCP is split by containers; a container's own iperf3 runs over SCPS-TP."""
    delivered = []
    for cell in run_both(scenario, *overrides):
        totals = {account: cell.records(account)[-1] for account in accounts}
        assert all(total["closes"] for total in totals.values())
        delivered.append({account: totals[account][side]["delivered"] for account, side in accounts.items()})
    assert min(delivered[0].values()) > 900_000
    assert delivered[0] == pytest.approx(delivered[1], rel=0.03)
