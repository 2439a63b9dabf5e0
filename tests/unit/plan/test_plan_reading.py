"""Plans are read strictly and written as they were. Names: one rule, and no file name that leads elsewhere. Commands
of workload `program`: the lab's words are filled in, the shell's and braces stay.
"""

import copy
import json
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scpslab import plan as plans
from scpslab import scenario
from scpslab.cli.shell import shell_plan
from scpslab.core.errors import ScenarioError
from scpslab.core.names import LONGEST_FILE_NAME, BadName, file_label, file_name, is_name
from scpslab.engine.process import on_the_wall_clock
from scpslab.plan import PlanError
from scpslab.plan.probes import PROBES
from scpslab.plan.stacks import STACKS
from scpslab.plan.topology import Network
from scpslab.plan.workloads import WORKLOADS
from scpslab.scenario import planning, probes, services, stacks, topologies, workloads
from tests import golden
from tests.cases import places, refusal, values, with_value

from scpslab.kinds.workloads.program.plan import filled, unknown_words


def plan_of(name):
    """The plan of a scenario's first cell, as JSON has it."""
    return plans.write(planning.plan(scenario.cells(scenario.load(name))[0]))


PLANS = [plan_of(name) for name in ("fy97/fig04:test", "sgls/factorial", "links/round-trip:test", "fp/restart")]
BULK = PLANS[0]
# Links of it, by their numbers: one without a relay, and one with.
LINKS = {"LAN": 0, "HOP": 6}


def red(**changes):
    """A queue of RED."""
    return {"discipline": "red", "settings": {"min_bytes": 9000, "max_bytes": 18_000, "probability": 0.1} | changes}


@pytest.mark.parametrize("topology", topologies.names())
def test_plans_of_shells_can_be_read(topology):
    plan = shell_plan(topology, {})

    assert plans.parse(plans.text(plan)) == plan


def test_plans_on_the_wall_clock_can_be_read():
    plan = plans.write(on_the_wall_clock(plans.read(BULK)))

    assert plans.write(plans.read(plan)) == plan


@golden.each("plan", "case place value")
def test_a_value_that_cannot_be_is_named_with_its_place(case, value, place):
    said = case.hold(refusal(plans.read, with_value(BULK, place, json.loads(value)), error=PlanError))
    assert said.startswith(place)
    assert len(said.splitlines()) == 1


@golden.each("plan: named where it is", "case place value")
def test_what_does_not_fit_in_a_part_is_named_where_it_is(case, value, place):
    case.hold(refusal(plans.read, with_value(BULK, place, json.loads(value)), error=PlanError))


@golden.each("plan: a direction", "case link changes")
def test_a_direction_of_a_plan_from_outside_keeps_the_rules_of_a_scenarios(case, link, changes):
    fields = copy.deepcopy(BULK)
    direction = fields["network"]["links"][LINKS[link]]["directions"][0]
    for key, value in json.loads(changes).items():
        direction[key] = {**direction[key], **value} if isinstance(value, dict) else value

    said = case.hold(refusal(plans.read, fields, error=PlanError))
    assert said.startswith(f"network.links[{LINKS[link]}].directions[0].")


STEP = {"t_ns": 5, "do": "link", "link": "hop", "directions": ["forward"], "change": "rate", "value": 80_000}
SERVICE = {"kind": "command", "node": "ws1", "command": "a", "ready_port": 80, "timeout_ns": 1}


@pytest.mark.parametrize(
    ("part", "right"),
    [("events", [STEP]), ("services", [SERVICE | {"name": "a"}, SERVICE | {"name": "b", "ready_port": 81}])],
)
def test_parts_of_a_plan_from_outside_are_read(part, right):
    fields = with_value(BULK, f"cell.{part}", right)
    assert plans.write(plans.read(fields)) == fields


@golden.each("plan: a part", "case part said")
def test_parts_of_a_plan_from_outside_keep_the_rules_of_a_scenarios(case, part, said):
    fields = with_value(BULK, f"cell.{part}", json.loads(said))
    assert case.hold(refusal(plans.read, fields, error=PlanError)).startswith(f"cell.{part}[")


def test_a_key_that_is_missing_is_named(told):
    fields = copy.deepcopy(BULK)
    del fields["network"]["links"][0]["directions"][1]["queue"]
    told("text that is no plan", "a missing key", plans.read, fields, error=PlanError)


NO_PLANS = {
    "nothing": b"",
    "half of an object": b"{",
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "no UTF-8": b"\xff\xfe",
    "UTF-16": '{"format": 1}'.encode("utf-16"),
    "NaN": b'{"format": NaN}',
    "-Infinity": b'{"format": -Infinity}',
    "a large number": b'{"format": 1e999}',
    "many digits": b'{"format": ' + b"9" * 5000 + b"}",
    "a key twice": b'{"format": 1, "format": 1}',
    "a surrogate": b'{"format": "\\ud800"}',
}


@pytest.mark.parametrize("name", NO_PLANS)
def test_text_that_is_no_plan_is_refused_in_one_line(name, told):
    assert "\n" not in told("text that is no plan", name, plans.parse, NO_PLANS[name], error=PlanError)


SPOTS = [(number, place) for number, plan in enumerate(PLANS) for place in places(plan) if place]
WORDS = ["..", "../x", "/etc/x", "a/b", "-", "ws1", "hop", "data", "kernel", "scps", "10.0.0.1", "10.0.0.0/8", "x.part"]
VALUES = values(*WORDS, "", 2**63, -1, 0)


