"""Archives from anywhere: accepted, or refused in one line; nothing is written, and no memory is filled."""

import copy
import gzip
import hashlib
import io
import json
import random
import re
import tarfile
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scpslab import plan as plan_format
from scpslab import scenario
from scpslab.core import archive as archives
from scpslab.core.errors import ResultError
from scpslab.plan import write
from scpslab.runs.archive import read_archive
from scpslab.scenario import planning
from tests import golden

PLAN = json.loads(json.dumps(write(planning.plan(scenario.cells(scenario.load("links/round-trip:test"))[0]))))
CELL = PLAN["cell"]["id"]
KEY = f"cells/{CELL}/plan.json"
ROOT = "run-1"


def archive(path, *, plan=None, raw=None, contents=None, without=(), replace=None, members=()):
    """A good archive of one cell, with changes."""
    fields = copy.deepcopy(PLAN)
    if plan:
        plan(fields)
    content = raw if raw is not None else json.dumps(fields).encode()
    listed = {"format": 1, "how": "x", "runs": [{"run": ROOT, "scenario": "esc", "engine": "virtual", "seed": 1}]}
    listed["runs"][0]["files"] = {KEY: hashlib.sha256(content).hexdigest()}
    if contents:
        contents(listed)
    files = {"archive.json": json.dumps(listed).encode(), f"{ROOT}/{KEY}": content, f"{ROOT}/manifest.json": b"{}"}
    files |= {f"{ROOT}/scenario.resolved.yaml": b"kind: scenario\n"} | (replace or {})
    with tarfile.open(path, "w:gz", compresslevel=1) as packed:
        for name, data in files.items():
            if name not in without:
                packed.addfile(info(name, size=len(data)), io.BytesIO(data))
        for member, data in members:
            packed.addfile(member, io.BytesIO(data) if data is not None else None)
    return path


def info(name, **fields):
    """A member of a tar file."""
    member = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(member, key, value)
    return member


def of(**change):
    """An archive whose first run in archive.json says something else."""
    return {"contents": lambda listed: listed["runs"][0].update(change)}


def setting(*path):
    """An archive with another value at a place of the plan, which is the last argument."""
    *steps, last, value = path

    def change(plan):
        inner = plan
        for step in steps:
            inner = inner[step]
        inner[last] = value

    return {"plan": change}


ERRORS = {"model": "independent", "action": "drop", "settings": {"ber": 0.001}, "seed": "0" * 64, "vector_errors": 1000}
ERRORS |= {"drop_packets": [], "drop_min_bytes": 0, "outages": []}
WORDS = {
    "CELL": CELL,
    "DEEP-LISTS": "[" * 100_000,
    "DEEP-KEYS": '{"a":' * 100_000,
    "LONG-NUMBER": "1" * 10_000,
    "LONG-NAME": "a" * 300,
}


SPARSE = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(10**15)}


def put(place, value):
    """Another value in the plan."""
    return setting(*(int(step) if step.isdigit() else step for step in place.split("/")), json.loads(value))


def impaired(_, errors):
    """The first direction has these errors."""
    impairment = {"link": "hop", "direction": "forward", "errors": {**ERRORS, **json.loads(errors)}}
    return setting("cell", "impairments", [impairment])


def octets(value):
    return value.encode().decode("unicode_escape").encode("latin-1")


def member(kind, place, linkname=""):
    """One member more, of this kind."""
    named = info(octets(place).decode(), type=getattr(tarfile, kind, b"Z"), linkname=linkname)
    return {"members": [(named, b"" if named.isreg() else None)]}


# How a line of the table changes a good archive: `what | place | value`.
WAYS = {
    "whole plan": lambda _, value: {"raw": octets(value)},
    "in the plan": lambda old, new: {"raw": json.dumps(PLAN).replace(old, new).encode()},
    "plan": put,
    "errors": impaired,
    "run": lambda key, value: of(**{key: json.loads(value)}),
    "contents": lambda key, value: {"contents": lambda listed: listed.update({key: json.loads(value)})},
    "run twice": lambda *_: {"contents": lambda listed: listed["runs"].append(listed["runs"][0])},
    "file": lambda name, value: {"replace": {name: octets(value)}},
    "without": lambda name, _: {"without": (name,)},
    "sparse": lambda name, _: {"members": [(info(name, pax_headers=SPARSE), b"")]},
}


