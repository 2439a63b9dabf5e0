"""The commands around a finished run: claims, compare, report, export, and what verify refuses."""

import csv
import io
import json
import os
import shlex
from pathlib import Path

import pytest

from scpslab.analysis import collect
from tests import golden
from tests.cases import changed, document
from tests.runs import write_manifest

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def two_runs(synthetic, monkeypatch, tmp_path):
    """A folder `runs` with two runs, and the program called beside it."""
    for name, seed in (("first-0001", 1), ("second-0002", 2)):
        run = synthetic.write_run(tmp_path / "runs" / name, seed=seed, repeats=2)
        write_manifest(run, "fig04-golden", engine="live", seed=1, cells={})
        (run / "scenario.resolved.yaml").write_text("title: x\n")
        collect(run)
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


def test_two_runs_are_compared(scpslab):
    code, said, _ = scpslab("compare", "first-0001", "second-0002", "--metric", "transfer_s", "--format", "csv")

    rows = list(csv.DictReader(io.StringIO(said)))
    assert code == 0
    assert [row["metric"] for row in rows if row["stack"] == "bbr"] == ["transfer_s"] * 3
    assert "after Holm's correction" in " ".join(scpslab("compare", "first-0001", "second-0002")[1].split())


def test_the_stacks_of_a_run_are_compared(scpslab):
    words = ("--axis", "stack", "--metric", "transfer_s", "--format", "csv")
    code, said, _ = scpslab("compare", "first-0001", *words)
    assert code == 0
    assert {row["metric"] for row in csv.DictReader(io.StringIO(said))} == {"transfer_s"}


@golden.each("commands around a run")
def test_what_cannot_be_done_is_said_and_nothing_is_written(case, scpslab, tmp_path):
    (tmp_path / "mine.yaml").write_text("kind: scenario\n")
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.iterdir())
    found, out, wrong = scpslab(*shlex.split(case))
    assert out == ""
    case.hold(f"{wrong}exit code {found}", tmp_path)
    assert (sorted(tmp_path.iterdir()), list((tmp_path / "empty").iterdir())) == (before, [])
    assert (tmp_path / "mine.yaml").read_text() == "kind: scenario\n"


def test_the_report_s_path_is_printed(scpslab, tmp_path):
    code, said, _ = scpslab("report", "first-0001")
    assert code == 0
    assert Path(said.strip()) == Path("runs/first-0001/report.html")
    assert (tmp_path / said.strip()).read_text().startswith("<!DOCTYPE html>")


def test_export_writes_one_file_and_verify_refuses_what_cannot_repeat(scpslab, in_this_process):
    """The run is of engine live: it can be exported, and not be had again byte for byte."""
    code, said, _ = scpslab("export", "first-0001")
    assert code == 0
    assert said.strip() == "first-0001.scpslab.tar.gz"

    code, _, wrong = scpslab("verify", said.strip())
    assert code == 5
    assert "found engine live; expected virtual" in wrong


def test_export_replaces_an_earlier_archive(scpslab):
    assert scpslab("export", "first-0001", "--out", "a.tar.gz")[0] == 0
    assert scpslab("export", "second-0002", "--out", "a.tar.gz")[0] == 0


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/null"), lambda path: None])
def test_no_device_is_replaced_by_a_file(scpslab, tmp_path, put):
    """Root's archives have replaced /dev/null, and a link to it is how another folder's device is called."""
    put(path := tmp_path / "out")
    before = Path("/dev/null").lstat()
    told = scpslab("export", "first-0001", "--out", str(path) if path.exists() else "/dev/scpslab.tar.gz")
    assert (told[0], told[1]) == (2, "")
    assert "found a device or pipe; expected a file" in told[2]
    assert (Path("/dev/null").lstat().st_ino, Path("/dev/scpslab.tar.gz").exists()) == (before.st_ino, False)
    assert not path.is_file()


OWN_CLAIMS = document("claims of one's own")


@golden.each("a misspelled word of a claim", "case right wrong")
def test_a_misspelled_word_of_a_claim_is_refused_with_the_nearest(scpslab, tmp_path, case, right, wrong):
    """It said "no data yet", as of a run that is still to come."""
    (path := tmp_path / "mine.yaml").write_text(OWN_CLAIMS)
    assert scpslab("claims", "--file", str(path))[0] == 0
    path.write_text(changed(OWN_CLAIMS, (right, wrong)))
    code, _, said = scpslab("claims", "--file", str(path))
    assert code == 2
    case.hold(said, tmp_path)
