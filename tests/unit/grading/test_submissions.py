"""Submissions from anywhere: read, or refused in one line.

Nothing is written, nothing is run, and no memory is filled.
"""

import gzip
import hashlib
import tarfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scpslab.core.errors import ResultError
from scpslab_course.grading import submission
from tests.cases import refusal
from tests.unit.grading.conftest import entry, packed

MEMBERS = {
    "variant.json": b"{}",
    "log.jsonl": b"",
    "answers.yaml": b"bdp: 1\n",
    "write-up.md": "Größe".encode(),
    "runs.scpslab.tar.gz": b"x",
    "files/a.py": b"1",
}


def refused(path):
    said = refusal(submission.read, path, error=ResultError)
    assert said.startswith(f"{path}: ")
    assert said.count("\n") == 0
    assert "expected" in said
    return said


def test_a_submission_is_read_as_it_was_packed(tmp_path):
    found = submission.read(packed(tmp_path / "a", MEMBERS))
    assert [found.variant, found.log, found.archive] == [b"{}", b"", b"x"]
    assert (found.contents.student, found.write_up, found.files) == ("anna", "Größe", {"a.py": b"1"})
    assert found.sha256 == hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest()


NAMES = (
    *["../x", "/etc/x", "files/../x", "a/./b", "files/a/b", "x.pickle", "files", "files//x"],
    "submission.json\n",
    "ü" * 400,
)


@pytest.mark.parametrize("name", NAMES)
def test_members_with_other_names_are_refused(tmp_path, name):
    refused(packed(tmp_path / "a", {**MEMBERS, name: b"x"}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


@pytest.mark.parametrize("kind", ["SYMTYPE", "LNKTYPE", "CHRTYPE", "BLKTYPE", "FIFOTYPE", "GNUTYPE_SPARSE"])
def test_links_and_devices_are_refused(tmp_path, kind):
    link = entry("files/x", type=getattr(tarfile, kind), linkname="/etc/passwd")
    refused(packed(tmp_path / "a", MEMBERS, raw=[link]))


DIGESTS = {name: hashlib.sha256(content).hexdigest() for name, content in MEMBERS.items()}
# What is packed beside or instead of the members, and what is said of it.
OTHERS = {
    "other bytes than": {"contents": {"members": DIGESTS | {"log.jsonl": "0" * 64}}},
    "no such file as": {"contents": {"members": DIGESTS | {"files/z": "0" * 64}}},
    "does not list": {"raw": [entry("files/b", 1)]},
    "twice": {"raw": [entry("variant.json", 2)]},
    "of 33554432 bytes, 67": {"files/a": bytes(32 << 20), "files/b": bytes(32 << 20)},
    "33554433 bytes": {"files/a": bytes((32 << 20) + 1)},
    "more than 200 files": {f"files/f{number}": b"" for number in range(200)},
    "write-up.md: found 1048577 bytes": {"write-up.md": b"a" * ((1 << 20) + 1)},
    "not UTF-8": {"write-up.md": "Größe".encode("latin-1")},
    "format": {"contents": {"format": 2}},
    "found an unknown key": {"contents": {"score": 100}},
} | {f"found no {name}": {name: None} for name in submission.REQUIRED}


@pytest.mark.parametrize("says", OTHERS)
def test_what_is_no_submission_is_named(tmp_path, says):
    options = {key: value for key, value in OTHERS[says].items() if key in ("contents", "raw")}
    members = MEMBERS | {name: content for name, content in OTHERS[says].items() if name not in options}
    there = {name: content for name, content in members.items() if content is not None}
    assert says in refused(packed(tmp_path / "a", there, **options))


def test_what_is_no_archive_is_refused(tmp_path):
    assert "found no such file" in refused(tmp_path / "none")
    assert "found a folder" in refused(tmp_path)
    cut = packed(tmp_path / "a", MEMBERS).read_bytes()[:300]
    for content in (b"", b"PK\x03\x04", b"\x1f\x8b", b"{}", b"\0" * 1000, gzip.compress(b"x" * 5000), cut):
        (tmp_path / "a").write_bytes(content)
        assert "expected a submission" in refused(tmp_path / "a")
    (tmp_path / "a").write_bytes(bytes(20 * 10**6 + 1))
    assert "found 20000001 bytes, more than 20000000 bytes" in refused(tmp_path / "a")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_damaged_submissions_are_read_or_refused(tmp_path, data):
    content = bytearray(packed(tmp_path / "right", MEMBERS).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "spoilt").write_bytes(bytes(content))
    try:
        found = submission.read(tmp_path / "spoilt")
    except ResultError:
        return
    # What is read is what was packed, by its digests; only fields of the archive itself may differ.
    assert (found.answers, found.archive, found.files) == (MEMBERS["answers.yaml"], b"x", {"a.py": b"1"})
