"""Plans say everything, in base units, and the same thing every time."""

from dataclasses import replace

import pytest

from scpslab import scenario
from scpslab.core import units
from scpslab.plan import write
from scpslab.plan.routes import Route
from scpslab.plan.topology import catalogue
from scpslab.plan.workloads import Traffic
from scpslab.scenario import planning

NOISE = (
    "{kind: bulk, name: transfer, from: h1, to: h2, size: 100 kB}",
    "{kind: background, name: noise, from: h1, to: h2, level: 150}",
)
LATER_THAN_1997 = ("tcp_sack", "tcp_dsack", "tcp_recovery", "tcp_early_retrans", "tcp_frto", "tcp_moderate_rcvbuf")


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
    module = catalogue.module("star")
    network = module.describe(module.PARAMETERS.read({"terminals": 200})).plan()
    addresses = [end.ip for link in network.links for end in link.ends]
    assert len(network.links) == 201
    assert len(set(addresses)) == len(addresses)


@pytest.mark.parametrize(("terminals", "bound"), [(0, "at least 1"), (201, "at most 200")])
def test_a_star_of_no_or_too_many_terminals_is_refused(terminals, bound):
    with pytest.raises(units.UnitError, match=f'terminals: found "{terminals}"; expected {bound}'):
        catalogue.module("star").PARAMETERS.read({"terminals": terminals})


@pytest.mark.parametrize(
    ("preset", "congestion", "later"), [("fy97-reno", "reno", "000000"), ("modern", "cubic", "111321")]
)
def test_presets_in_kernel_settings(first, preset, congestion, later):
    sysctls = first(f"hosts.*.preset={preset}")["network"]["nodes"][0]["sysctls"]
    assert sysctls["net.ipv4.tcp_congestion_control"] == congestion
    assert "".join(sysctls[f"net.ipv4.{name}"] for name in LATER_THAN_1997) == later
    same = {"tcp_timestamps": "1", "tcp_window_scaling": "1", "tcp_ecn": "0", "tcp_no_metrics_save": "1"}
    assert {name: sysctls[f"net.ipv4.{name}"] for name in same} == same


def test_words_on_a_host_go_over_its_preset(first):
    words = "congestion_control: bbr, sack: false, initial_window: 3, mss: 1000 B, rto_min: 1 s"
    plan = first(f"hosts.*={{preset: modern, {words}, send_buffer: 64 kB, delayed_ack: true}}")
    sysctls, (transfer,) = plan["network"]["nodes"][0]["sysctls"], plan["cell"]["workloads"]
    assert sysctls["net.ipv4.tcp_congestion_control"] == "bbr"
    assert sysctls["net.ipv4.tcp_sack"] == sysctls["net.ipv4.tcp_dsack"] == "0"
    assert (transfer["send_window_bytes"], transfer["receive_window_bytes"]) == (64_000, None)
    assert transfer["delayed_ack"] is True


def test_route_options_are_on_every_route():
    words = ["hosts.ws1.mss=1000 B", "hosts.ws1.rto_min=1500 ms", "hosts.ws1.initial_receive_window=4"]
    plan = planning.plan(scenario.cells(scenario.load("fy97/fig04:kernel", words))[0])
    options = {"initcwnd": 1, "initrwnd": 4, "advmss": 1000, "rto_min_ms": 1500, "quickack": None}
    assert plan.network.nodes[0].routes == (Route(to="default", via="10.1.0.254", **options),)


def test_fixed_windows_without_autotuning_start_large_enough(first):
    host = first("hosts.*.preset=fy97-reno")["network"]["nodes"][0]
    assert host["sysctls"]["net.ipv4.tcp_rmem"].split()[1] == "400400"


def test_queue_of_a_direction(first):
    queue = hop(first("links.hop.forward.queue={limit: 50 packets}"))["forward"]["queue"]
    assert (queue["discipline"], queue["limit_bytes"], queue["limit_packets"]) == ("drop-tail", None, 50)
    assert queue["settings"] == {}
    queue = hop(first("links.hop.forward.queue={discipline: red, ecn: true}"))["forward"]["queue"]
    assert (queue["limit_bytes"], queue["ecn"]) == (125_000, True)
    assert queue["settings"] == {"min_bytes": 31_250, "max_bytes": 62_500, "probability": 0.1}
    queue = hop(first("links.hop.forward.queue={discipline: codel, codel_interval: 600 ms}"))["forward"]["queue"]
    assert queue["settings"] == {"target_ns": 5_000_000, "interval_ns": 600_000_000}


