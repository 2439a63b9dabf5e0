"""Submissions from anywhere: read, or refused in one line.

Nothing is written, nothing is run, and no memory is filled.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scpslab.core.errors import ResultError
from scpslab_course.grading import submission

MEMBERS = {
    "variant.json": b"{}",
    "log.jsonl": b"",
    "answers.yaml": b"bdp: 1\n",
    "write-up.md": "Größe".encode(),
    "runs.scpslab.tar.gz": b"x",
    "files/a.py": b"1",
}


def packed(path, members=None, *, contents=None, more=()):
    members = dict(MEMBERS if members is None else members)
    listed = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    head = {"format": 1, "assignment": "small", "student": "anna", "members": listed} | (contents or {})
    with gzip.open(path, "wb") as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for name, content in {"submission.json": json.dumps(head).encode(), **members}.items():
            archive.addfile(info(name, len(content)), io.BytesIO(content))
        for entry, content in more:
            archive.addfile(entry, io.BytesIO(content))
    return path


def info(name, size=0, **fields):
    entry = tarfile.TarInfo(name)
    entry.size = size
    for key, value in fields.items():
        setattr(entry, key, value)
    return entry


def refused(path):
    with pytest.raises(ResultError) as caught:
        submission.read(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert said.count("\n") == 0
    assert "expected" in said
    return said


def test_a_submission_is_read_as_it_was_packed(tmp_path):
    found = submission.read(packed(tmp_path / "a"))
    assert (found.contents.student, found.write_up, found.files) == ("anna", "Größe", {"a.py": b"1"})
    assert found.sha256 == hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/etc/x",
        "files/../x",
        "a/./b",
        "files/a/b",
        "x.pickle",
        "files",
        "files//x",
        "submission.json\n",
        "ü" * 400,
    ],
)
def test_members_with_other_names_are_refused(tmp_path, name):
    refused(packed(tmp_path / "a", {**MEMBERS, name: b"x"}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE],
)
def test_links_and_devices_are_refused(tmp_path, kind):
    refused(packed(tmp_path / "a", more=[(info("files/x", type=kind, linkname="/etc/passwd"), b"")]))


@pytest.mark.parametrize("name", ["variant.json", "log.jsonl", "answers.yaml", "runs.scpslab.tar.gz"])
def test_a_missing_part_is_named(tmp_path, name):
    assert f"found no {name}" in refused(
        packed(tmp_path / "a", {key: value for key, value in MEMBERS.items() if key != name})
    )


def test_members_that_are_not_those_listed_are_refused(tmp_path):
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in MEMBERS.items()}
    assert "other bytes than" in refused(
        packed(tmp_path / "a", contents={"members": digests | {"log.jsonl": "0" * 64}})
    )
    assert "does not list" in refused(packed(tmp_path / "a", more=[(info("files/b", 1), b"1")]))
    assert "twice" in refused(packed(tmp_path / "a", more=[(info("variant.json", 2), b"{}")]))
    assert "no such file as" in refused(packed(tmp_path / "a", contents={"members": digests | {"files/z": "0" * 64}}))


def test_what_is_too_large_is_refused(tmp_path):
    assert "of 33554432 bytes, 67" in refused(
        packed(tmp_path / "a", {**MEMBERS, "files/a": bytes(32 << 20), "files/b": bytes(32 << 20)})
    )
    assert "33554433 bytes" in refused(packed(tmp_path / "a", {**MEMBERS, "files/a": bytes((32 << 20) + 1)}))
    assert "more than 200 files" in refused(
        packed(tmp_path / "a", {**MEMBERS, **{f"files/f{number}": b"" for number in range(200)}})
    )
    assert "write-up.md: found 1048577 bytes" in refused(
        packed(tmp_path / "a", {**MEMBERS, "write-up.md": b"a" * ((1 << 20) + 1)})
    )
    (tmp_path / "a").write_bytes(bytes(20 * 10**6 + 1))
    assert "found more than 20000000 bytes" in refused(tmp_path / "a")


def test_other_encodings_formats_and_files_are_refused(tmp_path):
    assert "not UTF-8" in refused(packed(tmp_path / "a", {**MEMBERS, "write-up.md": "Größe".encode("latin-1")}))
    assert "format" in refused(packed(tmp_path / "a", contents={"format": 2}))
    assert "found an unknown key" in refused(packed(tmp_path / "a", contents={"score": 100}))
    assert "found no such file" in refused(tmp_path / "none")
    assert "no ordinary file" in refused(tmp_path)
    for content in (
        b"",
        b"PK\x03\x04",
        b"\x1f\x8b",
        gzip.compress(b"x" * 5000),
        packed(tmp_path / "a").read_bytes()[:300],
    ):
        (tmp_path / "a").write_bytes(content)
        refused(tmp_path / "a")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_damaged_submissions_are_read_or_refused(tmp_path, data):
    content = bytearray(packed(tmp_path / "right").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "spoilt").write_bytes(bytes(content))
    try:
        found = submission.read(tmp_path / "spoilt")
    except ResultError:
        return
    # What is read is what was packed, by its digests; only fields of the archive itself may differ.
    assert (found.answers, found.archive, found.files) == (MEMBERS["answers.yaml"], b"x", {"a.py": b"1"})
