"""What cells share a template, and what belongs to each."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.lab.space import GAPS_KEPT, VERDICT_LOG_ENTRIES, Space
from scpslab.lab.template import Template
from scpslab.plan import Plan, read, write
from scpslab.plan.cell import CellKey, Limits
from scpslab.plan.links import Disorder
from scpslab.plan.nodes import ScpsRouter
from scpslab.plan.np import SERIAL_HOP, NpHop, NpHost
from scpslab.plan.script import RunStep
from scpslab.plan.topology import catalogue
from scpslab.plan.topology.layout import layout
from scpslab.scenario import planning

from scpslab.kinds.probes.verdicts.plan import Verdicts

KEY = CellKey(id="r1", scenario="test", axes={"ber": 1e-5}, repeat=1, kernel_seed="5c" * 32)
LIMITS = Limits(virtual_s=60, wall_s=60, memory_mib=512)
ERRORS = {"model": "independent", "action": "drop", "settings": {"ber": 1e-5}, "seed": "5c" * 32, "vector_errors": 100}
NONE_LOST = {"drop_packets": [], "drop_min_bytes": 0, "outages": []}


def network(**parameters: str) -> Plan:
    module = catalogue.module("point_to_point")
    return layout(module.describe(module.PARAMETERS.read(parameters))).plan(KEY, LIMITS)


def with_errors(plan: Plan, **errors: object) -> Plan:
    fields = write(plan)
    fields["links"][0]["directions"][0]["errors"] = ERRORS | NONE_LOST | errors
    return read(fields)


def with_direction(plan: Plan, **changes: object) -> Plan:
    link = plan.links[0]
    return replace(plan, links=(replace(link, directions=(replace(link.directions[0], **changes), link.directions[1])), *plan.links[1:]))


@pytest.fixture
def vectors(tmp_path):
    """The plan's vector, of 100 gaps."""
    folder = tmp_path / "vectors"
    folder.mkdir()
    link = network().links[0]
    (folder / f"{link.name}-{link.directions[0].name}.u64").write_bytes(bytes(8 * 100))
    return folder


def test_what_a_cell_has_of_its_own_is_not_in_its_template(vectors):
    plan = with_errors(network())
    others = [
        replace(plan, cell=replace(KEY, id="r2", kernel_seed="17" * 32, axes={})),
        replace(plan, limits=replace(LIMITS, virtual_s=7, wall_s=7)),
        with_errors(network(), seed="17" * 32, settings={"ber": 2e-5}),
        with_errors(network(), model="none", settings={}, drop_packets=[3], outages=[[10**9, 2 * 10**9]]),
        with_direction(plan, disorder=Disorder(jitter_ns=0, duplicate=0.5, seed="17" * 32)),
    ]

    assert {Template.of(other, vectors).id for other in others} == {Template.of(plan, vectors).id}


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: replace(plan, limits=replace(LIMITS, memory_mib=600)),
        lambda plan: replace(plan, nodes=tuple(replace(node, sysctls={"net.ipv4.tcp_sack": "0"}) for node in plan.nodes if node.kind == "host")),
        lambda plan: with_direction(plan, rate_bps=8000),
        lambda plan: with_direction(plan, delay_ns=5),
        lambda plan: with_direction(plan, disorder=Disorder(jitter_ns=5, duplicate=0, seed="17" * 32)),
        lambda plan: replace(plan, links=(replace(plan.links[0], mtu_bytes=600),)),
        lambda plan: replace(plan, probes=(Verdicts(name="v", link="hop", direction="data"),)),
        lambda plan: replace(plan, script=(RunStep(t_ns=0, node="h1", command="true", required=True, patience_ns=1),)),
    ],
)
def test_what_the_set_up_reads_is_in_the_template(vectors, change):
    plan = with_errors(network())

    assert Template.of(change(plan), vectors).id != Template.of(plan, vectors).id


