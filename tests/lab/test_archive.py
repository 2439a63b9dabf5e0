"""An exported run, run again: the same bytes, and a difference is found."""

from __future__ import annotations

import io
import json
import sys
import tarfile

import pytest

from scpslab.cli import app
from scpslab.running import RunOptions, run_scenario
from scpslab.running.verify import verify
from scpslab.runs.archive import read_archive, write_archive

pytestmark = pytest.mark.lab
ONE_CELL = ["repeats=1", "sweep.ber.values=[1e-5]", "workloads.transfer.size=20 kB"]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The archive of a run of one cell."""
    folder = tmp_path_factory.mktemp("archive")
    run = run_scenario("fy97/fig04:kernel-test", RunOptions(out=folder / "runs", overrides=ONE_CELL)).folder
    return write_archive([run], folder / "one.scpslab.tar.gz")


def test_an_exported_run_gives_the_same_bytes_again(archive, tmp_path):
    found = verify(archive, RunOptions())[0]

    assert found.is_same
    assert found.has_same_engine
    assert any(name.endswith(".pcap") for name in found.same)
    assert "results.csv" in found.same


def test_the_command_says_so_and_names_what_differs(archive, tmp_path, monkeypatch, capsys):
    """The archive claims another capture than the run gives: exit code 1 and the file's name."""
    name = next(name for name in read_archive(archive)[0].digest.files if name.endswith(".pcap"))
    forged = forge(archive, tmp_path / "forged.tar.gz", name)
    monkeypatch.setattr(sys, "argv", ["scpslab", "verify", str(forged), "--keep", str(tmp_path / "again")])

    with pytest.raises(SystemExit) as ended:
        app.main()

    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert f"differs: {name}" in said
    assert "kernel, guest image and lab program are the same as in the archived run" in said


def forge(archive, target, name):
    """A copy of an archive that lists another digest for a file."""
    with tarfile.open(archive, "r:gz") as source, tarfile.open(target, "w:gz") as copy:
        for member in source.getmembers():
            content = source.extractfile(member).read()
            if member.name == "archive.json":
                fields = json.loads(content)
                fields["runs"][0]["files"][name] = "0" * 64
                content = json.dumps(fields).encode()
            member.size = len(content)
            copy.addfile(member, io.BytesIO(content))
    return target
