"""What a host's TCP keeps with routes holds towards hosts on its own subnet too, where no route of the topology
leads.
"""

import pytest

from scpslab import scenario
from scpslab.plan import write
from scpslab.scenario import planning

HOP = (
    "preset: fy97-reno}\n  h2: {preset: fy97-reno",
    "preset: modern, initial_window: 3, rto_min: 1 s}\n  h2: {preset: modern, mss: 600 B, quick_ack: true",
)
NONE = {"initcwnd": None, "initrwnd": None, "advmss": None, "rto_min_ms": None, "quickack": None}


def ends(plan):
    return {end["node"]: end for link in plan["network"]["links"] for end in link["ends"]}


def test_the_ends_of_a_hop_carry_the_options_of_their_hosts(plans):
    found = ends(next(iter(plans(HOP).values())))
    assert found["h1"]["route"] == NONE | {"initcwnd": 3, "rto_min_ms": 1000}
    assert found["h2"]["route"] == NONE | {"advmss": 600, "quickack": 1}


def test_an_end_without_options_says_nothing(plans):
    modern = next(iter(plans((HOP[0], "preset: modern}\n  h2: {preset: modern")).values()))
    assert all("route" not in end for end in ends(modern).values())


def test_an_end_towards_a_router_says_nothing():
    first = scenario.cells(scenario.load("fy97/fig04:kernel"))[0]
    assert all("route" not in end for end in ends(write(planning.plan(first))).values())


@pytest.mark.parametrize(
    ("traffic", "carriers"),
    [
        ("workloads: [{kind: bulk, name: near, from: ws1, to: ws3, size: 1 kB}]", {"ws1", "ws3"}),
        ("workloads: [{kind: bulk, name: far, from: ws1, to: ws2, size: 1 kB}]", set()),
        ("script: [{do: run, at: 1 s, node: ws1, command: iperf3 -c 10.1.0.3}]", {"ws1", "ws3"}),
    ],
)
def test_hosts_on_one_lan_carry_them_if_they_may_talk(tmp_path, traffic, carriers):
    hosts = "hosts: {ws1: {preset: fy97-reno}, ws2: {preset: fy97-reno}, ws3: {preset: fy97-reno}}"
    (path := tmp_path / "lan.yaml").write_text(
        f"kind: scenario\nversion: 1\ntitle: LAN\ntopology: fy97\n{hosts}\n{traffic}\n"
    )
    (cell,) = scenario.cells(scenario.load(str(path)))
    assert {node for node, end in ends(write(planning.plan(cell))).items() if "route" in end} == carriers
