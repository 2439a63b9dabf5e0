"""Which image each node of a plan is, where nodes are Docker containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.plan import PlanError, read, write
from scpslab.scenario import planning

NP_LANS = Path(__file__).parents[2] / "data/np-lans/np-lans.yaml"


def containers(*overrides):
    loaded = scenario.load("fy97/fig04:test", ["sweep={}", "containers=docker", *overrides])
    (cell,) = scenario.cells(loaded)
    return {node["name"]: node.get("container") for node in write(planning.plan(cell))["network"]["nodes"]}


def test_every_node_but_the_switches_has_the_image_of_its_part():
    found = containers("hosts.ws2={stack: scps, preset: fy97-rate}")
    kinds = {name: part["image"].split("/")[1].split(":")[0] for name, part in found.items() if part}

    assert kinds["ws1"] == "tcp-host"
    assert kinds["ws2"] == "scps-host"
    assert {kinds["r1"], kinds["r2"]} == {"router"}
    assert kinds["ws4"] == "monitor"
    assert [name for name, part in found.items() if part is None] == ["lan1", "lan2", "sat"]


def test_only_what_needs_rights_gets_them():
    """A stack that makes its device, and a window that is fixed."""
    found = containers(
        "hosts.ws1={preset: fy97-reno}", "hosts.ws2={stack: scps, preset: fy97-rate}", "hosts.ws3={preset: modern}"
    )

    assert (found["ws1"]["capabilities"], found["ws1"]["devices"]) == (["NET_ADMIN"], [])
    assert (found["ws2"]["capabilities"], found["ws2"]["devices"]) == (["NET_ADMIN"], ["/dev/net/tun"])
    assert all(
        not part["capabilities"] and not part["devices"]
        for name, part in found.items()
        if part and name not in ("ws1", "ws2")
    )


def test_a_router_with_a_gateway_may_make_its_device():
    (cell,) = scenario.cells(scenario.load("links/gateway:test", ["containers=docker", "sweep.path=[split]"]))
    planned = write(planning.plan(cell))
    found = {node["name"]: node.get("container") for node in planned["network"]["nodes"]}
    rights = {name: (part["capabilities"], part["devices"]) for name, part in found.items() if part}

    assert rights == dict.fromkeys(("g1", "g2"), (["NET_ADMIN"], ["/dev/net/tun"])) | dict.fromkeys(
        ("client", "server"), ([], [])
    )
    assert write(read(planned)) == planned
    found["g1"]["devices"] = []
    with pytest.raises(PlanError, match=r'services\[0\].node: found "g1"; expected one of g2'):
        read(planned)


def test_a_router_of_scps_np_is_a_router_that_may_make_its_device():
    (cell,) = scenario.cells(scenario.load(str(NP_LANS), ["containers=docker"]))
    found = {node["name"]: node["container"] for node in write(planning.plan(cell))["network"]["nodes"]}

    assert found["r"]["image"].startswith("scpslab/router:")
    assert found["a"]["image"].startswith("scpslab/scps-host:")
    assert {name: (part["capabilities"], part["devices"]) for name, part in found.items()} == dict.fromkeys(
        "abr", (["NET_ADMIN"], ["/dev/net/tun"])
    )


def test_a_host_is_the_image_that_it_names():
    """With the rights that its own device needs, and no other host with them."""
    own = "stack: image, image: vendor/stack:1.0, memory: 64 MiB"
    found = containers(
        f"hosts.ws1={{{own}, device: true}}",
        f"hosts.ws2={{{own}}}",
        "workloads=[{kind: endpoint, name: transfer, from: ws1, to: ws2, size: 10 kB}]",
    )

    assert found["ws1"] == {
        "image": "vendor/stack:1.0",
        "memory_bytes": 64 << 20,
        "pids": 128,
        "capabilities": ["NET_ADMIN"],
        "devices": ["/dev/net/tun"],
    }
    assert (found["ws2"]["capabilities"], found["ws2"]["devices"]) == ([], [])
    assert found["ws3"]["image"].startswith("scpslab/")


def test_plans_without_containers_do_not_speak_of_them():
    """Results are kept by the hash of the plan: those of process nodes stay what they were."""
    loaded = scenario.load("fy97/fig04:test", ["sweep={}"])
    (cell,) = scenario.cells(loaded)
    plan = write(planning.plan(cell))

    assert plan["network"]["containers"] == "process"
    assert not any("container" in node for node in plan["network"]["nodes"])
