"""The scenarios that are shipped, the schema and the reference. Paths into a scenario: what `*` stands for, and paths
that lead nowhere. A label of a sweep never stands beside settings that are not its own. `*` in a path
stands for what the network of each point has; what an axis sets is in every cell with its label.
"""

import json
from dataclasses import replace

import jsonschema
import pytest
import yaml

from scpslab import plan as plan_format
from scpslab import scenario
from scpslab.analysis.compare import _differences
from scpslab.documents.document import read
from scpslab.plan.chances import chances
from scpslab.scenario import planning
from scpslab.scenario.load import FOLDER, evidence_variants
from scpslab.scenario.model import FORM
from scpslab.scenario.planning.plan import _Point
from tests import golden
from tests.cases import refusal, whole
from tools.reference.assignments import generated
from tools.reference.scenarios import SECTIONS, schema

NAMES = scenario.names()
VARIANTS = [
    (name, variant) for name in NAMES for variant in read(FOLDER / f"{name}.yaml", FORM).data.get("variants", {})
]
SCHEMA = schema()
EDITOR_LINE = "# yaml-language-server: $schema=../scenario.schema.json"


def test_the_figures_of_the_report_are_there_each_with_a_demo_and_a_test():
    assert {f"fy97/fig{figure}" for figure in ("04", "06", "08", "10", "12", "14")} <= set(NAMES)
    assert {(f"fy97/fig{figure}", "kernel") for figure in ("04", "06", "08", "10", "12", "14")} <= set(VARIANTS)
    figures = [name for name in NAMES if name.startswith("fy97/fig")]
    assert {(name, variant) for name in figures for variant in ("demo", "test")} <= set(VARIANTS)


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_scenario_fits_the_schema_that_its_first_line_names(name):
    assert (FOLDER / f"{name}.yaml").read_text().splitlines()[0] == EDITOR_LINE
    jsonschema.Draft7Validator(SCHEMA).validate(read(FOLDER / f"{name}.yaml", FORM).data)


def test_generated_files_are_current():
    """Schema, reference and tables are those of the models; `make docs` writes them."""
    for path, text in generated().items():
        assert path.read_text() == text


