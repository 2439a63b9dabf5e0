"""Which hosts of stack `scps` get a gateway of their own, and what it is told."""

import pytest

from scpslab.cli.shell import shell_plan
from scpslab.plan import read, write
from tests import golden
from tests.cases import refusal

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
def plan(planned):
    """The plan after overrides."""
    return lambda *overrides, more="": write(planned(SCENARIO + more, *overrides))


def gateways(planned):
    return {service["node"]: service for service in planned["cell"]["services"] if service["kind"] == "host-gateway"}


def test_the_gateway_is_told_what_a_bulk_transfer_with_full_packets_is(plan):
    found = gateways(planned := plan())
    assert write(read(planned)) == planned
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


def test_only_hosts_of_scps_have_one_and_congestion_control_without_a_rate_has_that_of_the_program(plan):
    assert set(gateways(plan("hosts.ws2={stack: kernel}"))) == {"ws1"}
    assert gateways(plan("hosts.*={stack: scps, preset: nmsu-vegas}"))["ws1"]["settings"]["rate"] == "2000000"


RUN = "events: [{{at: 1 s, node: {}, command: 'true'}}]\n"


def test_commands_and_services_need_one_before_the_services_start(plan):
    web = "services: [{kind: command, name: web, node: ws2, command: 'sleep 100'}]\n"
    started = plan("workloads=[]", more=RUN.format("ws1") + web)["cell"]["services"]
    wanted = [("host-gateway", "ws1"), ("host-gateway", "ws2"), ("command", "ws2")]
    assert [(service["kind"], service["node"]) for service in started] == wanted
    # Not on a router, and not where a host can have none: its kernel carries the command.
    assert plan("workloads=[]", more=RUN.format("r1"))["cell"]["services"] == []
    assert plan("workloads=[]", "hosts.*={stack: scps, sp: {}}", more=RUN.format("ws1"))["cell"]["services"] == []


FTP = "workloads=[{kind: ftp, name: file, from: ws1, to: ws2, size: 1 MB}]"


@golden.each("gateways of hosts")
def test_what_does_not_fit_is_named(case, plan, tmp_path):
    case.hold(refusal(plan, *case.split(" + ")), tmp_path)


def test_hosts_of_a_session_have_one_for_what_is_typed():
    stacks = {"*": {"stack": "scps", "preset": "fy97-rate"}, "ws2": {"stack": "kernel"}}
    planned = shell_plan("fy97", {"mtu": "1.5 kB"}, stacks)
    assert planned.cell.shell == "mininet"
    assert planned.cell.events == ()
    assert {service.node for service in planned.cell.services} == {"ws1", "ws3", "ws4"}
    in_docker = shell_plan("fy97", {}, {"ws1": {"stack": "scps"}}, containers="docker")
    assert in_docker.network.containers == "docker"
    assert {service.node for service in in_docker.cell.services} == {"ws1"}
    assert refusal(shell_plan, "fy97", {}, {"ws9": {"stack": "scps"}}).startswith("--stack: ws9: found")
