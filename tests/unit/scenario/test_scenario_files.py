"""The scenarios that are shipped, the schema and the reference."""

import json

import jsonschema
import pytest
import yaml

from scpslab import plan as plan_format
from scpslab import scenario
from scpslab.documents import read
from scpslab.scenario import planning
from scpslab.scenario.load import FOLDER, evidence_variants
from scpslab.scenario.model import FORM
from tests import golden
from tests.cases import refusal
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
    """Every point, within all rules of plans; repeats of it differ in their seeds only."""
    cells = scenario.cells(scenario.load(name, ["repeats=1"]))
    assert cells
    for plan in planning.plans(cells).values():
        assert plan_format.parse(plan_format.text(plan)) == plan


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