@pytest.mark.slow
def test_claims_use_no_variant_whose_transfers_are_smaller():
    """A variant that changes what is sent is not run under the paper's conditions."""
    for name, variant in VARIANTS:
        if variant in evidence_variants(name):
            whole, smaller = (scenario.load(full).model.workloads for full in (name, f"{name}:{variant}"))
            assert whole == smaller, f"{name}:{variant}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_shipped_scenario_plans(name):
    """Every point, within all rules of plans; where chance has no part, a repeat has nothing of its own but seeds."""
    cells = scenario.cells(scenario.load(name, ["repeats=1"]))
    assert cells
    for cell, plan in zip(cells, planning.plans(cells).values(), strict=True):
        assert plan_format.parse(plan_format.text(plan)) == plan
        if not chances(plan):
            again = _Point(cell)._drawn(replace(cell, repeat=2))
            # Where a record would lie if the command had one.
            assert {name.rpartition(".")[2] for name, _ in _differences(plan, again)} <= {"record_at"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_variant_plans_and_is_smaller(name, variant):
    whole, smaller = scenario.cells(scenario.load(name)), scenario.cells(scenario.load(f"{name}:{variant}"))
    for plan in planning.plans(cell for cell in smaller if cell.repeat == 1).values():
        assert plan.cell.scenario == name
        assert plan_format.parse(plan_format.text(plan)) == plan
    assert len(smaller) < len(whole) or sent_bytes(smaller) < sent_bytes(whole) or variant == "detail"


def sent_bytes(cells):
    """What the transfers of the first cell send."""
    plan = planning.plan(next(iter(cells)))
    return sum(getattr(workload, "bytes_", 0) or 0 for workload in plan.cell.workloads)


def test_schema_is_draft_7():
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert "$defs" not in json.dumps(SCHEMA)


@golden.each("what the schema refuses too")
def test_schema_refuses_what_loading_refuses(case, small, load, tmp_path):
    data = yaml.safe_load(small) | json.loads(case)
    assert list(jsonschema.Draft7Validator(SCHEMA).iter_errors(data))
    case.hold(refusal(load, yaml.safe_dump(data)), tmp_path)


@pytest.mark.parametrize("part", [part for _, part in SECTIONS], ids=lambda part: part.__name__)
def test_every_key_says_what_it_means_and_shows_an_example_that_fits(part):
    made = part.model_json_schema(by_alias=True)
    for name, spec in made["properties"].items():
        assert spec.get("description", "").endswith("."), name
        (example,) = spec["examples"]
        jsonschema.Draft7Validator(spec | {"$defs": made.get("$defs", {})}).validate(example)


def test_claims_use_the_variants_that_say_so():
    assert evidence_variants("fy97/fig04") == {"", "demo", "era", "detail", "kernel", "kernel-demo", "kernel-detail"}
    assert evidence_variants("somebodys-own") == {""}


def bare(topology="point_to_point", source="h1", sink="h2", more=""):
    transfer = f"{{kind: bulk, name: transfer, from: {source}, to: {sink}, size: 100 kB}}"
    return whole(f"topology: {topology}\nworkloads: [{transfer}]\n{more}")


@pytest.mark.parametrize(
    ("topology", "source", "more", "named"),
    [
        ("point_to_point", "h1", "", {"h1", "h2"}),
        ("star", "t1", "parameters: {terminals: 3}\nhosts: {t1: {preset: modern}}\n", {"t1", "t2", "t3", "server"}),
        ("fy97", "ws1", "", {"ws1", "ws2"}),
        ("fy97", "ws1", "hosts: {ws3: {preset: modern}}\n", {"ws1", "ws2", "ws3"}),
        ("fy97", "ws3", "", {"ws1", "ws2", "ws3"}),
    ],
)
def test_star_means_the_hosts_of_the_topology_and_bystanders_that_the_scenario_speaks_of(
    load, topology, source, more, named
):
    sink = {"point_to_point": "h2", "star": "server", "fy97": "ws2"}[topology]
    hosts = load(bare(topology, source, sink, more), "hosts.*.congestion_control=bbr").model.hosts
    assert {name: host.congestion_control for name, host in hosts.items()} == dict.fromkeys(named, "bbr")


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
def chain(tmp_path):
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


def test_a_star_of_an_axis_stands_for_all_of_each_point_whatever_the_order_of_the_axes(chain):
    axes = HOPS, f"ber: {{set: [{STAR}], values: [2e-5]}}", "cc: {cases: {bbr: {hosts.*.preset: bbr}}}"
    for some in (axes, axes[::-1]):
        found = with_errors(chain(f"sweep: {{{', '.join(some)}}}"))
        assert list(found.values()) == [(["hop1"], {"bbr"}), (THREE, {"bbr"})]


@pytest.mark.parametrize("first", [True, False])
def test_a_star_of_a_variant_or_an_option_stands_for_all_of_the_network_that_they_make(chain, first):
    variant = ("parameters.hops: 3", f"{STAR}: 2e-5")[:: 1 if first else -1]
    name = chain(f"variants: {{long: {{set: {{{', '.join(variant)}}}}}}}")
    assert with_errors(f"{name}:long")["r1"][0] == THREE
    options = ("parameters.hops=3", f"{STAR}=2e-5")[:: 1 if first else -1]
    assert with_errors(name, *options)["r1"][0] == THREE


def test_a_star_of_an_option_that_stands_for_more_at_a_point_is_refused_with_the_axis_that_follows(chain, scpslab):
    name = chain(f"sweep: {{{HOPS}}}")
    code, _, said = scpslab("validate", name, "--set", f"{STAR}=2e-5")
    assert code == 2
    assert said == (
        f"error: --set {STAR}=2e-5: found {STAR}, which stands for other places with parameters.hops 3; expected the "
        f"same everywhere. Make it an axis, which follows: --set 'sweep.NAME={{set: [{STAR}], values: [2e-05]}}'.\n"
    )
    assert scpslab("validate", name, "--set", f"sweep.ber={{set: [{STAR}], values: [2e-05]}}")[0] == 0


def test_a_star_that_matches_nothing_at_one_point_is_refused_there(chain, tmp_path):
    # Without a relay a link is none that is studied.
    direct = CHAIN.replace('via=f"sat{number}"', 'via=f"sat{number}" if p["hops"] > 1 else None').replace(
        "50_000_000)", '50_000_000 if p["hops"] > 1 else 0)'
    )
    name = chain(f"parameters: {{hops: 2}}\nsweep: {{{HOPS}, ber: {{set: [{STAR}], values: [0]}}}}")
    (tmp_path / "chain.py").write_text(direct)
    said = refusal(lambda: scenario.cells(scenario.load(name)))
    assert f'sweep.ber: {STAR} of hops=1,ber=0: found "*" after links, which matches nothing; expected' in said


def test_an_axis_that_replaces_a_part_of_another_is_refused(chain):
    axes = f"b: {{set: [{STAR}], values: [0, 1e-5]}}, c: {{set: [links.hop1.up.errors.ber], values: [1e-6]}}"
    said = refusal(lambda: scenario.cells(scenario.load(chain(f"sweep: {{{axes}}}"))))
    assert said.endswith(
        'sweep.b: found links.hop1.up.errors.ber, which the axis "c" replaces; expected a key that no other axis sets. '
        "Name the places that each axis is for."
    )
    both = "b: {set: [links.hop1.up.errors.ber], values: [0]}, c: {set: [links.hop1.return.errors.ber], values: [1e-6]}"
    assert len(scenario.cells(scenario.load(chain(f"sweep: {{{both}}}")))) == 1
