"""Files of every format that a release since 0.4.0 has written are read; a new format adds one to
tests/data/formats.
"""

import csv
import json
from pathlib import Path
from typing import get_args

import pytest

from scpslab import plan, scenario
from scpslab.analysis.collect import row_of, rows_as_csv
from scpslab.analysis.run import open_run
from scpslab.runs import FORMAT as RUN_FORMAT
from scpslab.runs import archive
from scpslab.scenario.model import ScenarioFile

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "formats"
SCENARIO_VERSIONS = get_args(ScenarioFile.model_fields["version"].annotation)
NEWEST = {"scenario": max(SCENARIO_VERSIONS), "plan": plan.FORMAT, "run": RUN_FORMAT, "archive": archive.FORMAT}
OLDEST = dict.fromkeys(NEWEST, 1) | {"plan": 2}


def every(kind: str, suffix: str = "") -> list[Path]:
    return [DATA / f"{kind}-{number}{suffix}" for number in range(OLDEST[kind], NEWEST[kind] + 1)]


@pytest.mark.parametrize("kind", NEWEST)
def test_there_is_a_file_of_every_format(kind):
    numbers = sorted(int(path.name.split("-")[1].split(".")[0]) for path in DATA.glob(f"{kind}-*"))
    assert numbers == list(range(OLDEST[kind], NEWEST[kind] + 1))


@pytest.mark.parametrize("path", every("scenario", ".yaml"), ids=lambda path: path.name)
def test_scenarios_of_every_version_are_read(path):
    loaded = scenario.load(str(path))
    assert (loaded.model.title, loaded.seed, len(loaded.model.workloads)) == ("Small", 7, 1)


@pytest.mark.parametrize("path", every("plan", ".json"), ids=lambda path: path.name)
def test_plans_of_every_format_are_read(path):
    found = plan.parse(path.read_bytes())
    assert (found.cell.id, found.network.topology, [work.name for work in found.cell.workloads]) == (
        "ber=0,r1",
        "point_to_point",
        ["transfer"],
    )


@pytest.mark.parametrize("path", every("run"), ids=lambda path: path.name)
def test_runs_of_every_format_give_their_results(path):
    run = open_run(path)
    assert [(cell.plan.cell.id, cell.status) for cell in run.cells] == [("ber=0,r1", "completed")]
    (now,) = csv.DictReader(rows_as_csv(map(row_of, run.cells)).splitlines())
    then = next(row for row in csv.DictReader((path / "results.csv").read_text().splitlines()) if row["ber"] == "0")
    # A later release may have more columns and values, and none less. Whether packets are those of a record or of a
    # capture is not told.
    then["transfer_source"] = then["transfer_source"].replace("capture", "packets")
    assert {name: now[name] for name in then if then[name]} == {name: value for name, value in then.items() if value}


@pytest.mark.parametrize("path", every("archive", ".tar.gz"), ids=lambda path: path.name)
def test_archives_of_every_format_are_read(path):
    (run,) = archive.read_archive(path)
    assert len(run.plans) == 3


def test_the_page_has_the_current_numbers():
    page = (ROOT / "docs" / "formats.md").read_text()
    for row, number in (
        ("scenario, campaign", "scenario"),
        ("plan (", "plan"),
        ("run folder (", "run"),
        ("archive of", "archive"),
    ):
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {row}")]
        assert line.split("|")[3].strip() == str(NEWEST[number])


@pytest.mark.parametrize(
    ("number", "expected"),
    [(1, f"{plan.FORMAT}, or scpslab 0.4.0 to read it"), (plan.FORMAT + 1, f"at most {plan.FORMAT}, what this")],
)
def test_an_older_or_newer_format_is_refused_with_both_numbers(number, expected):
    fields = json.loads((DATA / "plan-2.json").read_text()) | {"format": number}
    with pytest.raises(plan.PlanError, match=rf"^format: found {number}.*; expected {expected}"):
        plan.read(fields)
