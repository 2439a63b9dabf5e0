"""Which hosts of stack `scps` get a gateway of their own, and what it is told."""

from __future__ import annotations

import pytest

from scpslab import scenario
from scpslab.cli.shell import shell_plan
from scpslab.core.errors import ScenarioError
from scpslab.plan import read, write
from scpslab.scenario import planning

SCENARIO = """kind: scenario
version: 1
title: Gateways of hosts
topology: fy97
hosts:
  ws1: {stack: scps, preset: fy97-rate, ack_every: 4}
  ws2: {stack: scps, preset: fy97-rate}
workloads:
  - {kind: iperf3, name: flow, from: ws1, to: ws2, duration: 10 s}
seed: 3
"""


@pytest.fixture
def plan(tmp_path):
    """The plan after overrides."""

    def make(*overrides, more=""):
        path = tmp_path / "gateways.yaml"
        path.write_text(SCENARIO + more)
        (cell,) = scenario.cells(scenario.load(str(path), overrides))
        return write(planning.plan(cell))

    return make


def gateways(planned):
    return {service["node"]: service for service in planned["cell"]["services"] if service["kind"] == "host-gateway"}


def test_the_gateway_is_told_what_a_bulk_transfer_with_full_packets_is(plan):
    found = gateways(plan())
    (bulk,) = plan("workloads=[{kind: bulk, name: flow, from: ws1, to: ws2, size: 1 MB, segment: 1448 B}]")["cell"][
        "workloads"
    ]
    own = dict(bulk["from_scps"]["settings"])
    del own["segment"]

    assert set(found) == {"ws1", "ws2"}
    assert found["ws1"]["settings"] == own
    assert found["ws1"]["settings"]["ack_every"] == 4
    assert found["ws1"]["name"] == "gateway-ws1"
    assert found["ws1"]["seed"] != found["ws2"]["seed"]


def test_a_plan_with_gateways_is_read_as_it_was_written(plan):
    assert write(read(plan())) == plan()


@pytest.mark.parametrize(
    "workload",
    [
        "{kind: bulk, name: flow, from: ws1, to: ws2, size: 1 MB}",
        "{kind: ping, name: flow, from: ws1, to: ws2}",
        "{kind: fp, name: flow, from: ws1, to: ws2, size: 1 MB}",
        "{kind: iperf3, name: flow, from: ws1, to: ws2, duration: 10 s, udp_rate: 1 Mbit/s}",
    ],
)
def test_what_the_kernel_does_not_carry_over_tcp_needs_none(plan, workload):
    assert not plan(f"workloads=[{workload}]")["cell"]["services"]


def test_only_hosts_of_scps_have_one(plan):
    assert set(gateways(plan("hosts.ws2={stack: kernel}"))) == {"ws1"}


def test_commands_and_services_need_one_before_the_services_start(plan):
    more = (
        "script: [{do: run, at: 1 s, node: ws1, command: 'true'}]\nservices: [{kind: command, name: web, node: "
        "ws2, command: 'sleep 100'}]\n"
    )
    planned = plan("workloads=[]", more=more)

    assert [(service["kind"], service["node"]) for service in planned["cell"]["services"]] == [
        ("host-gateway", "ws1"),
        ("host-gateway", "ws2"),
        ("command", "ws2"),
    ]
    assert (
        plan("workloads=[]", more="script: [{do: run, at: 1 s, node: r1, command: 'true'}]\n")["cell"]["services"] == []
    )


def test_congestion_control_without_a_rate_has_the_rate_of_the_program(plan):
    assert gateways(plan("hosts.*={stack: scps, preset: nmsu-vegas}"))["ws1"]["settings"]["rate"] == "2000000"


FTP = "workloads=[{kind: ftp, name: file, from: ws1, to: ws2, size: 1 MB}]"
ON_WS1, NONE = "found iperf3 over TCP on ws1, which has", "for a flow of ws1, whose gateway carries it over SCPS-TP"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["hosts.*={stack: scps, network: np}"], f"{ON_WS1} network np, whose gateways speak IP; expected"),
        (["hosts.*={stack: scps, sp: {}}"], f"{ON_WS1} sp, whose keys belong to two programs; expected"),
        (
            ["hosts.ws2={stack: scps, bets: true}"],
            "on ws2, which has bets, which leaves holes in a program's stream; exp",
        ),
        (["workloads.flow.congestion=bbr"], f'found "bbr" {NONE}; expected none'),
        (["workloads.flow.segment=1000 B"], f'found "1000 B" {NONE}; expected none'),
        ([FTP, "hosts.ws1={stack: scps, network: np}"], "found ftp on ws1, which has network np"),
        (["workloads.flow.name=gateway-ws2"], 'found the name "gateway-ws2", which another record has'),
    ],
)
def test_what_does_not_fit_is_named(plan, overrides, words):
    with pytest.raises(ScenarioError) as caught:
        plan(*overrides)
    assert words in str(caught.value)


def test_commands_on_a_host_that_can_have_none_use_its_kernel(plan):
    more = "script: [{do: run, at: 1 s, node: ws1, command: 'true'}]\n"
    assert plan("workloads=[]", "hosts.*={stack: scps, sp: {}}", more=more)["cell"]["services"] == []


def test_hosts_of_a_session_have_one_for_what_is_typed():
    planned = shell_plan(
        "fy97", {"data_rate": "1 Mbit/s"}, {"*": {"stack": "scps", "preset": "fy97-rate"}, "ws2": {"stack": "kernel"}}
    )

    assert planned.cell.shell == "mininet"
    assert planned.cell.script == ()
    assert {service.node for service in planned.cell.services} == {"ws1", "ws3", "ws4"}
    in_docker = shell_plan("fy97", {}, {"ws1": {"stack": "scps"}}, containers="docker")
    assert in_docker.network.containers == "docker"
    assert {service.node for service in in_docker.cell.services} == {"ws1"}
    with pytest.raises(ScenarioError, match="^--stack: ws9: found"):
        shell_plan("fy97", {}, {"ws9": {"stack": "scps"}})
