"""Files in the words of 0.3.0: the same cells, draws, losses and times under today's words.

`cells-0.3.0.json` was made of `scenarios-0.3.0.tar.gz` by the program before the words changed.
"""

import hashlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scpslab import plan as plans
from scpslab import scenario
from scpslab.scenario import planning
from scpslab.scenario.cells import MOST_CELLS
from scpslab.scenario.former import read_today
from scpslab.scenario.migrated import migrated
from scpslab.scenario.topologies import OnDisk

ROOT = Path(__file__).parents[3]
FORMATS = ROOT / "tests" / "data" / "formats"
CELLS = json.loads((FORMATS / "cells-0.3.0.json").read_text())
NAMES = sorted({full.partition(":")[0] for full in CELLS})
# Queues of one bandwidth-delay product, and the rates and buffers of gateways, follow the rates and delays of links, as
# they did not in 0.3.0: of these the cells and draws are the same, and not all numbers.
FOLLOWING = (
    "links/gateway",
    "links/gateway-applications",
    "links/gateway-bulk",
    "links/gateway-congested",
    "np/vegas-start-ecn",
)
# Assignments whose later editions have other cases.
REWRITTEN = ("assignments/ack-path/strategies.yaml", "assignments/space-transport/setting.yaml", "fp/outages")
# What a plan draws, or draws from.
DRAWN = ("rates_bps", "record_at", "stop_at")
# Of each scenario and variant, the first and last of its cells are planned.
ENDS = 3


def fingerprint(loaded: scenario.Scenario) -> list[Any]:
    """How many cells it has, and digests of their names and all that is drawn in them, and of all numbers in them.

    Words are in none of them.
    """
    cells = scenario.cells(loaded)
    planned = planning.plans([*cells[:ENDS], *cells[ENDS:][-ENDS:]])
    written = [plans.write(plan) for plan in planned.values()]
    drawn = [[cell.id for cell in cells], [list(_drawn(plan)) for plan in written]]
    return [len(cells), _digest(drawn), _digest([list(_numbers(plan)) for plan in written])]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _drawn(value: Any, key: str = "") -> Iterator[Any]:
    if key.endswith(("seed", "seeds")) or key in DRAWN:
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _drawn(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _drawn(inner)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, int | float):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _numbers(inner)


def of(folder: Path, name: str, most_cells: int) -> dict[str, Any]:
    """What the record has of a file in a folder and of its variants of so many cells, as it is found now."""
    file = folder / (name if name.endswith(".yaml") else f"scenarios/{name}.yaml")
    variants = [full.removeprefix(name) for full in CELLS if full.removeprefix(name)[:1] in ("", ":")]
    chosen = [one for one in variants if CELLS[name + one][0] <= most_cells]
    return {name + one: fingerprint(scenario.load(f"{file}{one}")) for one in chosen}


def of_record(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """What is expected of these."""
    kept = 2 if name in FOLLOWING else 3
    return {full: [*CELLS[full][:kept], *found[full][kept:]] for full in found}


@pytest.fixture(scope="session")
def old(tmp_path_factory) -> Path:
    """The scenarios of the project, of its assignments and of its checks in the words of 0.3.0."""
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(FORMATS / "scenarios-0.3.0.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REWRITTEN])
def test_todays_files_have_the_cells_and_draws_of_0_3_0(name):
    found = of(ROOT, name, MOST_CELLS)
    assert found == of_record(name, found)


@pytest.mark.parametrize("name", NAMES)
def test_files_of_0_3_0_mean_the_same_with_and_without_migrate(name, old):
    found = of(old, name, most_cells=60)
    assert found == of_record(name, found)
    path = old / (name if name.endswith(".yaml") else f"scenarios/{name}.yaml")
    before = read_today(path)
    text, new = migrated(path, OnDisk())
    path.write_text(new)
    after = read_today(path)
    path.write_text(text)
    assert (after.document.data, after.changes, bool(before.changes)) == (before.document.data, (), new != text)
    comments = [[line for line in lines.splitlines() if "#" in line] for lines in (text, new)]
    assert comments[0] == comments[1]
