"""Plans say everything, in base units, and the same thing every time. Points of a sweep that are planned alike are
named, by validate and by run. What a host's TCP keeps with routes holds towards hosts on its own subnet too, where
no route of the topology leads. Costs: sums over cells, no cell faster than itself, and storage only where it was
measured. Random streams by name: an addition changes nothing that was there; what is compared meets the same (ADR
0010, 11).
"""

import copy
import json
import shutil
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scpslab import scenario
from scpslab.cli.plan import cost_text
from scpslab.core import units
from scpslab.core.seeds import stream, uniform
from scpslab.plan import write
from scpslab.plan import write as written
from scpslab.plan.routes import Route
from scpslab.plan.workloads import Traffic
from scpslab.scenario import planning, topologies
from scpslab.scenario.planning import Cost
from tests import golden
from tests.cases import changed, steps

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


NO_MODEL = (("model: independent, ber: 1e-6", "model: none"), ("links.hop.*", "links.hop.forward"))
SIZES = "sweep:\n  size: {set: [workloads.transfer.size], values: [1 kB, 2 kB, 3 kB, 4 kB, 5 kB]}\n"


# The first groups are named and the others counted.
IDLE = {"a rate of a model": (), "no model": NO_MODEL, "many groups": (*NO_MODEL, ("sweep:\n", SIZES))}


@pytest.mark.parametrize("name", IDLE)
def test_a_bit_error_rate_of_no_error_model_is_named(load, small, name, tmp_path):
    loaded = load(changed(small, *IDLE[name]))
    planned = {cell.id: planning.plan(cell) for cell in scenario.cells(loaded)}
    warnings = planning.warnings(planned, loaded.places.of(("sweep",)))
    golden.Case("sweep that changes nothing", name).hold("\n".join(warnings) or "no warning", tmp_path)


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


NAME = "links/transfer"


def test_a_cost_is_the_sum_of_its_cells():
    plans = [planning.plan(cell) for cell in scenario.cells(scenario.load(NAME))]
    times = [planning.expected(plan).wall_s for plan in plans]
    cost = Cost.of(plans)
    assert cost.cells == len(plans)
    assert cost.busy_s == pytest.approx(sum(times))
    assert cost == Cost.of(plans[:1]) + Cost.of(plans[1:])
    assert cost.wall_s(1) == pytest.approx(sum(times))
    assert cost.wall_s(1000) == max(times)
    assert cost.memory_mib(3) - cost.memory_mib(2) == 2 * plans[0].network.memory_mib


def test_storage_is_said_where_it_was_measured(run_dir, tmp_path):
    assert "storage: not known" in cost_text(NAME, [], runs=tmp_path / "none")
    (run_dir / "manifest.json").write_text(f'{{"format": 1, "scenario": "{NAME}"}}')
    for cell in (run_dir / "cells").iterdir():
        shutil.rmtree(cell)
        cell.mkdir()
        (cell / "plan.json").write_bytes(bytes(2_000_000))
    assert "storage: 6 MB for 3 of the 3 cells" in cost_text(NAME, [], runs=run_dir.parent)
    (run_dir / "manifest.json").write_text("damaged")
    assert "storage: not known" in cost_text(NAME, [], runs=run_dir.parent)
    assert "3 cells in 1 scenario," in cost_text(NAME, [], runs=run_dir.parent)


def test_a_campaign_costs_what_its_scenarios_cost(tmp_path):
    runs = f"- {{scenario: {NAME}}}\n- {{scenario: links/round-trip, variant: [test]}}\n"
    (file := tmp_path / "both.yaml").write_text(f"kind: campaign\nversion: 1\ntitle: Two\nruns:\n{runs}")
    both, *one = (cost_text(str(name), [], runs=tmp_path) for name in (file, NAME, "links/round-trip:test"))
    assert "in 2 scenarios" in both
    assert int(both.split()[0]) == sum(int(text.split()[0]) for text in one)


def test_what_ends_with_the_required_workloads_counts_until_then(cells):
    flow = "  - {kind: iperf3, name: flow, from: h1, to: h2, duration: DURATION, required: false, start: 0 s}\n"
    late = "  - {kind: ping, name: late, from: h1, to: h2, count: 1, required: false, start: 900 s}\n"
    text = "kind: scenario\nversion: 1\ntopology: point_to_point\nworkloads:\n" + flow + late
    text += "  - {kind: bulk, name: transfer, from: h1, to: h2, size: 1 MB}\n"
    short, long = (
        planning.expected(planning.plan(*cells(text.replace("DURATION", f"{seconds} s")))) for seconds in (60, 600)
    )
    assert short.wall_s == pytest.approx(long.wall_s, rel=0.01)


