"""Whole scenarios drawn at random: whatever is composed, the auditor explains every packet, and runs are what they say.

`SCPSLAB_DRAWS` says how many are drawn, `SCPSLAB_DRAWS_SEED` from which seed.
"""

import math
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from scpslab.measure.packets import read
from scpslab.runs import CellFiles
from tests.lab import drawn
from tests.lab.ran import Lab

COUNT, SEED = (
    int(os.environ.get(name, default)) for name, default in (("SCPSLAB_DRAWS", "5"), ("SCPSLAB_DRAWS_SEED", "1"))
)
# What a lab says of itself, and is no fault: a drawn loss list that is used up, a capture that lost packets.
SAID = ("all losses drawn for it had happened",)
MILLISECOND_S = 0.001


@pytest.fixture(scope="module")
def table():
    """Counts what the draws reach, and prints it when all are over."""
    counts = Counter()
    yield counts
    width = max(map(len, counts), default=0)
    print("", *(f"{word:{width}} {counts[word]}" for word in sorted(counts)), sep="\n")


def files_of(ran) -> dict[str, bytes]:
    """The files of the only cell, but for its plan, which says whether there is a record, and the record."""
    folder = ran.cell.folder
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}
    return {name: content for name, content in files.items() if name not in ("plan.json", "records/packets.rec")}


def bounds_s(said) -> float:
    """Within which the last workload has ended, if it keeps its timeout: parts that have none are no bound."""
    return max(float(one["start"].split()[0]) / 1000 + seconds(one.get("timeout", "40 s")) for one in said["workloads"])


def seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"ms": 0.001, "s": 1.0}[unit]


@pytest.mark.parametrize("number", range(COUNT))
def test_a_drawn_scenario_is_explained_and_gives_the_same_again(number, tmp_path: Path, table):
    path, said = drawn.scenario(SEED, number, tmp_path / "scenario")
    table.update(drawn.reached(said))
    lab = Lab(tmp_path)
    ran = lab(path)
    cell = ran.cell

    assert cell.status in ("completed", "incomplete") or any(words in cell.reason for words in SAID), cell.reason
    if cell.status == "failed":
        return
    assert all(line["closes"] for line in cell.records("accounting"))
    for packets in read(CellFiles(cell.folder).packets):
        account = cell.account(packets.direction, packets.link)
        assert (len(packets), int(np.sum(packets.wire_bytes))) == (account["offered_packets"], account["offered_bytes"])
    for column, value in ran.row.items():
        assert value.lower() not in ("nan", "inf", "-inf"), column
        if column.endswith("utilization") and value:
            assert 0 <= float(value) <= 1 + 1e-9, (column, value)
    assert cell.virtual_s <= bounds_s(said) + MILLISECOND_S, (cell.reason, bounds_s(said))
    assert math.isfinite(cell.virtual_s)
    assert files_of(lab(path)) == files_of(ran)
    assert files_of(lab(path, "packets=off")) == files_of(ran)
