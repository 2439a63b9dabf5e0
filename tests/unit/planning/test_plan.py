"""Plans say everything, in base units, and the same thing every time."""

import json
from dataclasses import replace

import pytest
import yaml

from scpslab import scenario
from scpslab.core import units
from scpslab.plan import write
from scpslab.plan.routes import Route
from scpslab.plan.workloads import Traffic
from scpslab.scenario import planning, topologies
from tests import golden
from tests.cases import steps

NOISE = (
    "{kind: bulk, name: transfer, from: h1, to: h2, size: 100 kB}",
    "{kind: background, name: noise, from: h1, to: h2, level: 150}",
)


def hop(plan):
    (link,) = (link for link in plan["network"]["links"] if link["name"] == "hop")
    return {direction["name"]: direction for direction in link["directions"]}


def errors_of(plan, direction="forward", link="hop"):
    (found,) = (
        one["errors"] for one in plan["cell"]["impairments"] if (one["link"], one["direction"]) == (link, direction)
    )
    return found


def test_plan_of_the_report_s_network():
    (first, *_) = scenario.cells(scenario.load("fy97/fig04:kernel"))
    plan = write(planning.plan(first))
    data = hop(plan)["forward"]
    assert (data["rate_bps"], data["delay_ns"], data["overhead_bytes"]) == (2_000_000, 265_000_000, 4)
    assert data["queue"]["limit_bytes"] == 132_500
    (transfer,) = plan["cell"]["workloads"]
    assert (transfer["bytes"], transfer["segment_bytes"]) == (4_000_000, 1400)
    assert (transfer["send_window_bytes"], transfer["receive_window_bytes"]) == (168_000, 200_200)
    assert transfer["to_ip"] == "10.2.0.2"
    ws1 = next(node for node in plan["network"]["nodes"] if node["name"] == "ws1")
    assert ws1["routes"][0]["initcwnd"] == 1
    assert ws1["sysctls"]["net.ipv4.tcp_congestion_control"] == "reno"
    assert ws1["sysctls"]["net.ipv4.tcp_sack"] == "0"
    assert [probe["interface"] for probe in plan["cell"]["probes"]] == ["ws2-lan2", "ws4-lan1"]


def test_a_star_has_a_hop_for_every_terminal():
    module = topologies.module("star")
    network = module.describe(module.PARAMETERS.read({"terminals": 200})).plan()
    addresses = [end.ip for link in network.links for end in link.ends]
    assert len(network.links) == 201
    assert len(set(addresses)) == len(addresses)


@pytest.mark.parametrize("terminals", [0, 201])
def test_a_star_of_no_or_too_many_terminals_is_refused(terminals, told):
    read = topologies.module("star").PARAMETERS.read
    told("terminals of a star", str(terminals), read, {"terminals": terminals}, error=units.UnitError)


def test_route_options_are_on_every_route():
    words = ["hosts.ws1.mss=1000 B", "hosts.ws1.rto_min=1500 ms", "hosts.ws1.initial_receive_window=4"]
    plan = planning.plan(scenario.cells(scenario.load("fy97/fig04:kernel", words))[0])
    options = {"initcwnd": 1, "initrwnd": 4, "advmss": 1000, "rto_min_ms": 1500, "quickack": None}
    assert plan.network.nodes[0].routes == (Route(to="default", via="10.1.0.254", **options),)


@golden.each("what settings are in a plan", "case place settings")
def test_settings_are_planned_in_base_units(case, plans, place, settings):
    plan = next(iter(plans(overrides=("sweep={}", "repeats=1", *settings.split(" + "))).values()))
    for step in steps(place):
        plan = plan[step]
    case.hold(yaml.safe_dump(json.loads(json.dumps(plan)), default_flow_style=None, sort_keys=False, width=110))


def test_another_content_of_a_vector_is_another_plan(first, tmp_path):
    digests = set()
    for content in (b"\x01\x00", b"\x01\x01"):
        (tmp_path / "a.bits").write_bytes(content)
        settings = errors_of(first("links.hop.forward.errors={model: vector-file, file: a.bits}", "sweep={}"))[
            "settings"
        ]
        assert settings["file"] == str(tmp_path / "a.bits")
        digests.add(settings["sha256"])
    assert len(digests) == 2


