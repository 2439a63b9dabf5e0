"""The commands around a finished run: claims, compare, report, export, and what verify refuses."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(autouse=True)
def two_runs(synthetic, monkeypatch, tmp_path):
    """A folder `runs` with two runs, and the program called beside it."""
    for name, seed in (("first-0001", 1), ("second-0002", 2)):
        run = synthetic.write_run(tmp_path / "runs" / name, seed=seed, repeats=2)
        (run / "manifest.json").write_text(
            '{"format": 1, "status": "completed", "scenario": "fig04-golden", "engine": "live", "seed": 1, "cells": {}}'
        )
        (run / "scenario.resolved.yaml").write_text("title: x\n")
    monkeypatch.chdir(tmp_path)


def test_claims_are_counted_listed_and_written_for_programs(scpslab):
    code, said, _ = scpslab("claims")
    assert code == 0
    assert "2 runs decide " in said
    assert " of 173 claims;" in said
    assert "iw-3mss" in scpslab("claims", "--paper", "jzus2005", "--details")[1]
    rows = list(csv.DictReader(io.StringIO(scpslab("claims", "first-0001", "--paper", "fy97", "--format", "csv")[1])))
    assert {row["paper"] for row in rows} == {"fy97"}
    assert len(json.loads(scpslab("claims", "--format", "json")[1])["claims"]) == 173
    assert "open/crossover-then" in scpslab("claims", "--questions")[1]


def test_a_missing_file_of_claims_is_named_once(scpslab):
    assert "expected a claims file. See docs/claims.md" in scpslab("claims", "--file", "nowhere.yaml")[2]


def test_an_unknown_paper_has_neighbours(scpslab):
    code, _, wrong = scpslab("claims", "--paper", "fy98")
    assert code == 2
    assert 'found "fy98"; expected one of fy97' in wrong


def test_two_runs_are_compared(scpslab):
    code, said, _ = scpslab("compare", "first-0001", "second-0002", "--metric", "transfer_s", "--format", "csv")

    rows = list(csv.DictReader(io.StringIO(said)))
    assert code == 0
    assert [row["metric"] for row in rows if row["stack"] == "bbr"] == ["transfer_s"] * 3
    assert "after Holm's correction" in " ".join(scpslab("compare", "first-0001", "second-0002")[1].split())


def test_the_stacks_of_a_run_are_compared(scpslab):
    code, said, _ = scpslab(
        "compare", "first-0001", "--axis", "stack", "--metric", "transfer_s", "--format", "markdown"
    )
    assert code == 0
    assert "| transfer_s |" in said
    assert "differences are certain" in said
    code, _, wrong = scpslab("compare", "first-0001")
    assert code == 2
    assert "found one run and no --axis" in wrong
    code, _, wrong = scpslab("compare", "first-0001", "second-0002", "--axis", "stack")
    assert code == 2
    assert "--axis: found 2 runs; expected one" in wrong
    assert scpslab("compare", "first-0001", "second-0002", "--against", "bbr")[0] == 2


def test_every_command_with_numbers_writes_markdown(scpslab):
    for words in (["results", "first-0001"], ["claims", "--paper", "fy97"], ["claims", "--paper", "fy97", "--details"]):
        code, said, _ = scpslab(*words, "--format", "markdown")
        assert code == 0
        assert any(line.startswith("| ---") for line in said.splitlines()), words


def test_the_report_s_path_is_printed(scpslab, tmp_path):
    code, said, _ = scpslab("report", "first-0001")
    assert code == 0
    assert Path(said.strip()) == Path("runs/first-0001/report.html")
    assert (tmp_path / said.strip()).read_text().startswith("<!DOCTYPE html>")


def test_export_writes_one_file_and_verify_refuses_what_cannot_repeat(scpslab, tmp_path):
    """The run is of engine live: it can be exported, and not be had again byte for byte."""
    code, said, _ = scpslab("export", "first-0001")
    assert code == 0
    assert said.strip() == "first-0001.scpslab.tar.gz"

    code, _, wrong = scpslab("verify", said.strip())
    assert code == 5
    assert "found engine live; expected virtual" in wrong


@pytest.mark.parametrize(
    ("out", "says"),
    [
        (
            "mine.yaml",
            (
                "--out mine.yaml: found a file that is no archive; expected none, or an archive to replace. "
                "Choose another name."
            ),
        ),
        (
            "runs",
            (
                "--out runs: found a folder; expected the file to write. Name a file in it, such as "
                "runs/run.scpslab.tar.gz."
            ),
        ),
        ("none/a.tar.gz", "--out none/a.tar.gz: found no folder none; expected one. Make it, or choose another."),
    ],
)
def test_export_replaces_nothing_but_an_archive(scpslab, tmp_path, out, says):
    (tmp_path / "mine.yaml").write_text("kind: scenario\n")
    assert scpslab("export", "first-0001", "--out", out) == (2, "", f"error: {says}\n")
    assert (tmp_path / "mine.yaml").read_text() == "kind: scenario\n"


def test_export_replaces_an_earlier_archive(scpslab):
    assert scpslab("export", "first-0001", "--out", "a.tar.gz")[0] == 0
    assert scpslab("export", "second-0002", "--out", "a.tar.gz")[0] == 0


def test_a_folder_that_is_no_run_gets_no_report(scpslab, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, wrong = scpslab("report", "empty")
    assert code == 5
    assert wrong.startswith("error: empty: found no manifest.json; expected a run folder")
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_metric_that_is_no_number_is_told_from_one_that_is_unknown(scpslab):
    code, _, wrong = scpslab("results", "first-0001", "--metric", "status")
    assert code == 2
    assert 'metric "status": found a column that is no number; expected one such as ' in wrong
    assert wrong.endswith(" Choose a column of results.csv.\n")
    assert (
        'axis "nothing": found no such column; expected one such as '
        in scpslab("results", "first-0001", "--by", "nothing")[2]
    )


def test_an_axis_without_a_near_name_has_a_remedy(scpslab):
    code, _, wrong = scpslab("compare", "first-0001", "--axis", "nothing")
    assert code == 2
    assert wrong.endswith(". Choose one of these.\n")


@pytest.mark.parametrize(("runs", "found"), [("none", "no such folder"), ("file", "a file")])
def test_clean_says_that_there_is_no_folder_of_runs(scpslab, tmp_path, runs, found):
    (tmp_path / "file").write_text("")
    said = f"error: --runs {runs}: found {found}; expected a folder of runs, such as runs. Correct the path.\n"
    assert scpslab("clean", "--runs", runs) == (2, "", said)


OWN_CLAIMS = """kind: claims
version: 1
title: My paper
year: 2026
reference: Somebody, 2026
series:
  all: {scenarios: [fig04-golden], where: {stack: bbr}}