def test_what_routers_of_scps_np_are_told_is_the_cell_s(vectors):
    module = catalogue.module("fy97_np")
    plan = layout(module.describe(module.PARAMETERS.read({}))).plan(KEY, LIMITS)
    routers = [node for node in plan.nodes if isinstance(node, ScpsRouter)]
    assert len(routers) == 2
    told = {
        "seed": 7,
        "default_precedence": 3,
        "hosts": (NpHost(ip="198.18.1.1", np="0102"),),
        "next_hops": (NpHop(to="0102", via=SERIAL_HOP),),
    }
    other = replace(plan, nodes=tuple(replace(node, **told) if node in routers else node for node in plan.nodes))
    moved = replace(plan, nodes=tuple(replace(node, device="np7") if node in routers else node for node in plan.nodes))

    assert Template.of(other, vectors).id == Template.of(plan, vectors).id
    assert Template.of(moved, vectors).id != Template.of(plan, vectors).id


def test_seeds_of_jitter_are_the_cell_s(vectors):
    one, other = (with_direction(network(), disorder=Disorder(jitter_ns=5, duplicate=0.1, seed=seed * 32)) for seed in ("17", "18"))

    assert Template.of(one, vectors).id == Template.of(other, vectors).id


def test_a_template_s_file_states_it(vectors):
    template = Template.of(with_errors(network()), vectors)

    assert Template.parse(template.text().encode()) == template


def test_space_is_a_power_of_two_of_what_the_plan_needs(vectors):
    plan = with_errors(network(), drop_packets=[1, 2, 3], outages=[[1, 2]])

    assert Space.of(plan, vectors) == Space(gaps=128, windows=1, drops=4, verdicts=1)


def test_what_can_change_has_room_for_it_in_every_direction(vectors):
    plan = replace(with_errors(network()), script=(RunStep(t_ns=0, node="h1", command="true", required=True, patience_ns=1),))
    directions = sum(len(link.directions) for link in plan.links)
    space = Space.of(plan, vectors)

    assert space.gaps >= directions * GAPS_KEPT + 100
    assert space.windows >= directions


def test_a_probe_of_verdicts_gets_its_log(vectors):
    assert Space.of(replace(network(), probes=(Verdicts(name="v", link="hop", direction="data"),)), vectors).verdicts == VERDICT_LOG_ENTRIES


def leaves(value: object, place: str = "") -> dict[str, object]:
    """Every value of a JSON that is no object or list, by its place; positions in lists count, names of them do not."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not inside:
        return {place: value}
    return {name: found for key, one in inside for name, found in leaves(one, f"{place}.{key}".lstrip(".")).items()}


def test_every_key_of_a_plan_is_the_template_s_or_known_to_be_the_cell_s(tmp_path):
    """Of all cells of tests/same_bytes, which have every kind of key. A new key that the template lacks must be one that the cell gives its fork."""
    (tmp_path / "vectors").mkdir()
    lacking = set()
    for path in sorted((Path(__file__).parents[2] / "same_bytes").glob("*.yaml")):
        for cell in scenario.cells(scenario.load(str(path))):
            plan = planning.plan(cell)
            kept = leaves(write(Template.of(plan, tmp_path / "vectors").plan))
            lacking |= {re.sub(r"\.\d+", "", place) for place, value in leaves(write(plan)).items() if kept.get(place, "absent") != value}

    # The second: what routers of SCPS-NP are told. No other node has such keys.
    given = re.compile(r"(serial_)?links\.directions\.(errors|disorder)(\..*)?|nodes\.(seed|default_precedence|hosts|next_hops|interfaces)(\..*)?")
    assert {place for place in lacking if not given.fullmatch(place) and place.split(".")[0] not in {"cell", "workloads", "probes", "script", "services"}} == {
        "limits.virtual_s",
        "limits.wall_s",
    }
    assert {place.split(".")[0] for place in lacking} == {"cell", "limits", "links", "serial_links", "nodes", "workloads", "probes", "script", "services"}
    assert "links.directions.disorder.jitter_ns" not in lacking
