"""Properties of links: queues of one bandwidth-delay product follow rate and delays, however these are set; random
streams keep the names with which they began. Starts that are drawn, mixes of files, and workloads of one case: what
a plan has of them, and what results say. Events that follow a line of a file of their cell.
"""

import pytest

from scpslab import plan as plan_format
from scpslab import scenario
from scpslab.analysis.collect import columns_by_workload
from scpslab.core.seeds import stream
from scpslab.plan import read, write
from scpslab.plan.chances import drawn
from scpslab.plan.disciplines import FRAMED_PACKET_BYTES
from scpslab.runs.store import cell_key
from scpslab.scenario import planning
from scpslab.scenario.recorded import Recorded
from tests import golden
from tests.cases import changed, refusal, whole
from tests.networks import RELAY, ROVER

OWN = changed(RELAY, ("Queue,", "OneProduct,"), ("Queue(limit_bytes=64000)", "OneProduct()"))
LEAST = 4 * FRAMED_PACKET_BYTES
GATEWAY = whole(
    "topology: gateway\nworkloads: [{kind: bulk, name: transfer, from: client, to: server, size: 100 kB}]\n"
)


def limits(cell):
    hop = next(link for link in planning.plan(cell).network.links if link.name == "hop")
    return [direction.queue and direction.queue.limit_bytes for direction in hop.directions]


@pytest.mark.parametrize(
    ("set_", "expected"),
    [
        ((), [662_500, 66_250]),
        (("links.hop.*.delay=10 ms",), [25_000, LEAST]),
        (("links.hop.*.rate=2 Mbit/s",), [132_500, 132_500]),
        (("links.hop.*.delay_table=[{at: 0 s, delay: 10 ms}, {at: 9 s, delay: 1 s}]",), [25_000, LEAST]),
        # A change later on is an event.
        (("links.hop.*.delay_table=[{at: 9 s, delay: 1 s}]",), [662_500, 66_250]),
        (("links.hop.*.delay=10 ms", "links.hop.*.queue.limit=64 kB"), [64_000, 64_000]),
        (("links.hop.*.delay=10 ms", "links.hop.*.queue.limit=9 packets"), [None, None]),
        (("links.hop.*.queue.limit=0.25 BDP",), [165_625, 16_562]),
        # The number that is said, where the topology would have four packets at least.
        (("links.hop.*.delay=10 ms", "links.hop.*.queue.limit=1 BDP"), [25_000, 2_500]),
        (("links.hop.*.queue={discipline: ack-filter, limit: 4 BDP}",), [2_650_000, 265_000]),
        (("links.hop.*.delay=100 ms", "links.hop.*.queue={discipline: codel, codel_target: 90 ms}"), [250_000, 25_000]),
    ],
)
def test_the_limit_is_one_product_of_what_the_link_has_unless_it_is_stated(cells, set_, expected):
    (cell,) = cells(GATEWAY, *set_)
    assert limits(cell) == expected


def test_products_can_be_swept_and_give_red_its_thresholds(cells):
    axis = "queue: {set: [links.hop.forward.queue.limit], values: [0.5 BDP, 1 BDP]}"
    found = cells(f"{GATEWAY}sweep: {{{axis}}}\n", "links.hop.forward.queue.discipline=red")
    assert [cell.id for cell in found] == ["queue=0.5BDP,r1", "queue=1BDP,r1"]
    queues = [planning.plan(cell).network.links[2].directions[0].queue for cell in found]
    assert refusal(cells, GATEWAY, "links.lan2.*.delay=0 s", "links.lan2.forward.queue.limit=1 BDP").endswith(
        'found "1 BDP" on a link without delay; expected bytes or packets. Say one of them.'
    )
    assert [(one.limit_bytes, one.settings.min_bytes) for one in queues] == [(331_250, 82_812), (662_500, 165_625)]


def test_that_of_an_own_topology_follows_from_its_record_too(tmp_path):
    (tmp_path / "relay.py").write_text(OWN)
    (path := tmp_path / "own.yaml").write_text(ROVER)
    loaded = scenario.load(str(path), ["links.hop.data.rate=2 Mbit/s"])
    own = scenario.own_files(loaded, scenario.cells(loaded))
    again = scenario.load(str(path), ["links.hop.data.rate=2 Mbit/s"], Recorded(own.contents["topologies.json"]))
    assert again.network == loaded.network
    for one in (loaded, again):
        (cell,) = scenario.cells(one)
        assert limits(cell)[0] == 135_000


