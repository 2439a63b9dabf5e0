"""Starts that are drawn, mixes of files, and workloads of one case: what a plan has of them, and what results say."""

import pytest

from scpslab import scenario
from scpslab.analysis.collect import columns_by_workload
from scpslab.analysis.viewpoints import drawn
from scpslab.plan import read, write
from scpslab.scenario import planning

HEAD = "kind: scenario\nversion: 1\ntopology: point_to_point\nworkloads:\n"
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
