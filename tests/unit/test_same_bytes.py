"""tests/same_bytes, the cells by which two states of the project are compared: they hold one of everything."""

from pathlib import Path
from typing import Any

import pytest

from scpslab import scenario
from scpslab.plan import write
from scpslab.plan.probes import PROBES
from scpslab.plan.workloads import WORKLOADS
from scpslab.scenario import planning, topologies
from scpslab.scenario.disciplines import DISCIPLINES
from scpslab.scenario.errors import MODELS
from scpslab.scenario.stacks import STACKS
from tools import same_bytes

from scpslab.kinds.stacks.kernel.scenario import PRESETS
from scpslab.kinds.stacks.scps.scenario import PRESETS as OF_SCPS


@pytest.fixture(scope="module")
def plans() -> list[dict[str, Any]]:
    """Every plan of the chosen cells."""
    return [
        write(planning.plan(cell))
        for path in sorted(same_bytes.SCENARIOS.glob("*.yaml"))
        for cell in scenario.cells(scenario.load(str(path)))
    ]


def test_every_topology_workload_and_probe_is_there(plans):
    assert {plan["network"]["topology"] for plan in plans} == set(topologies.names())
    assert {workload["kind"] for plan in plans for workload in plan["cell"]["workloads"]} == set(WORKLOADS)
    assert {probe["kind"] for plan in plans for probe in plan["cell"]["probes"]} == set(PROBES)


def test_every_stack_and_preset_is_there(plans):
    text = "".join(path.read_text() for path in same_bytes.SCENARIOS.glob("*.yaml"))

    assert {node["stack"] for plan in plans for node in plan["network"]["nodes"] if node["kind"] == "host"} == set(
        STACKS
    )
    assert [preset for preset in {*PRESETS, *OF_SCPS} if f"preset: {preset}" not in text] == []


def test_every_error_model_action_and_queue_is_there(plans):
    errors = [one["errors"] for plan in plans for one in plan["cell"]["impairments"] if "errors" in one]
    queues = {
        direction["queue"]["discipline"]
        for plan in plans
        for link in plan["network"]["links"]
        for direction in link["directions"]
        if direction["queue"]
    }

    assert {error["model"] for error in errors} >= set(MODELS)
    assert {error["action"] for error in errors} == {"drop", "flip"}
    assert any(error["drop_packets"] for error in errors)
    assert any(error["outages"] for error in errors)
    assert queues == set(DISCIPLINES)


def test_a_serial_link_events_and_containers_are_there(plans):
    assert any(plan["network"]["serial_links"] for plan in plans)
    events = [event for plan in plans for event in plan["cell"]["events"]]
    assert {"link" if "link" in event else "command" for event in events} == {"link", "command"}
    assert {plan["network"]["containers"] for plan in plans} == {"process", "docker"}


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """Two runs of the same bytes: of the commit, and of this tree."""
    for folder in (trees := (tmp_path / "then", tmp_path / "now")):
        (folder / "cells" / "r1" / "records").mkdir(parents=True)
        (folder / "results.csv").write_text("a\n")
        (folder / "cells" / "r1" / "plan.json").write_text('{"format": 1}')
    assert same_bytes.compare(*trees) == ([], 2)
    return trees


def test_a_changed_a_missing_and_a_new_file_are_found(trees):
    then, now = trees
    (now / "results.csv").write_text("b\n")
    (then / "cells" / "r1" / "status.json").write_text("{}")
    (now / "cells" / "r1" / "new.json").write_text("{}")
    (now / "cells" / "r1" / "plan.json").write_text('{"format": 1, "x": 2}')
    different, compared = same_bytes.compare(then, now)

    assert compared == 4
    assert different == [
        "cells/r1/new.json: only in this tree",
        "cells/r1/plan.json: differs",
        "cells/r1/status.json: only in the commit",
        "results.csv: differs",
    ]
    (now / "cells" / "r1" / "plan.json").write_text('{"format": 2, "x": 2}')
    assert "cells/r1/plan.json: differs" not in same_bytes.compare(then, now)[0]


def test_how_long_the_set_up_took_is_no_difference_and_what_came_later_is(trees):
    record = "cells/r1/records/lab.jsonl"
    phase = '{{"event": "phase", "name": "{}", "t_s": {}}}\n'
    for folder, set_up_s in zip(trees, (-0.25, -0.125), strict=True):
        (folder / record).write_text(phase.format("network", set_up_s) + phase.format("workloads", 0.0))
    assert same_bytes.compare(*trees) == ([], 3)
    (trees[0] / record).write_text(phase.format("workloads", 0.5))
    assert same_bytes.compare(*trees) == ([f"{record}: differs"], 3)
