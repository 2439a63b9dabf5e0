"""Everything that can be wrong with a scenario is one line: where, what was found, what was expected, what to do.
Services of kind gateway that could not start, or would never get a packet, are refused with the file. Scenarios
that nobody can run are refused before anything of them is built. Whatever a file holds, loading it gives a scenario
or a ScenarioError, never anything else.
"""

import contextlib
import json
import math
import re
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scpslab import scenario
from scpslab.core.errors import ScenarioError
from scpslab.plan.disciplines import FRAMED_PACKET_BYTES
from scpslab.scenario import planning
from tests import golden
from tests.cases import changed, places, refusal, steps, values

SERIAL = """kind: scenario
version: 1
title: Serial
topology: sgls
links: {serial: {forward: {errors: {model: independent, ber: 1.0e-5}}}}
workloads:
  - {kind: ftp, name: transfer, from: satellite, to: ground, size: 100 kB}
"""
# Words of the tables for others: of places, and of what begins a part of a scenario.
SHORT = {
    "QUEUE": "HOP.queue",
    "HOP": "links.hop.forward",
    "LINE": "links.serial.forward",
    "DOCKER": "containers: docker",
    "RED": "discipline: red",
    "IMAGE": "stack: image, image: vendor/stack",
    "READY": "ready_port: 80",
    "BULK": "kind: bulk, name: transfer, from: h1, to: h2, size: 100 kB",
    "FLOW": "name: flow, from: h1, to: h2",
    "FP": "kind: fp, name: second, from: satellite, to: ground, size: 1 kB",
    "COMMAND": "kind: command, name: web, node: h2, command: a",
}


def spoilt(text: str, changes: dict[str, object]) -> str:
    """The scenario with these values at these places, each key in a line of its own; GONE takes its key away."""
    data = yaml.safe_load(text)
    for path, value in changes.items():
        here = data
        *way, last = steps(path)
        for step in way:
            here = here[step] if isinstance(step, int) else here.setdefault(step, {})
        if value == "GONE":
            del here[last]
        elif isinstance(here, list) and last == len(here):
            here.append(value)
        else:
            here[last] = value
    return yaml.safe_dump(data, sort_keys=False)


