"""Whatever a file holds, loading it gives a scenario or a ScenarioError, never anything else."""

import contextlib
import math
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scpslab import scenario
from scpslab.core.errors import ScenarioError
from scpslab.scenario import planning
from tests.cases import places, values
from tests.unit.scenario.test_scenario_errors import spoilt

SMALL = (Path(__file__).parents[2] / "data" / "small-scenario.yaml").read_bytes()
TREE = yaml.safe_load(SMALL)
# The same examples every time: what they find is found by whoever changes the code, not by whoever installs it.
FUZZ = settings(
    derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
VALUES = values("1 s", "0 B", "1 kB", "2 Mbit/s", "1e9 h", "h1", "data", "*", "bbr", math.nan, math.inf)
PARTS = ["links.hop.*.errors", "workloads.transfer", "hosts.*", "sweep.ber", "probes", "limits", "skip", "parameters"]


def attempt(path: Path, *overrides: str) -> None:
    with contextlib.suppress(ScenarioError):
        for cell in scenario.cells(scenario.load(str(path), overrides)):
            planning.plan(cell)


@FUZZ
@given(st.binary(max_size=200))
def test_any_bytes(write, data):
    attempt(write(data))


@FUZZ
@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@`,?\n \t01.e<~", max_size=60))
def test_any_yaml_like_text(write, text):
    attempt(write(text))


@FUZZ
@given(st.integers(0, len(SMALL) - 1), st.integers(0, 20), st.binary(max_size=8))
def test_any_part_of_a_scenario_overwritten(write, at, length, patch):
    attempt(write(SMALL[:at] + patch + SMALL[at + length :]))


@FUZZ
@given(st.sampled_from(list(places(TREE))[1:]), VALUES)
def test_any_value_at_any_place(write, place, value):
    attempt(write(spoilt(SMALL.decode(), {".".join(map(str, place)): value})))


@FUZZ
@given(st.text(max_size=40))
def test_any_override(write, text):
    attempt(write(SMALL), text)


@FUZZ
@given(st.sampled_from(PARTS), VALUES)
def test_any_value_of_an_override(write, key, value):
    attempt(write(SMALL), f"{key}={yaml.safe_dump(value, default_flow_style=True)}")


@FUZZ
@given(st.text(max_size=40))
def test_any_name(name):
    with contextlib.suppress(ScenarioError):
        scenario.load(name)