claims:
  - id: one
    weight: headline
    source: Fig 1
    says: Something is so.
    checks: [{kind: value, metric: transfer_s, of: {series: all, at: {ber: 0}}, at_least: 0, because: nothing is faster}]
"""
MISSPELLED = {
    "scenario": (
        "[fig04-golden]",
        "[fig04-goldn]",
        'mine.yaml:7: series.all.scenarios[0]: found "fig04-goldn"; expected one of',
        "Did you mean fig04-golden?",
    ),
    "column of a series": (
        "{stack: bbr}",
        "{stak: bbr}",
        'mine.yaml:7: series.all.where.stak: found "stak"; expected one of',
        "Did you mean stack?",
    ),
    "column of a check": (
        "{ber: 0}",
        "{bre: 0}",
        'mine.yaml:13: claims[0].checks[0]: found "bre"; expected one of',
        "Did you mean ber?",
    ),
    "metric": (
        "transfer_s",
        "tranfer_s",
        'mine.yaml:13: claims[0].checks[0]: found "tranfer_s"; expected one of',
        "Did you mean transfer_s?",
    ),
}


@pytest.mark.parametrize(("right", "wrong", "found", "nearest"), MISSPELLED.values(), ids=MISSPELLED)
def test_a_misspelled_word_of_a_claim_is_refused_with_the_nearest(scpslab, tmp_path, right, wrong, found, nearest):
    """It said "no data yet", as of a run that is still to come."""
    (path := tmp_path / "mine.yaml").write_text(OWN_CLAIMS)
    assert scpslab("claims", "--file", str(path))[0] == 0
    path.write_text(OWN_CLAIMS.replace(right, wrong))
    code, _, said = scpslab("claims", "--file", str(path))
    assert code == 2
    assert found in said
    assert nearest in said
