"""A metric that could not be measured is empty, and its row says why."""

import json
import shutil

import pytest

from scpslab.analysis.metrics.families import families
from scpslab.analysis.table import read_results


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
