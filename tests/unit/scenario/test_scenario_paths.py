"""Paths into a scenario: what `*` stands for, and paths that lead nowhere."""

import pytest

from scpslab import scenario
from scpslab.core.errors import ScenarioError

BARE = """kind: scenario
version: 1
title: Bare
topology: {topology}
workloads: [{{kind: {kind}, name: transfer, from: {source}, to: {sink}, size: 100 kB}}]
"""


def bare(topology="point_to_point", source="h1", sink="h2", kind="bulk", more=""):
    return BARE.format(topology=topology, source=source, sink=sink, kind=kind) + more


def test_star_means_the_hosts_of_the_topology_even_if_the_scenario_names_none(load):
    text = bare(more="sweep: {cc: {set: [hosts.*.congestion], values: [cubic, bbr]}}\n")
    cells = {cell.id: cell.model for cell in scenario.cells(load(text))}
    assert {name: host.congestion for name, host in cells["cc=cubic,r1"].hosts.items()} == {
        "h1": "cubic",
        "h2": "cubic",
    }
    assert {name: host.congestion for name, host in cells["cc=bbr,r1"].hosts.items()} == {"h1": "bbr", "h2": "bbr"}


def test_star_means_all_hosts_where_the_scenario_names_some(load):
    text = bare("star", "t1", "server", more="parameters: {terminals: 3}\nhosts: {t1: {preset: modern}}\n")
    hosts = load(text, "hosts.*.congestion=bbr").model.hosts
    assert {name: host.congestion for name, host in hosts.items()} == dict.fromkeys(("t1", "t2", "t3", "server"), "bbr")


def test_star_leaves_bystanders_alone(load):
    assert set(load(bare("fy97", "ws1", "ws2"), "hosts.*.congestion=bbr").model.hosts) == {"ws1", "ws2"}


@pytest.mark.parametrize("more", ["hosts: {ws3: {preset: modern}}\n", ""])
def test_star_means_a_bystander_that_the_scenario_speaks_of(load, more):
    source = "ws1" if more else "ws3"
    assert set(load(bare("fy97", source, "ws2", more=more), "hosts.*.congestion=bbr").model.hosts) == {
        "ws1",
        "ws2",
        "ws3",
    }


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("hosts.*.congestion=nonsense", 'hosts.h1.congestion: found "nonsense"; expected one of bbr'),
        ("hosts.*.foo=3", 'hosts.h1.foo: found the unknown key "foo"'),
        (
            "links.hopp.*.errors.ber=1e-6",
            'found "hopp" after links, which matches nothing; expected one of hop. Did you mean hop?',
        ),
        ("probes.*.interval=1 s", 'found "*" after probes; expected none here'),
        ("parameters.*=1", 'found "*" after parameters; expected it for hosts'),
    ],
)
def test_a_path_that_matches_nothing_is_an_error(load, override, expected):
    with pytest.raises(ScenarioError) as refused:
        load(bare(more="probes: []\n"), override)
    assert expected in str(refused.value)


def test_a_skip_that_matches_nothing_is_an_error(load, small):
    with pytest.raises(
        ScenarioError, match=r'skip\[0\].ber: found "0.5", which matches nothing; expected one of 0, 1e-06, 1e-05'
    ):
        load(small + "skip: [{ber: 0.5}]\n")


def test_a_skip_may_match_what_only_a_variant_has_or_an_override_left_out(load, small):
    load(small + "skip: [{ber: 1e-4}]\nvariants: {worse: {sweep: {ber: [1e-4, 1e-6]}}}\n")
    assert len(scenario.cells(load(small + "skip: [{ber: 1e-5}]\n", "sweep.ber=[0]"))) == 2
