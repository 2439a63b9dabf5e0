"""Scenario files: every shipped one loads and plans; what is wrong is named with its line; seeds and schema stay what
they are.
"""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scpslab import plan as plan_format
from scpslab import scenario
from scpslab.core import units
from scpslab.core.errors import ScenarioError
from scpslab.documents import read
from scpslab.scenario import planning
from scpslab.scenario.load import FOLDER, FORM
from scpslab_course.cli.schema import generated

SHIPPED = sorted(
    str(file.relative_to(FOLDER).with_suffix("")) for file in FOLDER.glob("*/*.yaml") if file.parent.name != "campaigns"
)
SMALL = """\
kind: scenario
version: 1
title: small
topology: point_to_point
links:
  hop:
    data: {rate: 2 Mbit/s, delay: 250 ms, errors: {model: independent, ber: 1e-6}}
hosts:
  h1: {preset: modern}
workloads:
  - {kind: bulk, name: transfer, from: h1, to: h2, size: 10 kB}
sweep:
  ber: {set: [links.hop.data.errors.ber], values: [0, 1e-6]}
repeats: 2
"""


def write(tmp_path: Path, text: str) -> str:
    file = tmp_path / "small.yaml"
    file.write_text(text)
    return str(file)


def plans(path: str, overrides=()):
    return {cell.id: plan_format.write(planning.plan(cell)) for cell in scenario.cells(scenario.load(path, overrides))}


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.slow
def test_every_shipped_scenario_and_variant_plans(name):
    """Load, resolve and plan the first and the last cell; all plans have the documented keys."""
    for variant in ["", *(f":{variant}" for variant in read(FOLDER / f"{name}.yaml", FORM).data.get("variants", {}))]:
        cells = scenario.cells(scenario.load(name + variant))
        for cell in (cells[0], cells[-1]):
            plan = plan_format.write(planning.plan(cell))
            assert set(plan) == {"format", "network", "cell"}
            assert json.loads(json.dumps(plan)) == plan


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_scenario_fits_the_schema(name):
    """The committed JSON Schema accepts what the model accepts."""
    schema = json.loads((FOLDER / "scenario.schema.json").read_text())
    jsonschema.Draft7Validator(schema).validate(read(FOLDER / f"{name}.yaml", FORM).data)
    assert (FOLDER / f"{name}.yaml").read_text().startswith("# yaml-language-server: $schema=../scenario.schema.json\n")


def test_generated_files_are_current():
    """Schema and reference are those of the model; `make docs` writes them."""
    for path, text in generated().items():
        assert path.read_text() == text


def test_a_resolved_scenario_means_the_same(tmp_path):
    """What `--resolved` prints loads again to the same plans."""
    path = write(tmp_path, SMALL)
    resolved = tmp_path / "resolved.yaml"
    resolved.write_text(scenario.resolved_yaml(scenario.load(path)))
    first, second = plans(path), plans(str(resolved))
    for plan in (*first.values(), *second.values()):
        plan["cell"].pop("scenario")
    assert first == second


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            "rate: 2 Mbit/s->rate: 2000000",
            r':7: links.hop.data.rate: found 2000000 \(no unit\); expected a rate such as "2 Mbit/s"',
        ),
        ("delay: 250 ms->delay: -1 ms", r":7: links.hop.data.delay: .*negative.*expected a duration"),
        ("ber: 1e-6}}->ber: 1.5}}", r":7: links.hop.data.errors.ber: found 1.5; expected at most 1|expected.*less"),
        (
            "preset: modern->congestion: rene",
            r':9: hosts.h1.congestion: found "rene"; expected one of .* Did you mean reno',
        ),
        (
            "preset: modern->prest: modern",
            r':9: hosts.h1.prest: found the unknown key "prest"; expected one of .* Did you mean preset',
        ),
        ("topology: point_to_point->topology: point", r':4: topology: found "point"; expected one of fy97'),
        ("from: h1->from: h9", r':11: workloads\[0\].from: found "h9"; expected one of h1, h2'),
        ("  hop:->  hup:", r':6: links.hup: found "hup"; expected one of hop'),
        ("    data:->    dato:", r':7: links.hop.dato: found "dato"; expected one of data, ack'),
        ("size: 10 kB->size: 0 B", r":11: workloads\[0\].size: .*expected a size above 0"),
        ("kind: bulk->kind: bulky", r":11: workloads.0.*bulky.*Did you mean bulk"),
        ("repeats: 2->repeats: 2\nrepeats: 3", r":15: repeats: found the key a second time"),
        ("set: [links.hop.data.errors.ber]->set: [links.hop.data.erors.ber]", r"erors.*unknown key"),
        ("model: independent->model: gilbert-elliott", r"links.hop.data.errors: .*p_good_bad and p_bad_good above 0"),
        ("model: independent->model: vector-file", r"links.hop.data.errors: .*expected file"),
        ("rate: 2 Mbit/s->rate: 2 Mbits", r'unit "Mbits".*expected one of bit/s'),
        ("title: small->title: [small", r"expected YAML"),
        ("rate: 2 Mbit/s->rate: 1001 bit/s", r"multiple of 8"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path, change, expected):
    """One thing changed, one message that says where, what was found, what was expected."""
    old, new = change.split("->")
    assert old in SMALL
    with pytest.raises(ScenarioError, match=expected):
        plans(write(tmp_path, SMALL.replace(old, new)))


