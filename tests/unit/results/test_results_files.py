"""Columns of transfers of files and of serial links, from records; what is not known stays empty. Whose a column is:
names in the project's claims, recipes and formulas mean one workload's numbers. A metric that could not be measured
is empty, and its row says why. Files of a stranger's run that are larger than any run has: refused by name before
they are read.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
import yaml

from scpslab import plan as plans
from scpslab import scenario
from scpslab.analysis.collect import columns_by_workload, columns_of, measure
from scpslab.analysis.lost_packets import CAUSES
from scpslab.analysis.metrics.data_flows import families
from scpslab.analysis.run import open_run
from scpslab.analysis.table import read_results, report, summarise
from scpslab.core.contents import check_sizes, content_of
from scpslab.core.errors import ResultError, ScenarioError
from scpslab.lab.packets import OTHERS
from scpslab.plan import Plan
from scpslab.scenario import planning
from scpslab.scenario.consistency import OTHER_OWNERS
from tests.runs import write_cell, write_manifest

FTP = {"event": "client", "command": "get", "bytes": 10_000, "before_transfer_s": 0.5, "total_s": 1.5}
FTP |= {"start_t_s": 1.0, "end_t_s": 2.75, "exit_code": 0}
SAME = {"event": "file", "bytes": 10_000, "sha256": "ab", "sent_sha256": "ab"}
FILE = SAME | {"lost_bytes": 0, "duplicated_bytes": 0, "damaged_bytes": 0}
DIRECTION = {
    "event": "direction",
    "direction": "forward",
    "sent_frames": 10,
    "received_frames": 8,
    "lost_frames": 2,
    "bit_errors": 3,
    "most_waiting_bytes": 99,
}
OPEN = {"command": "open 10.7.0.1 2121", "status": "complete", "seconds": 0.25}
GET = {
    "command": "get file.bin",
    "status": "complete",
    "octets": 10_000,
    "restarts": 0,
    "markers": [0],
    "seconds": 2.0,
    "integrity": "ok",
}


def client(*reports, start_t_s=1.0):
    """A line of a client of SCPS-FP."""
    return {"event": "client", "start_t_s": start_t_s, "end_t_s": start_t_s + 9, "exit_code": 0, "reports": reports}


def by_ftp():
    """A plan with one transfer by FTP over a serial link of 115200 baud, and 2400 back."""
    plan = planning.plan(scenario.cells(scenario.load("sgls/itc-unbalanced", ["repeats=1"]))[0])
    (link,) = plan.network.serial_links
    assert [direction.rate_bps for direction in link.directions] == [115_200, 2_400]
    return plan


def by_fp():
    """A plan with one transfer by the file protocol, whose client is at the receiving host."""
    plan = planning.plan(scenario.cells(scenario.load("fp/restart", ["repeats=1"]))[0])
    (transfer,) = plan.cell.workloads
    transfer = replace(transfer, command="get", stop="none", stop_at=None)
    return replace(plan, cell=replace(plan.cell, workloads=(transfer,)))


@pytest.fixture
def values(tmp_path):
    """Metrics of a cell of a plan without probes, with these records, by column."""

    def make(plan, **records):
        plan = replace(plan, cell=replace(plan.cell, probes=()))
        cell = tmp_path / "test-run" / "cells" / plan.cell.id
        write_cell(cell, plan, records, epoch_realtime_ns=0, virtual_s=2.0)
        write_manifest(tmp_path / "test-run", "sgls/test")
        (run_cell,) = open_run(tmp_path / "test-run").cells
        return measure(run_cell)

    return make


def those(found, *names):
    """The values of some columns."""
    return tuple(found.get(name) for name in names)


def test_ftp_s_transfer_is_what_the_client_reports_less_what_came_before(values):
    found = values(by_ftp(), transfer=[FTP, SAME])
    assert those(found, "bytes", "transfer_s", "client_total_s", "payload_match") == (10_000, 1.0, 1.5, True)
    assert found["user_s"] == 1.75
    assert found["goodput_bps"] == 80_000
    assert found["utilization"] == pytest.approx(80_000 / 115_200)


@pytest.mark.parametrize("code", [28, 143])
def test_a_client_that_failed_or_was_ended_has_no_time_that_a_user_waits(values, code):
    found = values(by_ftp(), transfer=[FTP | {"exit_code": code}, SAME])
    assert "user_s" not in found
    assert "user_s: the last client failed, or was ended" in found["unmeasured"]


def test_an_ftp_client_that_told_nothing_has_no_time_and_a_wrong_file_does_not_match(values):
    found = values(by_ftp(), transfer=[{"event": "client"}, SAME | {"sha256": "cd"}])
    assert those(found, "bytes", "transfer_s", "goodput_bps", "payload_match") == (10_000, None, None, False)


def test_frames_and_bit_errors_have_a_column_per_direction(values):
    found = values(by_ftp(), serial=[{"event": "ppp", "node": "ground"}, DIRECTION])
    assert not [name for name in found if name.startswith("serial_ack_")]
    assert "serial_ack_sent_frames, serial_ack_lost_frames" in found["unmeasured"]
    assert {name: value for name, value in found.items() if name.startswith("serial_data_")} == {
        f"serial_data_{name}": DIRECTION[name]
        for name in ("sent_frames", "lost_frames", "bit_errors", "most_waiting_bytes")
    }


HALF = GET | {"status": "interrupted", "octets": 4_000, "integrity": None}
AGAIN = GET | {"command": "resume get file.bin", "octets": 6_000, "markers": [4_000], "seconds": 1.5}
WRONG = FILE | {"sha256": "cd", "lost_bytes": 7, "damaged_bytes": 3}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (
            [client(OPEN, GET), FILE],
            {"transfer_s": 2.0, "client_total_s": 2.25, "goodput_bps": 40_000, "restarts": 0, "moved_bytes": 10_000}
            | {"user_s": 9.0, "resumed_at_bytes": None, "integrity_ok": True},
        ),
        (
            [client(OPEN, HALF, AGAIN), FILE],
            {"transfer_s": 3.5, "restarts": 1, "moved_bytes": 10_000, "resumed_at_bytes": 4_000},
        ),
        (
            [client(OPEN), client(OPEN, AGAIN | {"seconds": 2.0}, start_t_s=8.0), FILE],
            {"transfer_s": None, "client_total_s": 9.25, "user_s": 16.0, "restarts": 1},
        ),
        (
            [client(OPEN, GET | {"integrity": "mismatch"}), WRONG],
            {"payload_match": False, "integrity_ok": False, "lost_bytes": 7, "damaged_bytes": 3},
        ),
    ],
    ids=["the transfer command alone is timed", "resumed is one transfer", "killed told no time", "wrong bytes"],
)
def test_columns_of_the_file_protocol(values, records, expected):
    found = values(by_fp(), transfer=records)
    assert {name: found.get(name) for name in expected} == expected


def test_a_last_client_that_was_killed_before_it_reported_leaves_the_figures_of_those_before(values):
    killed = client(start_t_s=20.0) | {"exit_code": -9}
    found = values(by_fp(), transfer=[client(GET, start_t_s=4.0), killed, SAME])
    assert those(found, "client_total_s", "restarts", "moved_bytes", "integrity_ok") == (2.0, 1, 10_000, True)


PROJECT = Path(__file__).parents[3]
SCENARIOS = [path for path in sorted((PROJECT / "scenarios").rglob("*.yaml")) if path.parent.name != "campaigns"]
# A direction's losses end as those of a program's own packets do.
OF_A_LINK = re.compile(r"_lost_\w+_packets$")
# What formulas read beside results.csv.
FOR_FORMULAS = {"resends", "resend_causes", "resend_frames", *(f"resends_{cause}" for cause in CAUSES)}


def shapes(path: Path) -> Iterator[Plan]:
    """A plan of each set of workloads that the cells of a scenario have."""
    known = set()
    for cell in scenario.cells(scenario.load(str(path))):
        names = tuple((workload.name, workload.kind) for workload in cell.model.workloads)
        if names not in known:
            known.add(names)
            yield planning.plan(cell)


@cache
def names_of(name: str) -> frozenset[str]:
    """What columns of workloads may be called in a scenario of the project, in one of its cells or in several."""
    return frozenset(
        one
        for plan in shapes(PROJECT / "scenarios" / f"{name}.yaml")
        for place, column in columns_by_workload(plan).items()
        for one in (column, "_".join(place))
    )


def asked() -> dict[str, set[str]]:
    """The columns of workloads that claims and recipes of the project name, by scenario."""
    found: dict[str, set[str]] = {}
    every = {column.name for family in families() for column in family.columns}
    for path in sorted((PROJECT / "analysis").rglob("*.yaml")):
        said = yaml.safe_load(path.read_text())
        series = said.get("series", {}) if said.get("kind") == "claims" else {}
        for name, one in series.items() if isinstance(series, dict) else ():
            metrics = {
                operand.get("metric") or check["metric"]
                for claim in said["claims"]
                for check in claim.get("checks", ())
                for operand in operands(check)
                if operand["series"] == name and (operand.get("metric") or check.get("metric"))
            }
            for pattern in one["scenarios"]:
                found.setdefault(pattern, set()).update(metrics)
        for pattern in said.get("applies_to", []):
            found.setdefault(pattern, set()).update({said["metric"]} if said.get("metric") else ())
    # Other columns are those of links, services and probes.
    of_workloads = {
        name: {one for one in mine if any(map(one.endswith, every)) and not OF_A_LINK.search(one)}
        for name, mine in found.items()
    }
    return {name: mine for name, mine in of_workloads.items() if mine}


def operands(check: dict) -> Iterator[dict]:
    """The parts of a check that name a series."""
    for value in check.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict) and "series" in one:
                yield one
    for key in ("of", "to", "minus"):
        if isinstance(check.get(key), str):
            yield {"series": check[key]}


@pytest.mark.parametrize("pattern", sorted(asked()))
def test_claims_and_recipes_name_columns_that_one_workload_has(pattern):
    """A name that several workloads of all cells have would be none: nobody reads another one's numbers."""
    paths = [path for path in SCENARIOS if fnmatchcase(f"{path.parent.name}/{path.stem}", pattern)]
    for path in paths:
        unknown = asked()[pattern] - names_of(f"{path.parent.name}/{path.stem}")
        assert unknown == set(), path


