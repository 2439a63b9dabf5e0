"""Everything that can be wrong with a scenario is one line: where, what was found, what was expected, what to do."""

import re

import pytest
import yaml

from scpslab import scenario
from tests import golden
from tests.cases import changed, refusal, steps

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