def test_congestion_rates_cover_the_virtual_limit_and_follow_the_level(plans):
    point = ("sweep={}", "repeats=1")
    # Without it there would be nothing that a cell waits for.
    event = ("seed: 7", "seed: 7\nevents: [{at: 1 s, link: hop, state: up}]")
    (at_150,) = plans(NOISE, event, overrides=point)["r1"]["cell"]["workloads"]
    (at_200,) = plans(NOISE, event, overrides=(*point, "workloads.noise.level=200"))["r1"]["cell"]["workloads"]
    low, high = at_150["rates_bps"], at_200["rates_bps"]
    assert (at_150["max_rate_bps"], at_200["max_rate_bps"], len(low)) == (1_000_000, 2_000_000, 4000 // 5)
    assert 0 <= min(low) <= max(low) <= 1_000_000
    # The mean of U(0, 1 Mbit/s), three standard errors.
    assert abs(sum(low) / 800 - 500_000) < 3 * 1_000_000 / (12 * 800) ** 0.5
    assert all(abs(2 * one - other) <= 2 for one, other in zip(low, high, strict=True))
    # The scenario's own rate counts.
    plan = plans(NOISE, event, overrides=(*point, "links.hop.forward.rate=1 Mbit/s"))
    assert next(iter(plan.values()))["cell"]["workloads"][0]["max_rate_bps"] == 500_000


def test_generator_is_never_required(plans):
    change = ("size: 100 kB}", "size: 100 kB}\n  - {kind: background, name: noise, from: h1, to: h2, level: 150}")
    plan = next(iter(plans(change).values()))
    assert [workload["required"] for workload in plan["cell"]["workloads"]] == [True, False]


def test_a_serial_link_keeps_its_own_words_and_the_scenario_s():
    axes = {"stack": "linux-2.0", "ack_rate": "2400 bit/s", "size": "1 kB", "ber": 1e-5}
    cells = scenario.cells(scenario.load("sgls/itc-unbalanced"))
    planned = write(planning.plan(next(cell for cell in cells if cell.axes == axes)))
    (link,) = planned["network"]["serial_links"]
    assert planned["network"]["links"] == []
    assert set(link) == {"name", "bits_per_byte", "buffer_bytes", "vector_bits", "ppp", "ends", "directions"}
    assert [(way["name"], way["from"], way["rate_bps"], way["delay_ns"]) for way in link["directions"]] == [
        ("forward", "satellite", 115_200, 23_300_000),
        ("return", "ground", 2400, 23_300_000),
    ]
    there, back = (errors_of(planned, name, "serial") for name in ("forward", "return"))
    assert there["settings"] == back["settings"] == {"ber": 1e-5}
    assert there["seed"] != back["seed"]
    assert [end["route"]["initcwnd"] for end in link["ends"]] == [1, 1]
    (transfer,) = planned["cell"]["workloads"]
    assert (transfer["to_ip"], transfer["server_ip"]) == ("10.7.0.2", "10.7.0.1")


def test_least_time_of_a_transfer_and_of_a_kind_that_says_no_time():
    """A start at 1 s, 16 s of data at 2 Mbit/s, two round trips of 530 ms; without the data where no time is known."""
    plan = planning.plan(scenario.cells(scenario.load("fy97/fig04:kernel"))[0])
    assert planning.least_virtual_s(plan) == pytest.approx(1 + 16 + 2 * 0.53)
    new = Traffic(name="new", kind="new", from_="ws1", to="ws2", to_ip="10.2.0.2", start_ns=10**9, required=True)
    unknown = replace(plan, cell=replace(plan.cell, workloads=(new,)))
    assert planning.least_virtual_s(unknown) == pytest.approx(1 + 2 * 0.53)
    table = ["links.*.*.delay_table=[{at: 0 s, delay: 10 ms}, {at: 1 s, delay: 2 s}]"]
    moved = planning.plan(scenario.cells(scenario.load("fy97/fig04:kernel", table))[0])
    assert planning.least_virtual_s(moved) == pytest.approx(1 + 16 + 4 * 0.01)


def test_points_that_differ_in_errors_share_a_network_and_nothing_that_is_drawn():
    """What is worked out for a network is worked out once; the plans are those of each cell alone."""
    cells = scenario.cells(scenario.load("fy97/fig04:kernel", ["repeats=3"]))
    found = planning.plans(cells)

    assert found == {cell.id: planning.plan(cell) for cell in cells}
    stacks = {cell.axes["stack"] for cell in cells}
    assert len({id(plan.network) for plan in found.values()}) == len(stacks) == 3
    assert len({plan.cell.impairments[0].errors.seed for plan in found.values() if plan.cell.impairments}) >= 3
