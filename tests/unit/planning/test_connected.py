"""What a host's TCP keeps with routes holds towards hosts on its own subnet too, where no route of the topology
leads.
"""

import pytest

from scpslab import scenario
from scpslab.plan import write as written
from scpslab.scenario import planning

FY97 = "preset: fy97-reno}\n  h2: {preset: fy97-reno"
OPTIONS = "preset: modern, initial_window: 3, rto_min: 1 s}\n  h2: {preset: modern, mss: 600 B, quick_ack: true"
NONE = {"initcwnd": None, "initrwnd": None, "advmss": None, "rto_min_ms": None, "quickack": None}


def routes(plan):
    """The options of the routes to connected hosts, by the node that has any."""
    return {end["node"]: end["route"] for link in plan["network"]["links"] for end in link["ends"] if "route" in end}


def test_the_ends_of_a_hop_carry_the_options_of_their_hosts(plans):
    found = routes(next(iter(plans((FY97, OPTIONS)).values())))
    assert found == {
        "h1": NONE | {"initcwnd": 3, "rto_min_ms": 1000},
        "h2": NONE | {"advmss": 600, "quickack": 1},
    }


def test_an_end_without_options_or_towards_a_router_says_nothing(plans):
    assert routes(next(iter(plans((FY97, "preset: modern}\n  h2: {preset: modern")).values()))) == {}
    assert routes(written(planning.plan(scenario.cells(scenario.load("fy97/fig04:kernel"))[0]))) == {}


@pytest.mark.parametrize(
    ("traffic", "carriers"),
    [
        ("workloads: [{kind: bulk, name: near, from: ws1, to: ws3, size: 1 kB}]", {"ws1", "ws3"}),
        ("workloads: [{kind: bulk, name: far, from: ws1, to: ws2, size: 1 kB}]", set()),
        ("events: [{at: 1 s, node: ws1, command: iperf3 -c 10.1.0.3}]", {"ws1", "ws3"}),
    ],
)
def test_hosts_on_one_lan_carry_them_if_they_may_talk(planned, traffic, carriers):
    hosts = "hosts: {ws1: {preset: fy97-reno}, ws2: {preset: fy97-reno}, ws3: {preset: fy97-reno}}"
    plan = planned(f"kind: scenario\nversion: 1\ntitle: LAN\ntopology: fy97\n{hosts}\n{traffic}\n")
    assert set(routes(written(plan))) == carriers