def formulas() -> dict[tuple[str, str], set[str]]:
    """The columns that the formulas of each assignment name, by scenario."""
    found: dict[tuple[str, str], set[str]] = {}
    for marking in sorted((PROJECT / "assignments").glob("*/instructor/marking.yaml")):
        for name, column in re.findall(r'\(\s*"([\w-]+)",\s*"([\w]+)"', marking.read_text()):
            found.setdefault((marking.parents[1].name, name), set()).add(column)
    return found


@pytest.mark.parametrize("place", formulas(), ids="-".join)
def test_formulas_of_assignments_name_columns_that_their_cells_have(place):
    assignment, name = place
    try:
        loaded = scenario.load(str(PROJECT / "assignments" / assignment / f"{name}.yaml"))
        plan = planning.plan(next(iter(scenario.cells(loaded))))
    except ScenarioError:
        pytest.skip("it needs a student's program, or is in the instructor's part")
    known = {*columns_of([plan]), *map("_".join, columns_by_workload(plan)), *FOR_FORMULAS, "cell", "status"}
    assert formulas()[place] <= known


def test_a_column_has_the_name_with_its_workload_too_and_a_table_says_whose_it_is(run_dir):
    write_manifest(run_dir, "fig04-golden")
    for cell in (run_dir / "cells").iterdir():
        plan = plans.parse((cell / "plan.json").read_bytes())
        (transfer,) = plan.cell.workloads
        other = replace(transfer, name="second", port=5009)
        (cell / "plan.json").write_text(plans.text(replace(plan, cell=replace(plan.cell, workloads=(transfer, other)))))
    both = read_results(run_dir)
    assert {"transfer_user_s", "second_user_s"} <= set(both.metrics)
    assert "user_s" not in both.names
    assert summarise(both).metrics[:1] == ("transfer_transfer_s",)