def test_random_streams_know_directions_by_the_names_with_which_they_began(cells):
    errors = "links.hop.forward.errors={model: independent, ber: 1e-5}", "links.hop.forward.jitter=1 ms"
    step = "events=[{at: 2 s, link: hop, ber: 1e-6}]"
    (cell,) = cells(GATEWAY, *errors, step)
    plan = planning.plan(cell)
    (impairment,) = plan.cell.impairments
    assert impairment.errors.seed == stream(1, "errors", "hop", "data", "independent", '{"ber": 1e-05}', 1)
    assert impairment.seed == stream(1, "disorder", "hop", "data", 1)
    assert plan.cell.events[0].seeds == (stream(1, "script", 0, "data", 1), stream(1, "script", 0, "ack", 1))


AFTER = "after: {log: records/transfer.jsonl, matches: connected, delay: 20 ms}, "


@pytest.fixture
def following(planned):
    """Plans a transfer with this before the change of its link."""
    text = "workloads: [{{kind: bulk, name: transfer, from: h1, to: h2, size: 100 kB}}]\nevents:\n  - {{{}link: hop, state: down}}\n"
    return lambda when: planned(whole(text.format(when)) + "  - {at: 5 s, link: hop, state: up}\n")


def test_a_plan_says_what_a_step_follows_and_when_it_came(following):
    plan = following(AFTER)
    known, unknown = plan.cell.events
    assert (known.t_ns, unknown.t_ns, unknown.after.delay_ns) == (5 * 10**9, None, 20_000_000)

    ran = plan.at_instants({2: 1234})
    assert plan_format.parse(plan_format.text(ran)).cell.events[1].t_ns == 1234
    assert ran.as_planned == plan != ran
    assert cell_key(ran, "engine") == cell_key(plan, "engine")


def test_a_cell_runs_once_more_for_each(following):
    one, two = (planning.expected(following(when)).wall_s for when in ("at: 4 s, ", AFTER))
    assert two == 2 * one


@golden.each("event that follows a line")
def test_what_no_event_can_follow_is_refused(following, tmp_path, case):
    case.hold(refusal(following, "" if case == "no time" else f"{case} "), tmp_path)


HEAD = whole("workloads:\n")
BULK = "  - {kind: bulk, name: transfer, from: h1, to: h2, size: 1 kB}\n"
MIX = "  - {kind: mix, name: web, from: h1, to: h2, per_second: 2, sizes: {10 kB: 3, 1 MB: 1}, EXTENT}\n"
PINGS = "  - {kind: ping, name: pings, from: h1, to: h2, start: {random: 2 s..4 s}}\n"
REPEATS = "repeats: 40\n"


def plans(cells, text, *overrides):
    return [planning.plan(cell) for cell in cells(HEAD + text, *overrides)]


def files(plan):
    return [(one.name, one.start_ns, one.bytes_, one.port) for one in plan.cell.workloads if one.part_of == "web"]


def mix(extent):
    return MIX.replace("EXTENT", extent)


def test_a_start_is_drawn_for_each_repeat_and_by_name_alone(cells, load):
    own = plans(cells, BULK + PINGS + REPEATS)
    starts = [plan.cell.workloads[1].start_ns for plan in own]
    assert len(set(starts)) == 40
    assert 2e9 <= min(starts) < 2.3e9
    assert 3.7e9 < max(starts) < 4e9
    assert own[0].cell.workloads[0].start_ns == 1e9
    others = plans(cells, PINGS + REPEATS, "workloads.pings.count=3")
    assert [plan.cell.workloads[0].start_ns for plan in others] == starts
    assert read(write(own[0])) == own[0]
    assert "drawn_start" not in write(own[0])["cell"]["workloads"][0]
    resolved = scenario.resolved_yaml(load(HEAD + PINGS))
    assert [planning.plan(cell) for cell in scenario.cells(load(resolved))] == plans(cells, PINGS)


def test_a_drawn_start_is_chance_that_pairs_of_cells_share(cells):
    sweep = "sweep: {count: {set: [workloads.pings.count], values: [1, 2]}}\nrepeats: 2\n"
    draws = [drawn(plan)["traffic of pings"] for plan in plans(cells, PINGS + sweep)]
    assert draws[0] == draws[2] != draws[1] == draws[3]


