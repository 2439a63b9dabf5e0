"""A label of a sweep never stands beside settings that are not its own."""

import pytest

from scpslab import scenario
from tests.cases import refusal

KERNEL = "fy97/fig04:kernel"
ADVICE = (
    "Choose cases with --set 'sweep.stack=[LABEL]', or add one of your own: --set 'sweep.stack.cases.NAME={PATH: "
    "VALUE}'."
)


def refused(name, *overrides):
    return refusal(scenario.load, name, overrides).splitlines()


def test_a_value_that_an_axis_replaces_is_refused():
    (line,) = refused(KERNEL, "links.hop.*.errors.ber=1e-5")
    assert line == (
        '--set links.hop.*.errors.ber=1e-5: found links.hop.forward.errors.ber, which the axis "ber" replaces; '
        "expected a key that no axis sets. Set the axis: --set 'sweep.ber=[1e-05]'."
    )


def test_a_value_that_contradicts_the_preset_of_a_case_is_refused():
    reno, cubic = refused(KERNEL, "hosts.ws1.congestion_control=bbr", "sweep.stack=[fy97-reno, cubic]")
    assert reno == (
        "--set hosts.ws1.congestion_control=bbr: found hosts.ws1 with congestion_control bbr instead of reno, which contradicts "
        f'case "fy97-reno" of the axis "stack"; expected what its preset says. {ADVICE}'
    )
    assert cubic.startswith(
        "--set hosts.ws1.congestion_control=bbr: found hosts.ws1 with congestion_control bbr instead of cubic"
    )
    (line,) = refused("fy97/fig04", "hosts.ws1.congestion_control=vegas", "sweep.stack=[scps-rate]")
    assert "with congestion_control vegas instead of none" in line


@pytest.mark.parametrize(
    "override",
    [
        "hosts.*.receive_buffer=100 kB",
        "hosts.*={preset: modern}",
        "hosts={ws1: {preset: modern}}",
        "hosts.ws1.sack=true",
        "sweep.stack.cases.fy97-reno={hosts.*.preset: modern}",
        "sweep={stack: {cases: {fy97-reno: {hosts.*.preset: modern}}}}",
    ],
)
def test_other_ways_to_the_same_lie_are_refused(override):
    assert refused(KERNEL, override)


@pytest.mark.parametrize(
    "overrides",
    [
        ["hosts.ws1.rto_min=1 s", "sweep.stack=[fy97-reno]"],
        ["hosts.ws1.congestion_control=reno", "sweep.stack=[fy97-reno]"],
        ["workloads.transfer.size=100 kB", "sweep.stack=[fy97-reno]"],
        ["sweep={}"],
        ["sweep.ber=[1e-4]", "sweep.stack=[fy97-reno]"],
        ["links.hop.*.errors.outages=[]", "sweep.stack=[fy97-reno]"],
        ["links.hop.*.errors.ber=1e-5", "sweep.ber=[1e-5]"],
    ],
    ids=lambda overrides: overrides[0],
)
def test_what_no_label_speaks_of_and_what_the_sweep_leaves_as_it_is_may_be_set(overrides):
    scenario.load(KERNEL, overrides)


def test_a_case_of_one_s_own_has_a_label_of_its_own():
    case = "sweep.stack.cases.mine={hosts.*.preset: fy97-reno, hosts.ws1.congestion_control: bbr}"
    cells = scenario.cells(scenario.load(KERNEL, [case, "sweep.stack=[mine]", "sweep.ber=[0]", "repeats=1"]))
    assert [cell.id for cell in cells] == [
        f"stack=mine,errors={model},ber=0,r1" for model in ("independent", "clustered")
    ]
    assert {cell.model.hosts["ws1"].congestion_control for cell in cells} == {"bbr"}


def test_variants_are_held_to_it_too(write, small):
    path = write(small + "variants:\n  other: {set: {links.hop.forward.errors.ber: 1e-3}}\n")
    (line,) = refused(f"{path}:other")
    assert "small.yaml:22: variants.other.set.links.hop.forward.errors.ber: found " in line
    assert 'which the axis "ber" replaces' in line