def test_the_only_owner_of_a_column_may_be_named(run_dir):
    results = read_results(run_dir)
    assert "transfer_user_s" not in results.metrics
    short, long = (summarise(results, metrics=[name]) for name in ("user_s", "transfer_user_s"))
    for one, other in zip(short.groups, long.groups, strict=True):
        assert one.means["user_s"] == other.means["transfer_user_s"]
    assert not any("of transfer" in note for note in report(short).notes)


@pytest.mark.parametrize("name", OTHERS)
def test_nobody_has_a_name_of_the_record_s_own(name, tmp_path):
    assert name in OTHER_OWNERS
    workload = f"{{kind: ping, name: {name}, from: h1, to: h2}}"
    said = f"kind: scenario\nversion: 1\ntitle: One\ntopology: point_to_point\nworkloads: [{workload}]\n"
    (tmp_path / "mine.yaml").write_text(said)
    with pytest.raises(ScenarioError, match=f'name: found (the name )?"{name}"'):
        scenario.load(str(tmp_path / "mine.yaml"))


def reasons_of(row) -> dict[str, str]:
    """Why columns of a row are empty."""
    parts = [part.partition(": ") for part in row["unmeasured"].split("; ") if part]
    return {name: why for names, _, why in parts for name in names.split(", ")}