STACKS = (
    "sweep:\n  stack: {cases: {reno: {hosts.*.preset: fy97-reno}, bbr: {hosts.*.preset: modern, hosts.*.congestion_control: "
    "bbr}}}\n"
)


def error_seeds(plan):
    return {
        (one["link"], one["direction"]): one["errors"]["seed"]
        for one in plan["cell"]["impairments"]
        if one.get("errors", {"model": "none"})["model"] != "none"
    }


@pytest.mark.parametrize(
    "change",
    [
        ("values: [0, 1e-6, 1e-5]", "values: [0, 1e-6, 5e-6, 1e-5, 1e-4]"),
        ("values: [0, 1e-6, 1e-5]", "values: [1e-5, 1e-6, 0]"),
        ("repeats: 2", "repeats: 3"),
    ],
    ids=["more values", "another order", "more repeats"],
)
def test_more_cells_leave_the_plans_of_the_others_alone(plans, change):
    before, after = plans(), plans(change)
    assert {cell: after[cell] for cell in before} == before


def test_more_probes_change_nothing_but_the_probes(plans):
    before, after = plans(), plans(("probes:\n", "probes:\n  - {kind: tcp_info, node: h1}\n"))
    for cell, plan in before.items():
        assert {**after[cell], "cell": after[cell]["cell"] | {"probes": plan["cell"]["probes"]}} == plan


def test_another_axis_leaves_the_streams_of_links_and_workloads_alone(plans):
    before, after = plans(), plans(("sweep:\n", STACKS))
    for cell, plan in before.items():
        same = copy.deepcopy(after[f"stack=reno,{cell}"])
        same["cell"] |= {name: plan["cell"][name] for name in ("id", "axes", "kernel_seed")}
        assert same == plan


def test_stacks_compared_meet_the_same_errors(plans):
    made = plans(("sweep:\n", STACKS))
    for cell, plan in made.items():
        if cell.startswith("stack=reno"):
            other = made[cell.replace("reno", "bbr")]
            assert error_seeds(plan) == error_seeds(other)
            assert bool(error_seeds(plan)) == ("ber=0," not in cell)
            assert plan["cell"]["kernel_seed"] != other["cell"]["kernel_seed"]


def test_stacks_compared_meet_the_same_traffic():
    draws = {}
    for cell in scenario.cells(scenario.load("fy97/fig14:kernel")):
        rates = planning.plan(cell).cell.workloads[1].rates_bps
        draws.setdefault((cell.axes["level"], cell.repeat), set()).add(rates)
    assert {len(different) for different in draws.values()} == {1}


def test_repeats_directions_models_and_settings_have_streams_of_their_own(plans):
    models = "errors: {set: [links.hop.*.errors.model], values: [independent, clustered]}"
    made = plans(("sweep:\n", f"sweep:\n  {models}\n"))
    seeds = [seed for cell, plan in made.items() if "ber=0," not in cell for seed in error_seeds(plan).values()]
    assert len(set(seeds)) == len(seeds) == 2 * 2 * 2 * 2


def test_another_root_is_another_world(plans):
    before, after = plans(), plans(("seed: 7", "seed: 8"))
    for cell, plan in before.items():
        assert not set(error_seeds(plan).values()) & set(error_seeds(after[cell]).values())


def test_streams_are_what_they_were():
    # Kept as they are: another value here would mean other results from the same scenario.
    assert stream(1997, "errors", "hop", "data") == "c6c645ea30e565785d0e183b82a0362ca81b92cdc2238534906647ed5f4aacf8"
    assert [round(value, 6) for value in uniform(stream(1, "x"), 3)] == [0.592884, 0.684907, 0.818833]


@given(st.integers(0), st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_streams_of_different_names_differ(root, one, other):
    assert (stream(root, *one) == stream(root, *other)) == (one == other)


@given(st.text(max_size=10), st.integers(0, 50))
def test_uniform_numbers_lie_in_their_interval_and_more_of_them_begin_the_same(seed, count):
    numbers = uniform(seed, count)
    assert all(0 <= number <= 1 for number in numbers)
    assert uniform(seed, count + 5)[:count] == numbers