@settings(derandomize=True, deadline=None, max_examples=600, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.sampled_from(SPOTS), VALUES, st.sampled_from(["set", "delete", "add"])), min_size=1, max_size=3
    )
)
@pytest.mark.slow
def test_any_change_of_a_plan_is_refused_or_written_as_it_was(changes):
    number = changes[0][0][0]
    fields = copy.deepcopy(PLANS[number])
    for (plan, place), value, how in changes:
        inner = fields
        try:
            for step in place[:-1]:
                inner = inner[step]
            if how == "delete":
                del inner[place[-1]]
            elif how == "add" and isinstance(inner[place[-1]], dict):
                inner[place[-1]]["more"] = value
            elif plan == number:
                inner[place[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    said = ""
    try:
        assert plans.write(plans.read(fields)) == fields
    except PlanError as error:
        said = str(error)
    assert len(said.splitlines()) <= 1


def test_plans_know_every_kind_that_scenarios_and_engines_know():
    """A kind that planning or an engine has and the reader has not would be refused by verify alone."""
    assert list(WORKLOADS) == list(workloads.KINDS)
    assert list(PROBES) == list(probes.KINDS)


@pytest.mark.parametrize("kinds", [workloads.KINDS, probes.KINDS, services.KINDS])
def test_the_model_of_every_kind_says_its_name(kinds):
    named = {name: kind.model_fields["kind"] for name, kind in kinds.items() if kind.model_fields}

    assert {name: get_args(field.annotation) for name, field in named.items()} == {name: (name,) for name in named}


def test_the_model_of_every_stack_says_its_name_and_the_kernels_alone_goes_without_saying():
    said = {name: stack.model_fields["stack"] for name, stack in stacks.STACKS.items()}

    assert {name: get_args(field.annotation) for name, field in said.items()} == {name: (name,) for name in STACKS}
    assert [name for name, field in said.items() if not field.is_required()] == ["kernel"]


@pytest.mark.parametrize("name", ["ws1", "stack=fy97-reno,ber=1e-06,r1", "hop", "r1", "a.b", "x+y", "_a", "A" * 100])
def test_names_of_today_are_names(name):
    assert is_name(name)
    assert file_name(name, suffix=".jsonl") == f"{name}.jsonl"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a\0",
        "a b",
        "a\n",
        "a" * 201,
        *[r".", r"..", r"a..b", r".a", r"-a", r"a/b", r"/a", r"ä", r"r1.part", r"$(x)", r"~", r"a\b", r"=x"],
    ],
)
def test_other_texts_are_none(name):
    assert not is_name(name)
    with pytest.raises(BadName, match="expected"):
        file_name(name)


@given(st.lists(st.text(max_size=30), max_size=3), st.sampled_from(["", ".u64"]))
def test_a_file_name_is_one_name_in_its_folder(names, suffix):
    try:
        made = file_name(*names, suffix=suffix)
    except BadName:
        return
    assert "/" not in made
    assert made not in (".", "..")
    assert len(made) <= LONGEST_FILE_NAME


@given(st.text(max_size=300))
def test_any_title_becomes_a_name(text):
    assert is_name(file_label(text))


def test_labels_of_scenarios_keep_their_form():
    assert file_label("fy97/fig04:kernel-demo") == "fy97-fig04-kernel-demo"
    assert file_label("../../etc/x") == "etc-x"


def test_a_topology_cannot_have_a_node_or_link_outside():
    network = Network("x")
    with pytest.raises(ValueError, match="expected letters"):
        network.host("../x")
    network.host("a")
    network.host("b")
    with pytest.raises(ValueError, match="expected letters"):
        network.link("a", "b", name="../x")


def test_a_case_cannot_make_a_cell_that_is_another_s_unfinished_state(tmp_path):
    name = "fy97/fig04:kernel-test"
    with pytest.raises(ScenarioError, match="Rename a case"):
        scenario.cells(scenario.load(name, ["sweep.stack.cases={a..b: {hosts.*.preset: modern}}"]))


TEXT = """kind: scenario
version: 1
topology: point_to_point
workloads:
  - {{kind: program, name: t, from: h1, to: h2, size: 2 kB, server: 'x {{port}}', client: 'y', {more}}}
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("send {to}:{port}", "send 10.0.0.2:4433"),
        ("echo ${port} ${#port}", "echo ${port} ${#port}"),
        ("awk '{{print $1}}'", "awk '{print $1}'"),
        ("a {b,c} {} { d; }", "a {b,c} {} { d; }"),
        ("{{{port}}}", "{4433}"),
    ],
)
def test_words_are_filled_in(command, expected):
    assert filled(command, {"to": "10.0.0.2", "port": "4433"}) == expected
    assert unknown_words(command) == []


def test_a_word_that_the_lab_does_not_know_is_refused():
    assert unknown_words("x {prot} {port}") == ["prot"]


def test_the_server_is_at_the_end_that_the_scenario_says(planned):
    there, here = (planned(TEXT.format(more=f"server_at: {end}")).cell.workloads[0] for end in ("to", "from"))

    assert (there.server_node, there.opener, there.contacted_ip) == ("h2", "h1", there.to_ip)
    assert (here.server_node, here.opener, here.contacted_ip) == ("h1", "h2", here.words["from"])
    assert {name: there.words[name] for name in ("from", "to")} == {name: here.words[name] for name in ("from", "to")}
    assert there.words["server"] == there.words["to"] != here.words["server"] == here.words["from"]


@golden.each("words of a program")
def test_what_does_not_fit_is_refused(planned, tmp_path, case):
    case.hold(refusal(planned, TEXT.format(more=case)), tmp_path)
