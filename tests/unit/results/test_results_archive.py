"""Archives: reproducible, complete, and refused when they are not what they say."""

from __future__ import annotations

import gzip
import io
import json
import tarfile

import pytest

from scpslab.analysis import collect
from scpslab.core.errors import ResultError
from scpslab.runs.archive import digests_of, read_archive, write_archive


@pytest.fixture
def run(run_dir):
    """A completed run as "scpslab run" leaves it."""
    manifest = {
        "format": 1,
        "status": "completed",
        "scenario": "fig04-golden",
        "engine": "virtual",
        "seed": 7,
        "cells": {},
    }
    (run_dir / "manifest.json").write_text(json.dumps(manifest))
    (run_dir / "scenario.resolved.yaml").write_text("title: Golden\n")
    collect(run_dir)
    return run_dir


def changed(path, target, change):
    """A copy of an archive whose files went through `change(name, bytes)`, which gives bytes or None."""
    with tarfile.open(path, "r:gz") as source, tarfile.open(target, "w:gz") as copy:
        for member in source.getmembers():
            content = change(member.name, source.extractfile(member).read())
            if content is not None:
                entry = tarfile.TarInfo(member.name)
                entry.size = len(content)
                copy.addfile(entry, io.BytesIO(content))
    return target


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


def test_captures_are_taken_along_only_when_asked_for(run, tmp_path):
    names = []
    for whole in (False, True):
        with tarfile.open(write_archive([run], tmp_path / f"{whole}.tar.gz", whole=whole)) as archive:
            names.append(archive.getnames())

    assert not [name for name in names[0] if name.endswith(".pcap")]
    assert len([name for name in names[1] if name.endswith(".pcap")]) == 22


def test_a_file_that_an_archive_does_not_list_is_refused(run, tmp_path):
    archive = changed(
        write_archive([run], tmp_path / "a.tar.gz"), tmp_path / "b.tar.gz", drop_listing_of("results.csv")
    )

    with pytest.raises(ResultError, match=r"results\.csv: found a file that archive\.json does not list"):
        read_archive(archive)


def drop_listing_of(file):
    """A change that takes a file out of archive.json's list."""

    def change(name, content):
        if name != "archive.json":
            return content
        fields = json.loads(content)
        del fields["runs"][0]["files"][file]
        return json.dumps(fields).encode()

    return change


def test_an_archive_from_before_inputs_were_listed_is_read(run, tmp_path):
    def change(name, content):
        if name != "archive.json":
            return content
        fields = json.loads(content)
        del fields["runs"][0]["inputs"]
        return json.dumps(fields).encode()

    archive = changed(write_archive([run], tmp_path / "a.tar.gz"), tmp_path / "b.tar.gz", change)

    assert read_archive(archive)[0].digest.inputs is None


def test_a_run_that_is_not_complete_is_refused(run, tmp_path):
    (run / "manifest.json").write_text('{"format": 1, "status": "interrupted"}')

    with pytest.raises(ResultError, match="found interrupted; expected a completed run"):
        write_archive([run], tmp_path / "a.tar.gz")
    assert list(tmp_path.glob("a.tar.gz*")) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda name, content: None if name == "archive.json" else content, "found no archive.json"),
        (lambda name, content: b"{}" if name == "archive.json" else content, "archive.json: format: found no such key"),
        (
            lambda name, content: (
                content.replace(b'"format": 1', b'"format": 2') if name == "archive.json" else content
            ),
            "newer scpslab",
        ),
        (
            lambda name, content: content.replace(b"60000", b"60001") if name.endswith("plan.json") else content,
            "found another one",
        ),
        (lambda name, content: None if name.endswith("plan.json") else content, "found no such file"),
        (
            lambda name, content: content + b"more" if name.endswith("results.csv") else content,
            "results.csv: found another one",
        ),
        (lambda name, content: None if name.endswith("results.csv") else content, "results.csv: found no such file"),
        (
            lambda name, content: (
                content.replace(b"Golden", b"Tampered") if name.endswith("resolved.yaml") else content
            ),
            "found another one",
        ),
        (
            lambda name, content: (
                content.replace(b'"seed": 7', b'"seed": 8') if name.endswith("manifest.json") else content
            ),
            "found another one",
        ),
        (
            lambda name, content: (
                content.replace(b"completed", b"incomplete") if name.endswith("status.json") else content
            ),
            "found another one",
        ),
        (
            lambda name, content: (
                content.replace(b"fig04-golden-0002", b"../elsewhere") if name == "archive.json" else content
            ),
            'archive.json: runs[0].run: found "../elsewhere"',
        ),
    ],
)
def test_an_archive_that_is_not_what_it_says_is_refused(run, tmp_path, change, says):
    archive = changed(write_archive([run], tmp_path / "a.tar.gz"), tmp_path / "b.tar.gz", change)

    with pytest.raises(ResultError, match="b.tar.gz") as caught:
        read_archive(archive)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"nothing of the kind", gzip.compress(b"no tar", mtime=0), b"\x1f\x8b\x08cut"]
)
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "x.tar.gz"
    path.write_bytes(content)

    with pytest.raises(ResultError, match=r"x\.tar\.gz"):
        read_archive(path)
    with pytest.raises(ResultError):
        read_archive(tmp_path / "none.tar.gz")
