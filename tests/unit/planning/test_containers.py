"""Which image each node of a plan is, where nodes are Docker containers."""

from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.plan import PlanError, read, write
from scpslab.scenario import planning

NP_LANS = Path(__file__).parents[2] / "data/np-lans/np-lans.yaml"
FIG04 = ("fy97/fig04:test", "sweep={}", "containers=docker")
NONE, FIXED, DEVICE = ([], []), (["NET_ADMIN"], []), (["NET_ADMIN"], ["/dev/net/tun"])


def planned(name, *overrides):
    (cell,) = scenario.cells(scenario.load(str(name), overrides))
    return write(planning.plan(cell))


def containers(*words):
    return {node["name"]: node.get("container") for node in planned(*words)["network"]["nodes"]}


def rights(found):
    return {name: (part["capabilities"], part["devices"]) for name, part in found.items() if part}


def test_every_node_but_the_switches_has_the_image_of_its_part_and_only_what_needs_rights_gets_them():
    """A stack that makes its device, and a window that is fixed."""
    presets = "hosts.ws1={preset: fy97-reno}", "hosts.ws3={preset: modern}"
    found = containers(*FIG04, *presets, "hosts.ws2={stack: scps, preset: fy97-rate}")
    kinds = {name: part["image"].split("/")[1].split(":")[0] for name, part in found.items() if part}

    assert {name: kinds[name] for name in ("ws1", "ws2", "ws4")} == {
        "ws1": "tcp-host",
        "ws2": "scps-host",
        "ws4": "monitor",
    }
    assert {kinds["r1"], kinds["r2"]} == {"router"}
    assert [name for name, part in found.items() if part is None] == ["lan1", "lan2", "sat"]
    assert rights(found) == dict.fromkeys(kinds, NONE) | {"ws1": FIXED, "ws2": DEVICE}


def test_a_router_with_a_gateway_or_of_scps_np_may_make_its_device():
    gateways = planned("links/gateway:test", "containers=docker", "sweep.path=[split]")
    found = {node["name"]: node.get("container") for node in gateways["network"]["nodes"]}
    assert rights(found) == dict.fromkeys(("g1", "g2"), DEVICE) | dict.fromkeys(("client", "server"), NONE)
    assert write(read(gateways)) == gateways
    found["g1"]["devices"] = []
    with pytest.raises(PlanError, match=r'services\[0\].node: found "g1"; expected one of g2'):
        read(gateways)

    routed = containers(NP_LANS, "containers=docker")
    assert routed["r"]["image"].startswith("scpslab/router:")
    assert routed["a"]["image"].startswith("scpslab/scps-host:")
    assert rights(routed) == dict.fromkeys("abr", DEVICE)


def test_a_host_is_the_image_that_it_names_with_the_rights_that_its_own_device_needs():
    own = "stack: image, image: vendor/stack:1.0, memory: 64 MiB"
    transfer = "workloads=[{kind: endpoint, name: transfer, from: ws1, to: ws2, size: 10 kB}]"
    found = containers(*FIG04, f"hosts.ws1={{{own}, device: true}}", f"hosts.ws2={{{own}}}", transfer)

    limits = {"image": "vendor/stack:1.0", "memory_bytes": 64 << 20, "pids": 128}
    assert found["ws1"] == limits | {"capabilities": DEVICE[0], "devices": DEVICE[1]}
    assert rights(found)["ws2"] == NONE
    assert found["ws3"]["image"].startswith("scpslab/")


def test_plans_without_containers_do_not_speak_of_them():
    """Results are kept by the hash of the plan: those of process nodes stay what they were."""
    plan = planned(*FIG04[:2])
    assert plan["network"]["containers"] == "process"
    assert not any("container" in node for node in plan["network"]["nodes"])