def test_every_empty_metric_of_a_completed_cell_has_a_reason_and_no_other(run_dir):
    results = read_results(run_dir)
    for row in results.rows:
        empty = {name for name in results.metrics if not row[name]} if row["status"] == "completed" else set()
        assert set(reasons_of(row)) == empty


def test_reasons_are_those_of_the_cell(run_dir):
    by_cell = {row["cell"]: row for row in read_results(run_dir).rows}
    unharmed, harmed = (reasons_of(by_cell[f"stack=bbr,ber={ber},r1"]) for ber in ("0", "1e-05"))
    assert (unharmed["repair_s"], harmed.get("repair_s")) == ("nothing was sent again", None)
    assert unharmed["rate_congestion_r"] == "there is no congestion traffic"
    assert unharmed["superfluous_resends"] == "only SCPS-TP counts them"


# ws4 listens at the switch of ws1.
@pytest.mark.parametrize(
    ("gone", "host", "empty", "kept"),
    [("ws4", "ws1", "rtt_min_s", "first_ack_delay_s"), ("ws2", "ws2", "first_ack_delay_s", "rtt_min_s")],
)
def test_without_packets_of_a_host_its_columns_say_so(run_dir, gone, host, empty, kept):
    for capture in run_dir.glob(f"cells/*/captures/{gone}.pcap"):
        capture.unlink()
    reasons = reasons_of(read_results(run_dir).rows[0])
    assert reasons[empty] == f"no record of packets has {host}, and no capture has all of its packets"
    assert kept not in reasons


def test_a_table_says_why_what_it_shows_is_empty(run_dir, scpslab):
    shutil.rmtree(next(run_dir.glob("cells/stack=bbr,ber=1e-05,r1")))
    code, said, _ = scpslab("results", run_dir, "--metric", "repair_s")
    rows = [row for row in read_results(run_dir).rows if row["status"] == "completed"]
    empty = sum("repair_s" in reasons_of(row) for row in rows)
    assert code == 0
    expected = f"repair_s is empty in {empty} of {len(rows)} completed cells: nothing was sent again."
    assert expected in " ".join(said.split())
    told = json.loads(scpslab("results", run_dir, "--metric", "repair_s", "--format", "json")[1])["unmeasured"]
    assert told == [{"metric": "repair_s", "reason": "nothing was sent again", "cells": empty}]


def test_reasons_are_of_columns_that_there_are():
    for family in families():
        assert set(family.empty) & {column.name for column in family.columns} or not family.empty


HUGE = 20 << 30


def swell(path):
    """Makes a sparse file: nothing of it is on the disk."""
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.truncate(path, HUGE)


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("results.csv", ["results"]),
        ("manifest.json", ["report"]),
        ("cells/*/environment.json", ["export", "--whole"]),
        ("cells/*/captures/h1.pcap", ["plot"]),
    ],
)
def test_a_file_of_20_gib_is_told_by_its_name(run_dir, scpslab, place, command):
    at = run_dir / place if "*" not in place else next((run_dir / "cells").iterdir()) / place.partition("*/")[2]
    swell(at)
    code, _, err = scpslab(command[0], run_dir, *command[1:])
    assert (code, str(at) in err, str(HUGE) in err) == (5, True, True)


def test_a_scenario_of_20_gib(tmp_path, scpslab):
    swell(tmp_path / "mine.yaml")
    code, _, err = scpslab("validate", tmp_path / "mine.yaml")
    assert (code, str(HUGE) in err) == (2, True)


def test_the_border(tmp_path):
    """A file of the largest size is read, one byte more is not; a file that says that it is empty is read to its end."""
    (tmp_path / "a").write_bytes(b"1234")
    assert content_of(tmp_path / "a", 4) == b"1234"
    with pytest.raises(OSError, match="4 bytes, more than 3 bytes"):
        content_of(tmp_path / "a", 3)
    (tmp_path / "b").write_bytes(b"")
    assert content_of(tmp_path / "b", 0) == b""
    assert content_of(Path("/proc/self/stat")).startswith(b"%d " % os.getpid())
    check_sizes(tmp_path)
    swell(tmp_path / "c")
    with pytest.raises(ResultError, match="c: found"):
        check_sizes(tmp_path)
