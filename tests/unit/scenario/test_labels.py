"""A label of a sweep never stands beside settings that are not its own."""

import pytest

from scpslab import scenario
from tests import golden
from tests.cases import refusal

KERNEL = "fy97/fig04:kernel"


@golden.each("a label and other settings")
def test_what_a_label_replaces_or_contradicts_is_refused(case):
    case.hold(refusal(scenario.load, KERNEL, case.split(" + ")))


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


def test_variants_are_held_to_it_too(write, small, told):
    path = write(small + "variants:\n  other: {set: {links.hop.forward.errors.ber: 1e-3}}\n")
    told("a label and other settings of a variant", "other", scenario.load, f"{path}:other")