def refused(path):
    """The error of reading a file, which is one line."""
    with pytest.raises(ResultError) as caught:
        read_archive(path)
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_the_good_one_is_accepted(tmp_path):
    (run,) = read_archive(archive(tmp_path / "a"))

    assert run.plans == {CELL: plan_format.read(PLAN)}


@golden.each("archives that no export writes", "case what place value")
def test_what_no_export_writes_is_refused_in_one_line(tmp_path, case, what, place, value):
    for word, text in WORDS.items():
        place, value = place.replace(word, text), value.replace(word, text)
    path = archive(tmp_path / "a", **(WAYS[what](place, value) if what in WAYS else member(what, place, value)))

    case.hold(refused(path).replace(CELL, "CELL"), tmp_path)
    assert list(tmp_path.iterdir()) == [path]


@golden.each("archives that cannot be repeated", "case what place value")
def test_verify_refuses_in_one_line_what_it_cannot_repeat(scpslab, in_this_process, tmp_path, case, what, place, value):
    code, _, said = scpslab("verify", archive(tmp_path / "a", **WAYS[what](place, value)))
    assert (code, said.count("\n")) == (ResultError.exit_code, 1)
    case.hold(said.replace(CELL, "CELL"), tmp_path)


def test_bombs_and_too_many_members_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "a"
    for name, says in (("x/plan.json", "bytes packed into|of 209715200 bytes"), ("x/other", "more than 300 to one")):
        with gzip.open(path, "wb", compresslevel=9) as packed:
            packed.write(info(name, size=200 << 20).tobuf())
            for _ in range(200):
                packed.write(bytes(1 << 20))
        assert re.search(says, refused(path))
    monkeypatch.setattr(archives, "OF_RUNS", replace(archives.OF_RUNS, bytes=1 << 20))
    noise = random.Random(7).randbytes(2 << 20)
    assert "more than 1048576 bytes" in refused(
        archive(tmp_path / "b", members=[(info("x/other", size=len(noise)), noise)])
    )
    monkeypatch.setattr(archives, "OF_RUNS", replace(archives.OF_RUNS, members=10))
    empty = [(info(f"x{number}"), b"") for number in range(10)]
    assert "more than 10 files" in refused(archive(tmp_path / "b", members=empty))


@pytest.mark.parametrize(
    "content",
    [b"", random.Random(7).randbytes(5000), gzip.compress(b"no tar" * 1000), gzip.compress(b"") + b"rest"],
    ids=["empty", "noise", "no tar", "two of gzip"],
)
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    assert "expected an archive" in refused(tmp_path / "a")
    assert "expected an archive" in refused(tmp_path), "a folder"
    assert "expected an archive" in refused(tmp_path / "nothing")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The bytes of a good archive."""
    return archive(tmp_path_factory.mktemp("good") / "a").read_bytes()


@settings(
    derandomize=True, deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_good_archive_that_was_damaged_is_accepted_or_refused(good, tmp_path, data):
    """Bytes cut off or changed, packed or unpacked: nothing else comes of it, and no file."""
    is_packed = data.draw(st.booleans())
    content = bytearray(good if is_packed else gzip.decompress(good))
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=4)):
        content[at] = value
    content = content[: data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))]
    path = tmp_path / "damaged"
    path.write_bytes(bytes(content) if is_packed else gzip.compress(bytes(content), 1))
    said = ""
    try:
        assert all(run.plans for run in read_archive(path))
    except ResultError as error:
        said = str(error)
    assert len(said.splitlines()) <= 1
    assert said.isprintable()
    assert list(tmp_path.iterdir()) == [path]