def test_all_errors_of_a_file_come_at_once(tmp_path):
    """Two wrong values: two lines."""
    with pytest.raises(ScenarioError) as caught:
        scenario.load(write(tmp_path, SMALL.replace("2 Mbit/s", "2").replace("10 kB", "10")))
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize("text", ["nonsense", "workloads.other.size=1 kB", "workloads.transfer.size.x=1", "title"])
def test_bad_overrides_are_named(tmp_path, text):
    """--set says which option is wrong."""
    with pytest.raises(ScenarioError, match=r"--set|unknown key"):
        scenario.load(write(tmp_path, SMALL), [text])


def test_an_override_changes_one_value(tmp_path):
    """A list's item is named by its name."""
    changed = plans(write(tmp_path, SMALL), ["workloads.transfer.size=20 kB"])
    assert {plan["cell"]["workloads"][0]["bytes"] for plan in changed.values()} == {20_000}


@pytest.mark.parametrize(
    ("overrides", "points"),
    [
        (["sweep.ber=[0, 2e-6]"], {0, 2e-6}),
        (["sweep.ber=1e-5"], {1e-5}),
        (["sweep.ber=[0, 1e-6]", "sweep.ber=[1e-6]"], {1e-6}),
    ],
)
def test_an_override_of_an_axis_gives_its_values(tmp_path, overrides, points):
    """As a variant's sweep does; the last one counts."""
    cells = scenario.cells(scenario.load(write(tmp_path, SMALL), overrides))
    assert {cell.axes["ber"] for cell in cells} == points


def test_an_override_of_an_axis_with_cases_keeps_those_it_names():
    """A label that reads as another kind of value in YAML is the label all the same."""
    cells = scenario.cells(
        scenario.load("sgls/itc-options", ["sweep.rate_control=[false]", "sweep.segments_per_ack=1"])
    )
    assert {(cell.axes["rate_control"], cell.axes["segments_per_ack"]) for cell in cells} == {("false", "1")}
    with pytest.raises(ScenarioError, match=r'found the case "maybe"; expected one of true, false'):
        scenario.load("sgls/itc-options", ["sweep.rate_control=[maybe]"])


def test_an_unknown_scenario_names_the_nearest():
    """A typing error costs one look."""
    with pytest.raises(ScenarioError, match=r"Did you mean fy97/fig04\?"):
        scenario.load("fy97/fg04")


def test_adding_values_repeats_and_probes_changes_no_other_cell(tmp_path):
    """Seeds are derived by name: the cells that were there keep their plans' seeds and vectors."""
    before = plans(write(tmp_path, SMALL))
    grown = SMALL.replace("[0, 1e-6]", "[0, 1e-7, 1e-6]").replace("repeats: 2", "repeats: 3")
    after = plans(write(tmp_path, grown + "probes:\n  - {kind: capture, node: h2}\n"))
    for cell_id, plan in before.items():
        grown_plan = copy.deepcopy(after[cell_id])
        grown_plan["cell"]["probes"] = []
        assert grown_plan == plan


def test_stacks_compared_meet_the_same_errors_and_traffic():
    """Error vectors and congestion draws depend on the repeat, not on the stack."""
    cells = plans("fy97/fig14:kernel")
    draws = {(plan["cell"]["axes"]["level"], plan["cell"]["repeat"]): set() for plan in cells.values()}
    for plan in cells.values():
        draws[plan["cell"]["axes"]["level"], plan["cell"]["repeat"]].add(
            tuple(plan["cell"]["workloads"][1]["rates_bps"])
        )
    assert {len(different) for different in draws.values()} == {1}
    seeds = {}
    for plan in plans("fy97/fig04:kernel").values():
        axes = plan["cell"]["axes"]
        seeds.setdefault((axes["errors"], axes["ber"], plan["cell"]["repeat"]), set()).add(
            plan["cell"]["impairments"][0]["errors"]["seed"]
        )
    assert {len(different) for different in seeds.values()} == {1}


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_give_an_error_and_never_a_traceback(tmp_path_factory, data):
    """Fuzz: a file of anything is a ScenarioError."""
    file = tmp_path_factory.mktemp("fuzz") / "any.yaml"
    file.write_bytes(data)
    with pytest.raises(ScenarioError):
        scenario.load(str(file))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=2),
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(
        ["links", "hosts", "workloads", "probes", "sweep", "limits", "parameters", "variants", "topology", "skip"]
    ),
    VALUES,
)
def test_any_value_at_any_key_gives_a_plan_or_an_error(tmp_path_factory, key, value):
    """Fuzz: a value that does not fit is a ScenarioError, never a traceback."""
    data = yaml.safe_load(SMALL) | {key: value}
    file = tmp_path_factory.mktemp("fuzz") / "any.yaml"
    file.write_text(yaml.safe_dump(data))
    with contextlib.suppress(ScenarioError):
        plans(str(file))


@given(st.sampled_from(["rate", "duration", "size"]), st.integers(min_value=0, max_value=10**15))
def test_quantities_survive_text(kind, number):
    """parse ∘ text is the identity."""
    assert units.parse(kind, units.text(kind, number)) == number
