"""Random streams by name: an addition changes nothing that was there; what is compared meets the same (ADR 0010, 11)."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scpslab import scenario
from scpslab.core.seeds import stream, uniform
from scpslab.scenario import planning

STACKS = (
    "sweep:\n  stack: {cases: {reno: {hosts.*.preset: fy97-reno}, bbr: {hosts.*.preset: modern, hosts.*.congestion_control: "
    "bbr}}}\n"
)


def error_seeds(plan):
    return {
        (one["link"], one["direction"]): one["errors"]["seed"] for one in plan["cell"]["impairments"] if "errors" in one
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
