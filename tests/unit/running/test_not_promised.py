"""Runs whose bytes may differ, which is told: hosts with images of others, and those of other rules."""

import json
from dataclasses import replace

import pytest

from scpslab.cli.verify import _say
from scpslab.core.project import ROOT
from scpslab.running import RunOptions
from scpslab.running.events import Note
from scpslab.running.run_plan import program
from scpslab.running.verify import Verification, other_rules, verify
from scpslab.runs.archive import read_archive, write_archive
from scpslab.runs.run import Manifest, Program
from scpslab.scenario.errors import RULES
from scpslab_course.grading.compare import Rerun, against_rerun
from scpslab_course.grading.grade import Code

SAYS = "found hosts with images of others (scpslab/scps-host:"


def test_a_run_names_cells_with_images_of_others(run_fake):
    told = []
    run = run_fake("links/interop-images:test", listeners=[told.append]).folder
    manifest = json.loads((run / "manifest.json").read_text())

    assert any(isinstance(event, Note) and event.text.startswith(SAYS) for event in told)
    assert manifest["not_promised"] == sorted(manifest["cells"])


def test_other_runs_and_measurements_promise_as_before(run_fake, tmp_path):
    told = []
    for name, repeats in (("links/transfer", True), ("links/interop-images:test", False)):
        run = run_fake(name, repeats=repeats, listeners=[told.append], out=tmp_path / name).folder
        assert "not_promised" not in json.loads((run / "manifest.json").read_text())

    assert not [event for event in told if isinstance(event, Note) and event.text.startswith(SAYS)]


def test_verify_says_why_bytes_may_differ(in_this_process, run_fake, tmp_path, capsys):
    run = run_fake("links/interop-images:test").folder
    status = next(run.glob("cells/*/status.json"))
    status.write_text(status.read_text().replace("fake", "other"))
    (found,) = verify(write_archive([run], tmp_path / "a.tar.gz"), RunOptions(jobs=1))
    _say(found)

    assert not found.is_same
    assert SAYS in capsys.readouterr().out


# A run of one cell, as an older version made it.
OLD_RUN = ROOT / "tests" / "data" / "formats" / "run-1"
OLD = Program("0.3.0", None, is_changed=False, rules=None)
SINCE = "made with 0.3.0, whose cells have other bytes: install that to verify or grade it, or run again"


@pytest.fixture
def old(tmp_path):
    """The run."""
    found = read_archive(write_archive([OLD_RUN], tmp_path / "old.tar.gz"))[0]
    return replace(found, manifest=replace(found.manifest, program=OLD))


def test_a_run_of_other_rules_is_named():
    assert program()["vectors"] == RULES
    assert other_rules(Program.of(program())) == ""
    assert other_rules(OLD) == SINCE
    assert other_rules(None) == SINCE.replace("0.3.0", "an older version")


def test_a_grader_calls_it_another_version_and_verify_says_so(old, capsys):
    cell = next(iter(old.plans))
    files, manifest = dict.fromkeys(old.digest.files, "0" * 64), Manifest(cells=old.manifest.cells)
    mine = Rerun(files, (), (), (cell,), manifest=manifest)
    (finding,) = against_rerun({"small": old}, {}, {"small": mine})
    assert finding.code == Code.OTHER_VERSION
    assert SINCE in str(finding)

    because = other_rules(OLD)
    _say(Verification("run", (), ("a.pcap",), (), (), False, (), cells=("r1",), of=1, because=because))
    assert f"run: {SINCE}" in capsys.readouterr().out
