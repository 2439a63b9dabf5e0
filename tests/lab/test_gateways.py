"""Gateways of a scenario: kernel TCP through two of them gains on a lossy hop, their accounts close, and the same cell
has the same bytes.
"""

from __future__ import annotations

import csv
import json

import pytest

from scpslab.analysis.run import open_run
from scpslab.running import RunOptions, run_scenario
from tests.lab.forks import digests

pytestmark = pytest.mark.lab

SIZE = 1_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The cells of the variant `test`: end to end with CUBIC, and split."""
    return run_scenario(
        "links/gateway:test", RunOptions(out=tmp_path_factory.mktemp("gateway"), jobs=1, use_cache=False)
    )


def cells(run):
    """The cells by their paths."""
    return {cell.plan.cell.axes["path"]: cell for cell in open_run(run.folder).cells}


def test_a_split_connection_does_not_wait_for_each_loss(run):
    found = cells(run)
    status = {path: json.loads((cell.folder / "status.json").read_text()) for path, cell in found.items()}

    assert {path: one["status"] for path, one in status.items()} == {"cubic": "completed", "split": "completed"}
    # At a BER of 1e-5 every ninth packet is lost.
    assert status["split"]["virtual_s"] < 10 < status["cubic"]["virtual_s"]


def test_the_account_of_each_gateway_closes(run):
    cell = cells(run)["split"]

    for name, side in (("near", "from_lan"), ("far", "from_wan")):
        lines = list(cell.records(name))
        connections = [line for line in lines if line["event"] == "connection"]
        assert sum(line[side]["delivered"] for line in connections) >= SIZE
        # The cell ends with the workload; what is then left are FINs.
        assert all(line["end"] in ("finished", "the gateway stopped") for line in connections)
        for line in connections:
            for account in (line["from_lan"], line["from_wan"]):
                assert account["received"] == account["delivered"]
                assert account["lost"] == account["buffered"] == 0
        assert lines[-1]["event"] == "counters"
        assert lines[-1]["closes"]
        assert "cpu_s" not in lines[-1]


def test_the_table_of_results_has_the_accounts(run):
    with (run.folder / "results.csv").open() as file:
        rows = {row["path"]: row for row in csv.DictReader(line for line in file if not line.startswith("#"))}
    split, whole = rows["split"], rows["cubic"]

    for name, side, other in (("near", "from_lan", "from_wan"), ("far", "from_wan", "from_lan")):
        account = {what: split[f"{name}_{side}_{what}_bytes"] for what in ("received", "delivered", "buffered", "lost")}
        assert account == {"received": str(SIZE), "delivered": str(SIZE), "buffered": "0", "lost": "0"}
        assert split[f"{name}_{other}_lost_bytes"] == "0"
        assert split[f"{name}_closes"] == "true"
        assert {whole[column] for column in split if column.startswith(f"{name}_")} == {""}
    # At a BER of 1e-5 every ninth of 700 packets is lost.
    assert 50 < int(split["near_resends"]) < 150


def test_the_same_cell_has_the_same_bytes_twice(run, tmp_path):
    again = run_scenario("links/gateway:test", RunOptions(out=tmp_path, jobs=1, use_cache=False))

    assert digests(run.folder / "cells") == digests(again.folder / "cells")


def test_a_gateway_that_cannot_start_fails_the_cell_and_says_why(tmp_path):
    own_lan = {
        "kind": "gateway",
        "name": "near",
        "node": "g1",
        "peer": "10.9.0.2",
        "far": ["10.1.0.0/24"],
        "rate": "2 Mbit/s",
        "rtt": "1 s",
    }
    overrides = ["sweep.path=[cubic]", f"services={json.dumps([own_lan])}"]
    result = run_scenario("links/gateway:test", RunOptions(out=tmp_path, jobs=1, use_cache=False, overrides=overrides))
    cell = cells(result)["cubic"]
    status = json.loads((cell.folder / "status.json").read_text())

    assert status["status"] == "failed"
    assert status["reason"].startswith("ChildProcessError: service near on g1: scps gateway ended with exit code 3")
    assert "10.1.0.0/24 is routed to" in status["reason"]


def test_a_page_gains_and_requests_in_a_row_do_not(tmp_path):
    result = run_scenario("links/gateway-applications:test", RunOptions(out=tmp_path, jobs=1, use_cache=False))
    took_s = {}
    for cell in open_run(result.folder).cells:
        [command] = [line for line in cell.records("script") if line["node"] == "server"]
        assert command["exit_code"] == 0, cell.plan.cell.axes
        took_s[cell.plan.cell.axes["application"], cell.plan.cell.axes["path"]] = command["end_t_s"] - command["t_s"]

    # Thirty objects over one connection of HTTP/2: slow start costs round trips.
    assert took_s["page-of-30-http2", "split"] < 0.95 * took_s["page-of-30-http2", "cubic"]
    # A hundred requests one after another take a hundred round trips of 102 ms, whoever carries them.
    assert min(took_s["requests", "cubic"], took_s["requests", "split"]) > 10.2
    assert took_s["requests", "split"] == pytest.approx(took_s["requests", "cubic"], rel=0.03)


def test_ten_transfers_at_once_complete_with_their_accounts(tmp_path):
    result = run_scenario("links/gateway-congested:test", RunOptions(out=tmp_path, jobs=1, use_cache=False))
    found = cells(result)
    statuses = {path: json.loads((cell.folder / "status.json").read_text())["status"] for path, cell in found.items()}

    assert statuses == {"cubic": "completed", "split": "completed"}
    for name in ("near", "far"):
        lines = list(found["split"].records(name))
        assert sum(line["event"] == "connection" for line in lines) == 10
        assert lines[-1]["closes"]


@pytest.mark.parametrize("outage_s", [1, 10, 60, 600])
def test_an_outage_of_the_link_is_waited_for(tmp_path, outage_s):
    """The hop is dead both ways in the middle of the transfer: nothing is lost, and nobody gives up."""
    begin_s = 2
    outage = f"links.hop.*.errors.outages=[{{from: {begin_s} s, to: {begin_s + outage_s} s}}]"
    overrides = [outage, "sweep.path=[split]", "sweep.ber=[0]", "sweep.size=[3 MB]"]
    result = run_scenario("links/gateway:test", RunOptions(out=tmp_path, jobs=1, use_cache=False, overrides=overrides))
    (cell,) = open_run(result.folder).cells
    status = json.loads((cell.folder / "status.json").read_text())
    received = next(line for line in cell.records("transfer") if line["event"] == "receiver")

    assert status["status"] == "completed", status
    assert (received["bytes"], received["wrong_bytes"]) == (3_000_000, 0)
    for name in ("near", "far"):
        assert list(cell.records(name))[-1]["closes"]
    assert begin_s + outage_s < received["last_data_t_s"]
