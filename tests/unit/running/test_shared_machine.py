"""The file of a shared machine, and the runs on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scpslab.doctor import machine
from scpslab.errors import CapabilityError, ScenarioError, UsageError
from scpslab.running import store
from scpslab.server import server_file, system_cache
from scpslab.server.server_file import load_server

PROGRAM = Path(__file__).parents[2] / "data" / "run_with_fake_engine.py"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Writes the file of this machine."""
    (tmp_path / "turns").mkdir()

    def write(*lines: str) -> Path:
        file = tmp_path / "server.yaml"
        file.write_text("\n".join(["kind: server", "version: 1", *lines]) + "\n")
        monkeypatch.setenv("SCPSLAB_SERVER", str(file))
        return file

    return write


@pytest.fixture
def start(tmp_path):
    """Starts a run with the fake engine, one cell at a time; none is left."""
    started = []

    def run(out: str, hold: int) -> subprocess.Popen[str]:
        started.append(_start(tmp_path, out, hold))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def _start(folder: Path, out: str, hold: int) -> subprocess.Popen[str]:
    (folder / "memory").mkdir(exist_ok=True)
    words = [sys.executable, str(PROGRAM), str(folder / "memory"), str(hold), "run", "links/transfer", "--jobs", "1", "--out", out]
    environment = os.environ | {"SCPSLAB_CACHE": str(folder / f"cache-{out}"), "COLUMNS": "200"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, cwd=folder, env=environment, text=True, **pipes)


def test_limits_need_the_folder_of_turns(server):
    with pytest.raises(ScenarioError, match=r":3: cells: found cells without turns; expected the folder"):
        load_server(server("cells: 4"))


def test_a_file_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("SCPSLAB_SERVER", "/nowhere/server.yaml")
    with pytest.raises(CapabilityError, match="SCPSLAB_SERVER: found no file /nowhere"):
        server_file()


def test_empty_variables_mean_none(server, monkeypatch):
    server(f"cache: {Path(__file__).parent}")
    assert system_cache() == Path(__file__).parent
    monkeypatch.setenv("SCPSLAB_SYSTEM_CACHE", "")
    assert system_cache() is None
    monkeypatch.setenv("SCPSLAB_SERVER", "")
    assert server_file() is None


def test_a_system_cache_that_is_not_there_is_named(server, monkeypatch):
    file = server("cache: /nowhere")
    with pytest.raises(CapabilityError, match=f"{file}: cache: found no folder /nowhere"):
        system_cache()
    monkeypatch.setenv("SCPSLAB_SYSTEM_CACHE", "/elsewhere")
    with pytest.raises(CapabilityError, match="SCPSLAB_SYSTEM_CACHE: found no folder /elsewhere"):
        store.stores()


def test_two_runs_share_one_place_and_a_killed_one_leaves_it(server, start, tmp_path):
    server(f"turns: {tmp_path / 'turns'}", "cells: 1")
    first = start("first", 2)
    assert first.stdout.readline() == "holding\n"
    second = start("second", 0)
    said = second.stderr.readline()
    while "waiting for a turn" not in said:
        assert said, "the second run did not wait"
        said = second.stderr.readline()
    assert "1 of 1 cells run" in said
    assert second.poll() is None

    first.kill()
    first.communicate()
    _, said = second.communicate(timeout=100)

    assert second.returncode == 0, said
    (run,) = (tmp_path / "second").iterdir()
    assert len(json.loads((run / "manifest.json").read_text())["cells"]) == 3
    assert list((tmp_path / "turns").iterdir()) == []


def test_two_runs_at_once_have_the_bytes_of_runs_alone(server, start, tmp_path, monkeypatch):
    server(f"turns: {tmp_path / 'turns'}", "cells: 1")
    runs = [start(out, 0) for out in ("first", "second")]
    assert [(run.communicate(timeout=100), run.returncode)[1] for run in runs] == [0, 0]
    tables = {next((tmp_path / out).glob("*/results.csv")).read_bytes() for out in ("first", "second")}
    monkeypatch.delenv("SCPSLAB_SERVER")
    alone = start("alone", 0)
    alone.communicate(timeout=100)
    assert tables == {next((tmp_path / "alone").glob("*/results.csv")).read_bytes()}


def test_results_of_the_system_cache_are_read_and_never_written(run_fake, server, tmp_path):
    run_fake(out=tmp_path / "teacher")
    (tmp_path / "cache").rename(tmp_path / "system")
    server(f"cache: {tmp_path / 'system'}")
    entries = sorted((tmp_path / "system" / "results").glob("*/*.cell"))
    before = [(entry, entry.read_bytes(), entry.stat().st_mtime_ns) for entry in entries]
    events = []

    found = run_fake(listeners=[events.append])

    assert len(before) == found.incomplete == sum(getattr(event, "cached", False) for event in events)
    assert [(entry, entry.read_bytes(), entry.stat().st_mtime_ns) for entry in entries] == before
    # A damaged one is named, stays there, and its cell runs.
    entries[0].write_bytes(entries[0].read_bytes()[:-1] + b"?")
    events.clear()
    run_fake(listeners=[events.append], out=tmp_path / "again")
    assert [event.text for event in events if "It stays where it is, and the cell runs again" in getattr(event, "text", "")]
    assert sum(getattr(event, "cached", False) for event in events) == len(before) - 1
    assert entries[0].exists()
    run_fake(overrides=["repeats=2"], out=tmp_path / "more")
    assert sorted((tmp_path / "system" / "results").glob("*/*.cell")) == entries


def test_doctor_says_what_is_shared(server, tmp_path, monkeypatch):
    monkeypatch.setenv("SCPSLAB_SERVER", "")
    assert machine.server().found == "no: it has no system cache, and users take no turns"
    (tmp_path / "system" / "results").mkdir(parents=True)
    file = server(f"cache: {tmp_path / 'system'}", f"turns: {tmp_path / 'turns'}", "cells: 8", "cells_per_user: 2", "memory_per_user: 4 GiB")
    found = machine.server()
    assert found.state == "ok"
    assert found.found == (
        f"{file}; system cache {tmp_path / 'system'} with no part of this version and results; "
        "at most 8 cells at a time, 2 cells and 4096 MiB for each user in turns; 0 cells of 0 users run now"
    )
    (tmp_path / "turns").rmdir()
    found = machine.server()
    assert (found.state, "install -d -m 1777" in found.found) == ("missing", True)


def test_a_missing_shared_store_is_still_named(monkeypatch):
    monkeypatch.setenv("SCPSLAB_STORE", "/nowhere")
    with pytest.raises(UsageError, match="SCPSLAB_STORE: found no folder"):
        store.stores()