def test_a_number_of_files_has_the_same_draws_at_every_rate(cells):
    (slow, fast) = (plans(cells, mix("number: 40"), f"workloads.web.per_second={rate}")[0] for rate in (0.5, 5))
    assert [(name, size, port) for name, _, size, port in files(slow)] == [
        (f"web-{n}", size, 6000 + n) for n, size in enumerate((one[2] for one in files(fast)), 1)
    ]
    assert files(slow)[0][1] == files(fast)[0][1] == 1e9
    assert [at for _, at, _, _ in files(slow)] == pytest.approx([1e9 + 10 * (one[1] - 1e9) for one in files(fast)])
    assert files(slow) != files(plans(cells, mix("number: 40"), "seed=2", "workloads.web.per_second=0.5")[0])


def test_a_span_has_as_many_files_as_a_poisson_process_and_sizes_by_their_weights(cells):
    drawn = [files(plan) for plan in plans(cells, mix("span: 20 s") + REPEATS)]
    numbers = [len(one) for one in drawn]
    # The first one is sure: 1 + 40 on average, of 40 repeats a standard error of 1.
    assert 37 < sum(numbers) / 40 < 45
    assert len(set(numbers)) > 10
    assert all(1e9 <= at < 21e9 for one in drawn for _, at, _, _ in one)
    large = sum(size == 1_000_000 for one in drawn for _, _, size, _ in one) / sum(numbers)
    assert 0.2 < large < 0.3


def test_a_mix_is_one_workload_in_tables_paths_and_comparisons(cells, scpslab, write):
    text = HEAD + mix("number: 12") + BULK
    (plan,) = plans(cells, mix("number: 12") + BULK)
    columns = columns_by_workload(plan)
    assert {own for own, _ in columns} == {"web", "transfer"}
    assert (columns["web", "mix_s"], columns["web", "bytes"]) == ("mix_s", "web_bytes")
    assert list(drawn(plan)) == ["traffic of web"]
    _, out, _ = scpslab("validate", write(text))
    assert out.count("h1 ─hop→ h2") == 2


def test_programs_and_memory_are_counted_for_every_file(load, told):
    text = HEAD + mix("number: 120") + mix("number: 9").replace("web", "up").replace("h2, per", "h2, port: 7001, per")
    told("arrivals", "programs", load, f"{text}hosts: {{h1: {{stack: scps}}}}\n")
    told("arrivals", "span", load, HEAD + mix("span: 60 s"))
    told("arrivals", "weights", load, HEAD + mix("number: 3").replace(": 3,", ": 0,"))
    told("arrivals", "start", load, HEAD + PINGS.replace("2 s..4 s", "4 s..2 s"))
    told("arrivals", "form", load, HEAD + PINGS.replace("2 s..4 s", "4 s"))
    told("arrivals", "port", load, HEAD + mix("number: 3") + BULK.replace("size", "port: 6003, size"))
    told("arrivals", "name", load, HEAD + mix("number: 3") + BULK.replace("transfer", "web-3"))


def test_a_case_may_have_a_workload_probe_or_service_of_its_own(cells, load, told):
    added = "workloads.rival: {kind: ping, from: h1, to: h2}, probes.seen: {kind: capture, node: h2}"
    case = f"sweep: {{rival: {{cases: {{without: {{}}, with: {{{added}}}}}}}}}\n"
    without, added = (plan.cell for plan in plans(cells, BULK + case))
    assert [one.name for one in added.workloads] == ["transfer", "rival"]
    assert added.workloads[:1] == without.workloads
    assert (len(added.probes), len(without.probes)) == (1, 0)
    told("arrivals", "case", cells, HEAD + BULK, "workloads.rival={kind: ping, name: rivals, from: h1, to: h2}")
    told("arrivals", "there already", cells, HEAD + BULK, "workloads.transfer={kind: ping, from: h1, to: h2}")


def test_rate_controlled_transfers_of_a_host_at_once_are_warned_of(scpslab, write):
    two = BULK.replace("1 kB", "1 MB") + BULK.replace("transfer", "second").replace("1 kB", "1 MB, port: 5009")
    text = f"{HEAD}{two}hosts: {{h1: {{stack: scps, congestion_control: none}}, h2: {{stack: scps}}}}\n"
    for override, is_warned in (
        ("seed=2", True),
        ("workloads.second.start=60 s", False),
        ("hosts.h1.rate=none", False),
    ):
        _, _, said = scpslab("validate", write(text), "--set", override)
        assert ("transfers of h1 at once" in said) is is_warned, override
