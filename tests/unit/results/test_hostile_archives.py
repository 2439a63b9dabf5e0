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


def impaired(errors):
    """An archive whose first direction has these errors."""
    impairment = {"link": "hop", "direction": "forward", "errors": errors}
    return setting("cell", "impairments", [impairment])


ERRORS = {"model": "independent", "action": "drop", "settings": {"ber": 0.001}, "seed": "0" * 64, "vector_errors": 1000}
ALL_GOOD = dict.fromkeys(("good_to_bad_per_bit", "bad_to_good_per_bit", "ber_good", "ber_bad"), 0.0)
CONTAINER = {"image": "x", "memory_bytes": 1, "pids": 1, "capabilities": ["SYS_ADMIN"], "devices": []}
CAPTURE = {"name": "x", "kind": "capture", "node": "h1", "interface": "h1-hop", "snaplen_bytes": 96, "filter": ""}
ERRORS |= {"drop_packets": [], "drop_min_bytes": 0, "outages": []}
DIRECTION = ("network", "links", 0, "directions", 0)
HOSTILE = {
    "no JSON": {"raw": b"{"},
    "a list": {"raw": b"[]"},
    "a cell only": {"raw": b'{"cell": {"id": "x"}}'},
    "deep": {"raw": b"[" * 100_000},
    "deep objects": {"raw": b'{"a":' * 100_000},
    "not UTF-8": {"raw": b"\xff\xfe"},
    "UTF-16": {"raw": json.dumps(PLAN).encode("utf-16")},
    "NaN": {"raw": json.dumps(PLAN).replace('"repeat": 1', '"repeat": NaN').encode()},
    "key twice": {"raw": json.dumps(PLAN).replace('"repeat": 1', '"repeat": 1, "repeat": 1').encode()},
    "long number": {"raw": json.dumps(PLAN).replace('"repeat": 1', '"repeat": ' + "1" * 10_000).encode()},
    "surrogate": {"raw": json.dumps(PLAN).replace('"topology": "', '"topology": "\\udc00').encode()},
    "symbolic link": {"members": [(info("x/plan.json", type=tarfile.SYMTYPE, linkname="/etc/passwd"), None)]},
    "hard link": {"members": [(info("x/plan.json", type=tarfile.LNKTYPE, linkname="archive.json"), None)]},
    "device": {"members": [(info("x/plan.json", type=tarfile.CHRTYPE), None)]},
    "pipe": {"members": [(info("x/plan.json", type=tarfile.FIFOTYPE), None)]},
    "unknown type": {"members": [(info("x/plan.json", type=b"Z"), None)]},
    "absolute": {"members": [(info("/etc/cron.d/plan.json"), b"")]},
    "upwards": {"members": [(info("a/../../plan.json"), b"")]},
    "dot": {"members": [(info("./x"), b"")]},
    "empty part": {"members": [(info("a//x"), b"")]},
    "control characters": {"members": [(info("a\x1b[2J"), b"")]},
    "member twice": {"members": [(info("archive.json"), b"")]},
    "long name": {"members": [(info("a" * 300), b"")]},
    "sparse": {
        "members": [(info("x/plan.json", pax_headers={"GNU.sparse.map": "0,0", "GNU.sparse.size": str(10**15)}), b"")]
    },
    "run upwards": of(run="../x"),
    "run absolute": of(run="/x"),
    "run empty": of(run=""),
    "engine that is none": of(engine="no engine"),
    "scenario of control characters": of(scenario="\x1b[2J"),
    "scenario that is a number": of(scenario=1),
    "seed that is a text": of(seed="1"),
    "seed below": of(seed=-1),
    "digest that is none": of(files={KEY: "x"}),
    "files that are a list": of(files=[]),
    "no plan": of(files={}),
    "plan elsewhere": of(files={"../plan.json": "0" * 64}),
    "plan that is not there": of(files={"cells/x/plan.json": "0" * 64}),
    "format of later": {"contents": lambda listed: listed.update(format=99)},
    "format that is huge": {"contents": lambda listed: listed.update(format=10**4000)},
    "runs twice": {"contents": lambda listed: listed["runs"].append(listed["runs"][0])},
    "no runs": {"contents": lambda listed: listed.update(runs=[])},
    "runs that are a number": {"contents": lambda listed: listed.update(runs=7)},
    "contents of another kind": {"replace": {"archive.json": b"[]"}},
    "contents deep": {"replace": {"archive.json": b"[" * 100_000}},
    "contents not UTF-8": {"replace": {"archive.json": b"\xff"}},
    "manifest of another kind": {"replace": {f"{ROOT}/manifest.json": b"[]"}},
    "manifest no JSON": {"replace": {f"{ROOT}/manifest.json": b"{"}},
    "manifest missing": {"without": (f"{ROOT}/manifest.json",)},
    "scenario missing": {"without": (f"{ROOT}/scenario.resolved.yaml",)},
    "scenario not UTF-8": {"replace": {f"{ROOT}/scenario.resolved.yaml": b"\xff"}},
    "contents missing": {"without": ("archive.json",)},
    "plan missing": {"without": (f"{ROOT}/{KEY}",)},
    "another plan": {"replace": {f"{ROOT}/{KEY}": b"{}"}},
    "cell upwards": setting("cell", "id", "../../x"),
    "cell absolute": setting("cell", "id", "/tmp/x"),
    "cell that is unfinished": setting("cell", "id", "r1.part"),
    "cell of another folder": setting("cell", "id", "r2"),
    "link upwards": setting("network", "links", 0, "name", "../../../victim"),
    "direction upwards": setting(*DIRECTION, "name", "../../victim"),
    "node that is a command": setting("network", "nodes", 0, "name", "$(touch x)"),
    "workload upwards": setting("cell", "workloads", 0, "name", "../x"),
    "probe upwards": setting("cell", "probes", [{"name": "../x", "kind": "tcp_info", "node": "h1", "interval_ns": 1}]),
    "interface that is too long": setting("network", "links", 0, "ends", 0, "interface", "x" * 16),
    "memory of a thousand machines": setting("network", "memory_mib", 10**9),
    "memory below": setting("network", "memory_mib", -1),
    "memory with words": setting("network", "memory_mib", "64M init=/bin/sh"),
    "memory of a fraction": setting("network", "memory_mib", 64.5),
    "settings of the machine": setting("network", "nodes", 0, "sysctls", {"kernel.core_pattern": "|/bin/sh"}),
    "vector that no memory holds": impaired({**ERRORS, "vector_errors": 10**12}),
    "seed that is no number": impaired({**ERRORS, "seed": "x"}),
    "error model that is none": impaired({**ERRORS, "model": "../x"}),
    "endless channel": impaired({**ERRORS, "model": "gilbert-elliott", "settings": ALL_GOOD}),
    "filter that is an option": setting("cell", "probes", [{**CAPTURE, "filter": "-w/x"}]),
    "container in a process": setting("network", "nodes", 0, "container", CONTAINER),
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


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_export_writes_is_refused_in_one_line(tmp_path, name):
    path = archive(tmp_path / "a", **HOSTILE[name])

    assert "expected" in refused(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        *((of(engine=engine), f"found engine {engine}") for engine in ("host", "live", "none")),
        (
            setting("network", "nodes", 0, "stack", "scps-ri"),
            'nodes[0].stack: found "scps-ri", which left after version 0.3.0: the project builds no program that it may not',
        ),
        (setting("cell", "limits", "wall_s", 1_000_000), "found a wall limit of 1000000 s; expected at most 3600 s"),
    ],
    ids=["host", "live", "no engine", "a stack that left", "a cell that may take for ever"],
)
def test_verify_refuses_in_one_line_what_it_cannot_repeat(scpslab, in_this_process, tmp_path, change, says):
    code, _, said = scpslab("verify", archive(tmp_path / "a", **change))
    assert (code, said.count("\n")) == (ResultError.exit_code, 1)
    assert says in said


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