def test_directions_differ_when_the_scenario_says_so(first):
    plan = hop(
        first("links.hop.forward.rate=1 Mbit/s", "links.hop.return.rate=9600 bit/s", "links.hop.return.delay=3 ms")
    )
    assert (plan["forward"]["rate_bps"], plan["return"]["rate_bps"]) == (1_000_000, 9600)
    assert (plan["forward"]["delay_ns"], plan["return"]["delay_ns"]) == (250_000_000, 3_000_000)


def test_delay_table_begins_at_the_epoch(first):
    later, from_0 = (
        hop(first(f"links.hop.forward.delay_table=[{{at: {at}, delay: 300 ms}}]"))["forward"]["delay_table"]
        for at in ("5 s", "0 s")
    )
    assert later == [[0, 250_000_000], [5 * 10**9, 300_000_000]]
    assert from_0 == [[0, 300_000_000]]


def test_errors_of_every_model(first, tmp_path):
    (tmp_path / "a.bits").write_bytes(b"\x01\x00")
    common = "sweep={}", "links.hop.return.errors={model: none}"
    settings = {
        "{model: independent, ber: 1e-5}": {"ber": 1e-5},
        "{model: clustered, ber: 1e-5}": {"ber": 1e-5, "mean_errors_per_burst": 4.0, "mean_gap_in_burst": 3.0},
        "{model: gilbert-elliott, good_to_bad_per_bit: 1e-5, bad_to_good_per_bit: 1e-3, ber_bad: 0.1}": dict(
            zip(
                ("good_to_bad_per_bit", "bad_to_good_per_bit", "ber_good", "ber_bad"),
                (1e-5, 1e-3, 0.0, 0.1),
                strict=True,
            )
        ),
        "{model: none}": {},
    }

    def found(text):
        return errors_of(first(f"links.hop.forward.errors={text}", *common))["settings"]

    assert {text: found(text) for text in settings} == settings
    before = found("{model: vector-file, file: a.bits}")
    assert before["file"] == str(tmp_path / "a.bits")
    (tmp_path / "a.bits").write_bytes(b"\x01\x01")
    assert found("{model: vector-file, file: a.bits}")["sha256"] != before["sha256"]


def test_no_errors_is_no_model_but_drops_and_outages_stay(first):
    drops = "drop_packets: [9, 3, 3], drop_min_bytes: 500 B, outages: [{from: 1 s, to: 2 s}]"
    errors = errors_of(first(f"links.hop.forward.errors={{ber: 0, {drops}}}", "sweep={}"))
    assert (errors["model"], errors["settings"]) == ("none", {})
    assert (errors["drop_packets"], errors["drop_min_bytes"], errors["outages"]) == ([3, 9], 500, [[10**9, 2 * 10**9]])


def test_congestion_rates_cover_the_virtual_limit_and_follow_the_level(plans):
    point = ("sweep={}", "repeats=1")
    (at_150,) = plans(NOISE, overrides=point)["r1"]["cell"]["workloads"]
    (at_200,) = plans(NOISE, overrides=(*point, "workloads.noise.level=200"))["r1"]["cell"]["workloads"]
    low, high = at_150["rates_bps"], at_200["rates_bps"]
    assert (at_150["max_rate_bps"], at_200["max_rate_bps"], len(low)) == (1_000_000, 2_000_000, 4000 // 5)
    assert 0 <= min(low) <= max(low) <= 1_000_000
    # The mean of U(0, 1 Mbit/s), three standard errors.
    assert abs(sum(low) / 800 - 500_000) < 3 * 1_000_000 / (12 * 800) ** 0.5
    assert all(abs(2 * one - other) <= 2 for one, other in zip(low, high, strict=True))
    # The scenario's own rate counts.
    plan = plans(NOISE, overrides=("links.hop.forward.rate=1 Mbit/s",))
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
