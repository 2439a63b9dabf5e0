"""Archives: reproducible, complete, and refused when they are not what they say."""

import gzip
import json
import shutil
import tarfile

import pytest

from scpslab.analysis import collect
from scpslab.core.errors import ResultError
from scpslab.running import RunOptions
from scpslab.running.verify import Sample, verify
from scpslab.runs import CampaignFolder, RunFolder
from scpslab.runs.archive import digests_of, read_archive, write_archive
from tests import archives, golden
from tests.cases import refusal
from tests.runs import write_manifest


@pytest.fixture
def run(run_dir):
    """A completed run as "scpslab run" leaves it."""
    write_manifest(run_dir, "fig04-golden", engine="virtual", seed=7, cells={})
    (run_dir / "scenario.resolved.yaml").write_text("title: Golden\n")
    collect(run_dir)
    return run_dir


def changed(path, target, change):
    """A copy of an archive whose files went through `change(name, bytes)`, which gives bytes or None."""
    files = {name: change(name, content) for name, content in archives.members(path).items()}
    return archives.pack({name: content for name, content in files.items() if content is not None}, target)


def test_an_archive_has_what_a_run_can_be_had_again_from(run, tmp_path):
    archived = read_archive(write_archive([run], tmp_path / "a.tar.gz"))

    assert [(item.digest.run, item.digest.scenario, item.digest.seed) for item in archived] == [
        (run.name, "fig04-golden", 7)
    ]
    assert len(archived[0].plans) == 12
    assert archived[0].plans["stack=reno,ber=0,r1"].cell.workloads[0].bytes_ == 60_000
    assert archived[0].resolved == "title: Golden\n"
    assert archived[0].digest.files == digests_of(run)
    assert "results.csv" in archived[0].digest.files
    assert any(name.endswith("ws2.pcap") for name in archived[0].digest.files)


def test_the_same_run_gives_the_same_archive(run, tmp_path):
    first = write_archive([run], tmp_path / "a.tar.gz").read_bytes()
    for file in run.rglob("*.json"):
        file.touch()

    assert write_archive([run], tmp_path / "b.tar.gz").read_bytes() == first


def test_links_out_of_a_run_are_not_followed(run, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of this machine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "status.json").write_text("of this machine")
    cell = next(folder for folder in (run / "cells").iterdir() if (folder / "records").is_dir())
    (cell / "records" / "planted.jsonl").symlink_to(secret)
    (run / "scenario.resolved.yaml").unlink()
    (run / "scenario.resolved.yaml").symlink_to(secret)
    (run / "cells" / "planted").symlink_to(tmp_path / "folder")

    path = write_archive([run], tmp_path / "a.tar.gz", whole=True)

    assert b"of this machine" not in gzip.decompress(path.read_bytes())
    assert not any("planted" in name for name in digests_of(run))


@pytest.mark.parametrize(("whole", "captures"), [(False, 0), (True, 22)])
def test_captures_are_taken_along_only_when_asked_for(run, tmp_path, whole, captures):
    with tarfile.open(write_archive([run], tmp_path / "a.tar.gz", whole=whole)) as archive:
        assert sum(name.endswith(".pcap") for name in archive.getnames()) == captures


def test_an_archive_from_before_inputs_were_listed_is_read(run, tmp_path):
    def without_inputs(name, content):
        if name == "archive.json":
            fields = json.loads(content)
            del fields["runs"][0]["inputs"]
            return json.dumps(fields).encode()
        return content

    archive = changed(write_archive([run], tmp_path / "a.tar.gz"), tmp_path / "b.tar.gz", without_inputs)

    assert read_archive(archive)[0].digest.inputs is None


def test_a_run_that_is_not_complete_is_refused(run, tmp_path):
    (run / "manifest.json").write_text('{"format": 1, "status": "interrupted"}')

    with pytest.raises(ResultError, match="found interrupted; expected a completed run"):
        write_archive([run], tmp_path / "a.tar.gz")
    assert list(tmp_path.glob("a.tar.gz*")) == []


@golden.each("archive whose digests are others", "case end old new")
def test_an_archive_that_is_not_what_it_says_is_refused(run, tmp_path, case, end, old, new):
    def put(name, content):
        whole = content + b"more" if old == "MORE" else content.replace(old.encode(), new.encode())
        return content if not name.endswith(end) else None if old == "GONE" else whole

    archive = changed(write_archive([run], tmp_path / "a.tar.gz"), tmp_path / "b.tar.gz", put)
    case.hold(refusal(read_archive, archive, error=ResultError), tmp_path)


def test_a_run_without_its_table_is_not_packed_or_verified(run, tmp_path, in_this_process):
    (run / "results.csv").unlink()
    for refused in (
        lambda: write_archive([run], tmp_path / "a.tar.gz"),
        lambda: verify(run, RunOptions(), sample=Sample.parse("1")),
    ):
        with pytest.raises(
            ResultError, match=r'found no results.csv; .* Run "scpslab results .*": it derives it again'
        ):
            refused()
    assert not (tmp_path / "a.tar.gz").exists()


@pytest.mark.parametrize("missing", ["manifest.json", "cells"])
def test_a_campaign_is_packed_whole_or_not_at_all(run, scpslab, tmp_path, missing):
    other, folder = tmp_path / "other-0001", tmp_path / "both-0001"
    shutil.copytree(run, other)
    told = {"campaign": "both", "title": "Both", "status": "interrupted", "left_out": []}
    told["runs"] = [{"run": f"../{one.name}"} for one in (run, other)]
    CampaignFolder(folder).write(told, map(RunFolder, (run, other)))
    assert scpslab("export", folder, "--out", tmp_path / "a.tar.gz")[0] == 0
    assert {one.digest.run for one in read_archive(tmp_path / "a.tar.gz")} == {run.name, other.name}

    shutil.rmtree(other / "cells")
    (other / missing).unlink(missing_ok=True)
    (other / "results.csv").unlink()

    code, _, wrong = scpslab("export", folder, "--out", tmp_path / "b.tar.gz")
    assert (code, "other-0001" in wrong, (tmp_path / "b.tar.gz").exists()) == (5, True, False)


def test_a_run_is_packed_from_within(run, scpslab, monkeypatch):
    monkeypatch.chdir(run)
    assert scpslab("export", ".")[:2] == (0, f"{run.name}.scpslab.tar.gz\n")
