"""Paths into a scenario: what `*` stands for, and paths that lead nowhere."""

import pytest

from scpslab import scenario
from tests import golden
from tests.cases import refusal

BARE = """kind: scenario
version: 1
title: Bare
topology: {topology}
workloads: [{{kind: {kind}, name: transfer, from: {source}, to: {sink}, size: 100 kB}}]
"""


def bare(topology="point_to_point", source="h1", sink="h2", kind="bulk", more=""):
    return BARE.format(topology=topology, source=source, sink=sink, kind=kind) + more


def test_star_means_the_hosts_of_the_topology_even_if_the_scenario_names_none(load):
    text = bare(more="sweep: {cc: {set: [hosts.*.congestion_control], values: [cubic, bbr]}}\n")
    for cell, congestion in zip(scenario.cells(load(text)), ("cubic", "bbr"), strict=True):
        found = {name: host.congestion_control for name, host in cell.model.hosts.items()}
        assert found == {"h1": congestion, "h2": congestion}


def test_star_means_all_hosts_where_the_scenario_names_some(load):
    text = bare("star", "t1", "server", more="parameters: {terminals: 3}\nhosts: {t1: {preset: modern}}\n")
    hosts = load(text, "hosts.*.congestion_control=bbr").model.hosts
    assert {name: host.congestion_control for name, host in hosts.items()} == dict.fromkeys(
        ("t1", "t2", "t3", "server"), "bbr"
    )


def test_star_leaves_bystanders_alone(load):
    assert set(load(bare("fy97", "ws1", "ws2"), "hosts.*.congestion_control=bbr").model.hosts) == {"ws1", "ws2"}


@pytest.mark.parametrize("more", ["hosts: {ws3: {preset: modern}}\n", ""])
def test_star_means_a_bystander_that_the_scenario_speaks_of(load, more):
    text = bare("fy97", "ws1" if more else "ws3", "ws2", more=more)
    assert set(load(text, "hosts.*.congestion_control=bbr").model.hosts) == {"ws1", "ws2", "ws3"}


def test_items_of_a_list_that_have_no_names_are_counted_from_one(load):
    text = bare(more="links: {hop: {forward: {delay_table: [{at: 0 s, delay: 9 ms}, {at: 15 s, delay: 4 ms}]}}}\n")
    steps = load(text, "links.hop.forward.delay_table.2.delay=6 ms").model.links["hop"]["forward"].delay_table
    assert [step.delay.text for step in steps] == ["9 ms", "6 ms"]
    assert 'found "3" after links.hop.forward.delay_table; expected one of 1, 2' in refusal(
        load, text, "links.hop.forward.delay_table.3.delay=6 ms"
    )


def test_a_setting_that_is_a_mapping_belongs_to_one_cell_and_one_place(load):
    stacks = "stack: {cases: {a: {hosts.h1: {preset: fy97-reno}}, b: {hosts.h1: {preset: reno}}}}"
    tweaks = "tweak: {cases: {iw: {hosts.h1.initial_window: 9}, plain: {hosts.h2.preset: modern}}}"
    loaded = load(bare(more=f"sweep: {{{stacks}, {tweaks}}}\n"))
    before = loaded.model.model_dump()
    windows = {cell.id: cell.model.hosts["h1"].initial_window for cell in scenario.cells(loaded)}
    assert [windows[f"stack={stack},tweak={tweak},r1"] for stack in "ab" for tweak in ("iw", "plain")] == [9, None] * 2
    assert loaded.model.model_dump() == before


def test_what_a_star_sets_can_be_changed_at_one_of_its_places(load):
    hosts = load(bare(), "hosts.*={preset: fy97-reno}", "hosts.h1.initial_window=4").model.hosts
    assert {name: host.initial_window for name, host in hosts.items()} == {"h1": 4, "h2": None}
    errors = '"links.hop.*.errors": {model: independent, ber: 1e-6}, links.hop.return.errors.ber: 0'
    (cell,) = scenario.cells(load(bare(more=f"sweep: {{errors: {{cases: {{a: {{{errors}}}}}}}}}\n")))
    rates = {name: direction.errors.settings.ber for name, direction in cell.model.links["hop"].items()}
    assert rates == {"forward": 1e-6, "return": 0}


@golden.each("paths with a star")
def test_a_path_that_matches_nothing_is_an_error(case, load, tmp_path):
    case.hold(refusal(load, bare(more="probes: []\n"), case), tmp_path)


def test_a_skip_that_matches_nothing_is_an_error(load, small):
    said = refusal(load, small + "skip: [{ber: 0.5}]\n")
    assert 'skip[1].ber: found "0.5", which matches nothing; expected one of 0, 1e-06, 1e-05' in said


def test_a_skip_may_match_what_only_a_variant_has_or_an_override_left_out(load, small):
    load(small + "skip: [{ber: 1e-4}]\nvariants: {worse: {sweep: {ber: [1e-4, 1e-6]}}}\n")
    assert len(scenario.cells(load(small + "skip: [{ber: 1e-5}]\n", "sweep.ber=[0]"))) == 2
