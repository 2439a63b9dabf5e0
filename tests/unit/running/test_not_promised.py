"""Cells whose hosts are images of others may have other bytes in each run: whoever runs or verifies them is told."""

import json

from scpslab.cli.verify import _say
from scpslab.running import RunOptions
from scpslab.running.events import Note
from scpslab.running.verify import verify
from scpslab.runs.archive import write_archive

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


def test_verify_says_why_bytes_may_differ(run_fake, tmp_path, capsys):
    run = run_fake("links/interop-images:test").folder
    status = next(run.glob("cells/*/status.json"))
    status.write_text(status.read_text().replace("fake", "other"))
    (found,) = verify(write_archive([run], tmp_path / "a.tar.gz"), RunOptions(jobs=1))
    _say(found)

    assert not found.is_same
    assert SAYS in capsys.readouterr().out
