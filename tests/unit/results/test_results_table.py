"""What is printed."""

from __future__ import annotations

import csv
import io
import json

import pytest
from rich.console import Console

from scpslab.cli.tables import print_summary
from scpslab.errors import ResultError, UsageError
from scpslab.results import collect
from scpslab.results.statistics import mean_of
from scpslab.results.table import as_csv, as_json, read_results, summarise, with_interval


def printed(run_dir, **choices):
    console = Console(width=160, file=io.StringIO())
    print_summary(summarise(read_results(run_dir), **choices), console)
    return console.file.getvalue()


def test_the_table_has_means_intervals_and_counts(run_dir):
    text = printed(run_dir)
    assert "transfer_s" in text
    assert "±" in text
    assert "incomplete: transfer: sender gave up" in text
    line = next(line for line in text.splitlines() if "reno" in line and "1e-05" in line)
    assert [cell.strip() for cell in line.split("│")][-3:-1] == ["1", "1"]


def test_groups_and_metrics_can_be_chosen(run_dir):
    summary = summarise(read_results(run_dir), ["stack"], ["rtos"])
    assert [group.key for group in summary.groups] == [("bbr",), ("reno",)]
    assert [group.completed for group in summary.groups] == [6, 5]


def test_axes_taken_together_are_named(run_dir):
    assert "all values of ber" in " ".join(printed(run_dir, by=["stack"]).split())
    assert "taken together" not in printed(run_dir)


def test_csv_and_json_say_the_same(run_dir):
    summary = summarise(read_results(run_dir), (), ["transfer_s"])
    rows = list(csv.DictReader(io.StringIO(as_csv(summary))))
    groups = json.loads(as_json(summary))["groups"]
    assert len(rows) == len(groups) == 6
    for row, group in zip(rows, groups, strict=True):
        assert row["ber"] == group["axes"]["ber"]
        assert int(row["completed"]) == group["completed"]
        assert float(row["transfer_s_mean"]) == pytest.approx(group["metrics"]["transfer_s"]["mean"], rel=1e-8)


@pytest.mark.parametrize(("choice", "said"), [({"by": ["bear"]}, "ber"), ({"metrics": ["tranfer_s"]}, "transfer_s")])
def test_a_wrong_name_is_answered_with_the_nearest(run_dir, choice, said):
    with pytest.raises(UsageError, match=f"expected one such as {said}"):
        summarise(read_results(run_dir), **choice)


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"", b"\xff\x00\n\x00", b"a" * 200_000])
def test_a_table_of_something_else_is_refused(run_dir, content):
    collect(run_dir).write_bytes(content)
    with pytest.raises(ResultError, match="Delete the file"):
        read_results(run_dir)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "–"),
        ([21.1], "21.10"),
        ([5, 5, 5], "5"),
        ([1, 2, 3, 4, 5], "3.0 ± 2.0"),
        ([100_000, 120_000], "110,000 ± 127,062"),
        ([0.1234567, 0.1234569], "0.1234568 ± 0.0000013"),
    ],
)
def test_a_mean_is_rounded_to_what_its_interval_allows(values, text):
    assert with_interval(mean_of(values)) == text
