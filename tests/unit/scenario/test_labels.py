"""A label of a sweep never stands beside settings that are not its own."""

import pytest

from scpslab import scenario
from scpslab.core.errors import ScenarioError

ADVICE = (
    "Choose cases with --set 'sweep.stack=[LABEL]', or add one of your own: --set 'sweep.stack.cases.NAME={PATH: "
    "VALUE}'."
)


def refused(name, *overrides):
    with pytest.raises(ScenarioError) as error:
        scenario.load(name, overrides)
    return str(error.value).splitlines()


def test_a_value_that_an_axis_replaces_is_refused():
    (line,) = refused("fy97/fig04:kernel", "links.hop.*.errors.ber=1e-5")
    assert line == (
        '--set links.hop.*.errors.ber=1e-5: found links.hop.data.errors.ber, which the axis "ber" replaces; '
        "expected a key that no axis sets. "
        "Set the axis: --set 'sweep.ber=[1e-05]'."
    )


def test_a_value_that_contradicts_the_preset_of_a_case_is_refused():
    reno, cubic = refused("fy97/fig04:kernel", "hosts.ws1.congestion=bbr", "sweep.stack=[fy97-reno, cubic]")
    assert reno == (
        "--set hosts.ws1.congestion=bbr: found hosts.ws1 with congestion bbr instead of reno, which contradicts "
        'case "fy97-reno" of the axis "stack"; '
        f"expected what its preset says. {ADVICE}"
    )
    assert cubic.startswith(
        '--set hosts.ws1.congestion=bbr: found hosts.ws1.congestion, which case "cubic" of the axis "stack" replaces;'
    )


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
    assert refused("fy97/fig04:kernel", override)


def test_scps_keeps_the_congestion_control_of_its_preset():
    (line,) = refused("fy97/fig04", "hosts.ws1.congestion=vegas", "sweep.stack=[scps-rate]")
    assert "with congestion vegas instead of none" in line


@pytest.mark.parametrize(
    "override",
    [
        "hosts.ws1.rto_min=1 s",
        "hosts.ws1.congestion=reno",
        "workloads.transfer.size=100 kB",
        "sweep={}",
        "sweep.ber=[1e-4]",
        "links.hop.*.errors.outages=[]",
    ],
)
def test_what_no_label_speaks_of_may_be_set(override):
    scenario.load("fy97/fig04:kernel", [override, "sweep.stack=[fy97-reno]"] if override != "sweep={}" else [override])


def test_a_value_that_the_sweep_leaves_as_it_is_may_be_set():
    scenario.load("fy97/fig04:kernel", ["links.hop.*.errors.ber=1e-5", "sweep.ber=[1e-5]"])


def test_a_case_of_one_s_own_has_a_label_of_its_own():
    case = "sweep.stack.cases.mine={hosts.*.preset: fy97-reno, hosts.ws1.congestion: bbr}"
    cells = scenario.cells(
        scenario.load("fy97/fig04:kernel", [case, "sweep.stack=[mine]", "sweep.ber=[0]", "repeats=1"])
    )
    assert [cell.id for cell in cells] == [
        "stack=mine,errors=independent,ber=0,r1",
        "stack=mine,errors=clustered,ber=0,r1",
    ]
    assert {cell.model.hosts["ws1"].congestion for cell in cells} == {"bbr"}


def test_variants_are_held_to_it_too(load, small):
    with pytest.raises(
        ScenarioError,
        match=r'small.yaml:22: variants.other.set.links.hop.data.errors.ber: found .* which the axis "ber" replaces',
    ):
        scenario.load(f"{load_path(load, small)}:other")


def load_path(load, small):
    return load(small + "variants:\n  other: {set: {links.hop.data.errors.ber: 1e-3}}\n").path
