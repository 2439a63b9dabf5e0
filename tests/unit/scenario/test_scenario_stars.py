"""`*` in a path stands for what the network of each point has; what an axis sets is in every cell with its label."""

import pytest

from scpslab import scenario
from scpslab.scenario import planning
from tests.cases import refusal

CHAIN = """\
from scpslab.topology import Direction, Network, Parameters, Queue, count

PARAMETERS = Parameters(hops=count(1, "hops", least=1, most=9))


def describe(p):
    net = Network("chain")
    for number in range(1, p["hops"] + 1):
        net.host(f"a{number}")
        net.host(f"b{number}")
        net.switch(f"sat{number}")
        line = Direction("up", 2_000_000, 0, Queue(limit_bytes=125_000), 50_000_000)
        ends = {"a_ip": f"10.0.{number}.1/24", "b_ip": f"10.0.{number}.2/24"}
        net.link(f"a{number}", f"b{number}", name=f"hop{number}", via=f"sat{number}", forward=line, **ends)
    return net
"""
STAR = "links.*.*.errors.ber"
TRANSFER = "{kind: bulk, name: transfer, from: a1, to: b1, size: 100 kB}"
HOPS = "hops: {set: [parameters.hops], values: [1, 3]}"
THREE = ["hop1", "hop2", "hop3"]


@pytest.fixture
def write(tmp_path):
    """Writes a scenario of the chain, and gives its path."""
    (tmp_path / "chain.py").write_text(CHAIN)

    def write(*lines: str) -> str:
        head = "kind: scenario", "version: 1", "topology: ./chain.py", f"workloads: [{TRANSFER}]"
        (tmp_path / "chain.yaml").write_text("\n".join((*head, *lines)))
        return str(tmp_path / "chain.yaml")

    return write


def with_errors(name, *overrides):
    """The links with bit errors, and how many hosts are unmodified BBR's, of each cell."""
    cells = scenario.cells(scenario.load(name, overrides))
    plans = {cell.id: planning.plan(cell) for cell in cells}
    stacks = {
        one: [node.sysctls["net.ipv4.tcp_congestion_control"] for node in plan.network.nodes if node.kind == "host"]
        for one, plan in plans.items()
    }
    return {
        one: (sorted({part.link for part in plan.cell.impairments}), set(stacks[one])) for one, plan in plans.items()
    }


def test_a_star_of_an_axis_stands_for_all_of_each_point_whatever_the_order_of_the_axes(write):
    axes = HOPS, f"ber: {{set: [{STAR}], values: [2e-5]}}", "cc: {cases: {bbr: {hosts.*.preset: bbr}}}"
    for some in (axes, axes[::-1]):
        found = with_errors(write(f"sweep: {{{', '.join(some)}}}"))
        assert list(found.values()) == [(["hop1"], {"bbr"}), (THREE, {"bbr"})]


@pytest.mark.parametrize("first", [True, False])
def test_a_star_of_a_variant_or_an_option_stands_for_all_of_the_network_that_they_make(write, first):
    variant = ("parameters.hops: 3", f"{STAR}: 2e-5")[:: 1 if first else -1]
    name = write(f"variants: {{long: {{set: {{{', '.join(variant)}}}}}}}")
    assert with_errors(f"{name}:long")["r1"][0] == THREE
    options = ("parameters.hops=3", f"{STAR}=2e-5")[:: 1 if first else -1]
    assert with_errors(name, *options)["r1"][0] == THREE


def test_a_star_of_an_option_that_stands_for_more_at_a_point_is_refused_with_the_axis_that_follows(write, scpslab):
    name = write(f"sweep: {{{HOPS}}}")
    code, _, said = scpslab("validate", name, "--set", f"{STAR}=2e-5")
    assert code == 2
    assert said == (
        f"error: --set {STAR}=2e-5: found {STAR}, which stands for other places with parameters.hops 3; expected the "
        f"same everywhere. Make it an axis, which follows: --set 'sweep.NAME={{set: [{STAR}], values: [2e-05]}}'.\n"
    )
    assert scpslab("validate", name, "--set", f"sweep.ber={{set: [{STAR}], values: [2e-05]}}")[0] == 0


def test_a_star_that_matches_nothing_at_one_point_is_refused_there(write, tmp_path):
    # Without a relay a link is none that is studied.
    direct = CHAIN.replace('via=f"sat{number}"', 'via=f"sat{number}" if p["hops"] > 1 else None').replace(
        "50_000_000)", '50_000_000 if p["hops"] > 1 else 0)'
    )
    name = write(f"parameters: {{hops: 2}}\nsweep: {{{HOPS}, ber: {{set: [{STAR}], values: [0]}}}}")
    (tmp_path / "chain.py").write_text(direct)
    said = refusal(lambda: scenario.cells(scenario.load(name)))
    assert f'sweep.ber: {STAR} of hops=1,ber=0: found "*" after links, which matches nothing; expected' in said


def test_an_axis_that_replaces_a_part_of_another_is_refused(write):
    axes = f"b: {{set: [{STAR}], values: [0, 1e-5]}}, c: {{set: [links.hop1.up.errors.ber], values: [1e-6]}}"
    said = refusal(lambda: scenario.cells(scenario.load(write(f"sweep: {{{axes}}}"))))
    assert said.endswith(
        'sweep.b: found links.hop1.up.errors.ber, which the axis "c" replaces; expected a key that no other axis sets. '
        "Name the places that each axis is for."
    )
    both = "b: {set: [links.hop1.up.errors.ber], values: [0]}, c: {set: [links.hop1.return.errors.ber], values: [1e-6]}"
    assert len(scenario.cells(scenario.load(write(f"sweep: {{{both}}}")))) == 1
