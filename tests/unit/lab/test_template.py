"""What cells share a template, and what belongs to each."""

from dataclasses import replace
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.lab.template import GAPS_KEPT, Space, Template
from scpslab.plan import Plan
from scpslab.plan.cell import CellPlan, Impairment, Limits
from scpslab.plan.error_models import Errors
from scpslab.plan.events import RunStep
from scpslab.scenario import planning, topologies

from scpslab.kinds.errors.independent.plan import Independent
from scpslab.kinds.errors.none.plan import NoErrors

LIMITS = Limits(virtual_s=60, wall_s=60)
CELL = CellPlan(id="r1", scenario="test", axes={"ber": 1e-5}, repeat=1, kernel_seed="5c" * 32, limits=LIMITS)
BITS = {"model": "independent", "action": "drop", "settings": Independent(ber=1e-5), "seed": "5c" * 32}
ERRORS = Errors(**BITS, vector_errors=100, drop_packets=(), drop_min_bytes=0, outages=())
STEP = RunStep(t_ns=0, node="h1", command="true", required=True, timeout_ns=1)
SACK = {"net.ipv4.tcp_sack": "0"}


def plan_of(topology: str = "point_to_point") -> Plan:
    module = topologies.module(topology)
    return Plan(network=module.describe(module.PARAMETERS.read({})).plan(), cell=CELL)


def impaired(plan: Plan, **said: object) -> Plan:
    return replace(plan, cell=replace(plan.cell, impairments=(Impairment(link="hop", direction="forward", **said),)))


def with_errors(plan: Plan, **errors: object) -> Plan:
    return impaired(plan, errors=replace(ERRORS, **errors))


def with_direction(plan: Plan, **changes: object) -> Plan:
    (link,) = plan.network.links
    changed = replace(link, directions=(replace(link.directions[0], **changes), link.directions[1]))
    return replace(plan, network=replace(plan.network, links=(changed,)))


def with_network(plan: Plan, **changes: object) -> Plan:
    return replace(plan, network=replace(plan.network, **changes))


def with_cell(plan: Plan, **changes: object) -> Plan:
    return replace(plan, cell=replace(plan.cell, **changes))


@pytest.fixture
def vectors(tmp_path):
    """The plan's vector, of 100 gaps."""
    folder = tmp_path / "vectors"
    folder.mkdir()
    (link,) = plan_of().network.links
    (folder / f"{link.name}-{link.directions[0].name}.u64").write_bytes(bytes(8 * 100))
    return folder


def test_what_a_cell_has_of_its_own_is_not_in_its_template(vectors):
    plan = with_errors(plan_of())
    others = [
        with_cell(plan, id="r2", kernel_seed="17" * 32, axes={}),
        with_cell(plan, limits=Limits(virtual_s=7, wall_s=7)),
        with_errors(plan, seed="17" * 32, settings=Independent(ber=2e-5)),
        with_errors(plan, model="none", settings=NoErrors(), drop_packets=(3,), outages=((10**9, 2 * 10**9),)),
        impaired(plan, errors=ERRORS, duplicate=0.5, seed="17" * 32),
        with_cell(plan, packets=True),
    ]

    assert {Template.of(other, vectors).id for other in others} == {Template.of(plan, vectors).id}


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: with_network(plan, memory_mib=600),
        lambda plan: with_network(plan, nodes=tuple(replace(node, sysctls=SACK) for node in plan.network.speaking)),
        lambda plan: with_network(plan, links=(replace(plan.network.links[0], mtu_bytes=600),)),
        lambda plan: with_direction(plan, rate_bps=8000),
        lambda plan: with_direction(plan, delay_ns=5),
        lambda plan: with_direction(plan, jitter_ns=5),
        lambda plan: with_cell(plan, events=(STEP,)),
    ],
)
def test_what_the_set_up_reads_is_in_the_template(vectors, change):
    plan = with_errors(plan_of())

    assert Template.of(change(plan), vectors).id != Template.of(plan, vectors).id


@pytest.mark.parametrize("name", ["np", "fy97"])
def test_cells_of_one_network_share_its_template_whatever_they_draw_and_tell_their_routers(tmp_path, name):
    """Routers of SCPS-NP have seeds of the cell, and so have bit errors, jitter and duplicates."""
    path = Path(__file__).parents[2] / "same_bytes" / f"{name}.yaml"
    cells = scenario.cells(scenario.load(str(path), ["repeats=3"]))
    by_point: dict[str, set[str]] = {}
    for cell in cells:
        by_point.setdefault(str(cell.axes), set()).add(Template.of(planning.plan(cell), tmp_path).id)

    assert len(cells) == 3 * len(by_point) >= 6
    assert {len(ids) for ids in by_point.values()} == {1}
    assert name != "np" or len(set.union(*by_point.values())) == 1


def test_a_template_s_file_states_it(vectors):
    template = Template.of(with_errors(plan_of()), vectors)

    assert Template.parse(template.text().encode()) == template


def test_space_is_a_power_of_two_of_what_the_plan_needs(vectors):
    plan = with_errors(plan_of(), drop_packets=(1, 2, 3), outages=((1, 2),))

    expected = Space(places=128, stretches=1, windows=1, drops=4, packets=plan.network.packet_lines)
    assert Space.of(plan, vectors) == expected


def test_what_can_change_has_room_for_it_in_every_direction(vectors):
    plan = with_cell(with_errors(plan_of()), events=(STEP,))
    directions = sum(len(link.directions) for link in plan.network.links)
    space = Space.of(plan, vectors)

    assert space.places >= directions * GAPS_KEPT + 100
    assert space.windows >= directions