def line_of(text: str, path: str) -> str:
    """`LINE: ` of the nearest key of a path that the text has."""
    node, line = yaml.compose(text), ""
    for step in steps(path):
        if isinstance(node, yaml.MappingNode):
            inner = next((pair for pair in node.value if pair[0].value == str(step)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            inner = (node.value[step], node.value[step])
        else:
            inner = None
        if inner is None:
            break
        line, node = f"{inner[0].start_mark.line + 1}: ", inner[1]
    return line


def expanded(text: str) -> str:
    for short, whole in SHORT.items():
        text = re.sub(rf"\b{short}\b", whole, text)
    return text


def changes_of(where: str, change: str) -> dict[str, object]:
    """What is there instead, by place: of the place itself, unless the case names others."""
    value = yaml.safe_load(expanded(change))
    return value if isinstance(value, dict) else {where: value}


def complaints(load, text: str) -> str:
    said = refusal(load, text)
    form = re.compile(r".*small\.yaml.*: found .*; expected .*[.?]")
    assert [line for line in said.splitlines() if not form.fullmatch(line)] == []
    return said


def told_at(case, where, text, load, folder):
    lines = case.hold(complaints(load, text), folder).splitlines()
    # Messages count from 1.
    place = line_of(text, where) + re.sub(r"\[(\d+)\]", lambda number: f"[{int(number[1]) + 1}]", where)
    assert any(place in line for line in lines), place


@golden.each("scenario", "case where change")
def test_wrong_scenario_is_told_at_its_line(case, where, change, small, load, tmp_path):
    where = expanded(where)
    told_at(case, where, spoilt(small, changes_of(where, change)), load, tmp_path)


@golden.each("scenario on a serial link", "case where change")
def test_wrong_scenario_of_a_serial_link_is_told_at_its_line(case, where, change, load, tmp_path):
    where = expanded(where)
    told_at(case, where, spoilt(SERIAL, changes_of(where, change)), load, tmp_path)


# What YAML itself forbids, or we do: text for text of the small scenario.
@golden.each("scenario that is no YAML of ours", "case old new")
def test_what_is_no_yaml_of_ours_is_told_at_its_line(case, old, new, small, load, tmp_path):
    case.hold(complaints(load, changed(small, (old, new))), tmp_path)


def test_all_errors_are_told_at_once(small, load):
    wrong = [("size: 100 kB", "size: 100"), ("ber: 1e-6}", "ber: 7}"), ("repeats: 2", "repeats: none")]
    said = refusal(load, changed(small, *wrong, ("node: h2", "noode: h2")))
    assert len(said.splitlines()) == 5  # node is missing and noode unknown


def test_same_error_at_many_points_is_told_once(small, load):
    axis = "sweep:\n  size: {set: [workloads.transfer.size], values: [1 kB, 2 kB, 0 B]}\n"
    assert refusal(load, changed(small, ("repeats: 2", ""), ("sweep:\n", axis))).count("\n") == 0


@pytest.mark.parametrize("content", ["", b"\xff\xfe\x00", "a: " + "[" * 5000 + "]" * 5000])
def test_a_file_that_is_no_scenario_is_told_once(content, load, tmp_path):
    assert "\n" not in golden.Case("scenario file", str(content)[:20] or "nothing").hold(
        refusal(load, content), tmp_path
    )


@golden.each("scenario by a wrong name")
def test_a_path_that_is_no_file_is_answered_with_the_files_of_its_folder(case, small, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "small.yaml").write_text(small)
    monkeypatch.chdir(tmp_path)
    case.hold(refusal(scenario.load, case), tmp_path)


@golden.each("scenario with --set")
def test_wrong_override_is_told_at_the_option(case, small, load, tmp_path):
    assert case.hold(refusal(load, small, case), tmp_path).startswith("--set ")


@golden.each("scenario with a variant")
def test_wrong_variant_is_told_at_its_line(case, small, write, tmp_path):
    path = write(f"{small}variants:\n  little: {case}\n")
    said = refusal(lambda: scenario.cells(scenario.load(f"{path}:little")))
    assert case.hold(said, tmp_path).startswith("small.yaml:")


def test_unknown_variant(small, write, tmp_path):
    said = refusal(scenario.load, f"{write(small)}:demo")
    golden.Case("scenario file", "an unknown variant").hold(said, tmp_path)


def test_the_serial_scenario_itself_is_right(load):
    load(SERIAL)


@golden.each("scenario with addresses of IPv6", "case ends text")
def test_what_is_in_ipv4_alone_is_refused_with_addresses_of_ipv6(case, ends, text, load, tmp_path):
    workload = "{{kind: bulk, name: transfer, from: {}, to: {}, size: 1 kB, segment: 400 B}}".format(*ends.split())
    head = "kind: scenario\nversion: 1\naddresses: ipv6\n"
    case.hold(refusal(load, f"{head}{text}\nworkloads: [{workload}]\n"), tmp_path)


NEAR = {"kind": "gateway", "name": "near", "node": "g1", "peer": "10.9.0.2", "far": ["10.2.0.0/24"]}
NEAR |= {"rate": "2 Mbit/s", "rtt": "1 s"}
FAR = NEAR | {"name": "far", "node": "g2", "peer": "10.9.0.1", "far": ["10.1.0.0/24"]}


def checked(*services):
    chosen = ["sweep.path=[cubic]", f"services={json.dumps(services)}"]
    return scenario.cells(scenario.load("links/gateway:test", chosen))


def test_a_pair_is_taken_and_a_second_gateway_of_a_router_is_not(told):
    assert len(checked(NEAR, FAR)) == 1
    told("gateways of a lab", "a second one", checked, NEAR, NEAR | {"name": "again"})


@golden.each("gateway of a lab")
def test_what_cannot_work_is_named(case):
    assert "\n" not in case.hold(refusal(checked, NEAR | yaml.safe_load(case)))


def test_what_is_known_of_a_path_reaches_the_programs_and_needs_congestion_control():
    known = {"careful_resume": {"window": "750 kB", "rtt": "600 ms"}}
    words = {"resume_window": 750_000, "resume_rtt_ms": 600}
    pair = json.dumps([NEAR | known | {"congestion_control": "vj"}, FAR])
    (cell,) = scenario.cells(scenario.load("links/gateway:test", ["sweep.path=[split]", f"services={pair}"]))
    assert [service.careful_resume for service in planning.plan(cell).cell.services] == [words, None]
    assert "found it without congestion control" in refusal(checked, NEAR | known)
    (cell,) = scenario.cells(scenario.load("links/resume:test", []))
    (transfer,) = planning.plan(cell).cell.workloads
    assert words.items() <= transfer.from_scps.settings.items()
    assert words.keys().isdisjoint(transfer.to_scps.settings)


@pytest.mark.parametrize("delay_ms", [10, 50, 125, 265])
def test_the_queue_and_the_gateways_follow_the_delay_of_gateway_bulk(delay_ms):
    chosen = [f"sweep.delay=[{delay_ms} ms]", "sweep.path=[split]", "sweep.ber=[0]", "sweep.size=[10 kB]", "repeats=1"]
    (cell,) = scenario.cells(scenario.load("links/gateway-bulk", chosen))
    plan = planning.plan(cell)
    assert {service.rtt_ns for service in plan.cell.services} == {2 * delay_ms * 10**6}
    hop = next(link for link in plan.network.links if link.name == "hop")
    for direction, rate_bps in zip(hop.directions, (10_000_000, 1_000_000), strict=True):
        product = rate_bps * 2 * delay_ms // 8000
        assert direction.queue.limit_bytes == max(product, 4 * FRAMED_PACKET_BYTES)


@pytest.mark.parametrize(
    ("rate", "delay", "expected"),
    [
        # The framing of full packets is left out; the far gateway's buffers take what the fast way brings.
        ("10 Mbit/s", "265 ms", [(9_973_404, None), (997_340, 1_325_000)]),
        ("1 Mbit/s", "265 ms", [(997_340, None), (997_340, None)]),
        ("100 Mbit/s", "10 ms", [(99_734_042, None), (997_340, 500_000)]),
    ],
)
def test_rate_round_trip_and_buffers_that_are_not_stated_follow_the_path(rate, delay, expected):
    bare = [{key: value for key, value in one.items() if key not in ("rate", "rtt")} for one in (NEAR, FAR)]
    chosen = [f"links.hop.forward.rate={rate}", f"links.hop.*.delay={delay}", "sweep.path=[split]"]
    (cell,) = scenario.cells(scenario.load("links/gateway:test", [*chosen, f"services={json.dumps(bare)}"]))
    found = planning.plan(cell).cell.services
    assert [(service.rate_bps, service.buffer_bytes) for service in found] == expected


@golden.each("gateway on another path")
def test_a_stated_value_that_the_path_has_not_is_doubted(case):
    chosen = [one for one in case.split(" + ") if one != "as it is"] + ["sweep.path=[split]"]
    cells = scenario.cells(scenario.load("links/gateway:test", [*chosen, f"services={json.dumps([NEAR])}"]))
    doubts = planning.doubts(cells, {cell.id: planning.plan(cell) for cell in cells})
    case.hold("\n".join(doubts) or "no doubt")


@pytest.mark.slow
def test_a_sweep_of_ten_thousand_million_cells_is_refused_at_once(told):
    axes = ", ".join(f"a{axis}: {{set: [seed], values: [{', '.join(map(str, range(10)))}]}}" for axis in range(10))
    loaded = scenario.load("links/round-trip:test", [f"sweep={{{axes}}}", "repeats=1"])
    started = time.process_time()
    told("what no machine can do: cells", "a sweep", scenario.cells, loaded)
    assert time.process_time() - started < 1


@pytest.mark.slow
@golden.each("what no machine can do")
def test_what_no_machine_can_do_is_refused(case):
    case.hold(refusal(lambda: scenario.cells(scenario.load("links/transfer", [case]))))


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


YAML_LIKE = st.text(alphabet="ab:-[]{}&*!|>'\"#%@`,?\n \t01.e<~", max_size=60)
OVERWRITTEN = st.builds(
    lambda at, length, patch: SMALL[:at] + patch + SMALL[at + length :],
    *(st.integers(0, len(SMALL) - 1), st.integers(0, 20), st.binary(max_size=8)),
)


@settings(FUZZ, max_examples=300)
@given(st.binary(max_size=200) | YAML_LIKE | OVERWRITTEN)
def test_any_text(write, data):
    attempt(write(data))


@FUZZ
@given(st.sampled_from(list(places(TREE))[1:]), VALUES)
def test_any_value_at_any_place(write, place, value):
    attempt(write(spoilt(SMALL.decode(), {".".join(map(str, place)): value})))


@settings(FUZZ, max_examples=200)
@given(st.text(max_size=40) | st.tuples(st.sampled_from(PARTS), VALUES))
def test_any_override(write, said):
    text = said if isinstance(said, str) else f"{said[0]}={yaml.safe_dump(said[1], default_flow_style=True)}"
    attempt(write(SMALL), text)


@FUZZ
@given(st.text(max_size=40))
def test_any_name(name):
    with contextlib.suppress(ScenarioError):
        scenario.load(name)
