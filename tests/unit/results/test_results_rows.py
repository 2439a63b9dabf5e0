"""Rows that are kept: the same table from them, and never another than the files give."""

import hashlib
import json
import os
import shutil
import sys

import pytest

from scpslab.analysis.collect import Rows, collect, derived
from scpslab.analysis.run import cell_folders
from scpslab.analysis.table import read_results
from scpslab.core.errors import ResultError
from scpslab.running.events import CellDone
from scpslab.runs import CellFiles
from scpslab.runs.store import ROW, Store

CELL = "cells/stack=bbr,ber=0,r1"
# The package names a function like its module.
kept_rows = sys.modules[Rows.__module__]


@pytest.fixture
def rows(tmp_path):
    return Rows(Store(tmp_path / "store"))


@pytest.fixture
def own(monkeypatch, tmp_path):
    """The user's own store."""
    store = Store(tmp_path / "own")
    monkeypatch.setattr("scpslab.analysis.table.own_store", lambda: store)
    return store


@pytest.fixture
def opened(monkeypatch):
    """The cells whose rows were derived."""
    cells = []

    def noted(folder):
        cells.append(folder.name)
        return derived(folder)

    monkeypatch.setattr(kept_rows, "derived", noted)
    return cells


def files(store):
    return [entry.path for entry in store.entries(ROW)]


def forged(path):
    """The row with another time, and the right digest."""
    row = json.loads(path.read_bytes()[64:])
    row["values"]["transfer_s"] = 1.5
    text = json.dumps(row).encode()
    path.write_bytes(hashlib.sha256(text).hexdigest().encode() + text)


def test_a_table_of_kept_rows_has_the_same_bytes_and_reads_no_capture(run_dir, rows, opened):
    afresh = collect(run_dir).read_bytes()
    assert collect(run_dir, row=rows.row).read_bytes() == afresh
    assert len(opened) == len(cell_folders(run_dir))
    assert collect(run_dir, row=rows.row).read_bytes() == afresh
    assert len(opened) == len(cell_folders(run_dir))


def test_a_row_belongs_to_what_the_files_say_wherever_they_are(run_dir, rows, opened, tmp_path):
    collect(run_dir, row=rows.row)
    opened.clear()
    shutil.copytree(run_dir / CELL, tmp_path / "copy")
    assert rows.row(tmp_path / "copy") == derived(run_dir / CELL)
    assert opened == []


@pytest.mark.parametrize("file", ["plan.json", "status.json", "records/transfer.jsonl", "captures/ws2.pcap"])
def test_a_changed_file_has_no_row_even_if_nothing_but_its_bytes_tells(run_dir, rows, opened, file):
    path = run_dir / CELL / file
    rows.row(run_dir / CELL)
    before, content = path.stat(), path.read_bytes()
    swapped = {b'"completed"': b'"failed"   ', b"60000": b"59999", b'"bbr"': b'"BBR"'}
    changed = content[:-1] + bytes([content[-1] ^ 1]) if path.suffix == ".pcap" else content
    for old, new in swapped.items():
        changed = changed.replace(old, new) if path.suffix != ".pcap" else changed
    assert changed != content
    path.write_bytes(changed)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert rows.row(run_dir / CELL) == derived(run_dir / CELL)
    assert len(opened) == 2


def test_a_record_more_or_less_is_a_change(run_dir, rows, opened):
    rows.row(run_dir / CELL)
    CellFiles(run_dir / CELL).capture("ws2").unlink()
    assert rows.row(run_dir / CELL).values["transfer_source"] == "record"


def test_changed_code_has_no_rows(run_dir, rows, opened, monkeypatch):
    rows.row(run_dir / CELL)
    monkeypatch.setattr(kept_rows, "_code", lambda _: "other")
    rows.row(run_dir / CELL)
    assert len(opened) == 2


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-9], lambda data: data[:300] + b"?" + data[301:]]
)
def test_a_damaged_row_is_derived_and_kept_again(run_dir, rows, opened, damage):
    whole = rows.row(run_dir / CELL)
    (path,) = files(rows._store)
    path.write_bytes(damage(path.read_bytes()))
    assert rows.row(run_dir / CELL) == whole
    assert rows.row(run_dir / CELL) == whole
    assert len(opened) == 2


@pytest.mark.parametrize("text", [b"{}", b"[]", b"\xff", b'{"axes": 1, "values": {}, "columns": [[1]]}'])
def test_a_row_of_another_shape_is_derived_again(run_dir, rows, text):
    whole = rows.row(run_dir / CELL)
    (path,) = files(rows._store)
    path.write_bytes(hashlib.sha256(text).hexdigest().encode() + text)
    assert rows.row(run_dir / CELL) == whole


def test_rebuild_believes_no_row_and_replaces_it(run_dir, own):
    right = collect(run_dir).read_bytes()
    (run_dir / "results.csv").unlink()
    read_results(run_dir)
    assert files(own)
    for path in files(own):
        forged(path)
    read_results(run_dir, rebuild=True)
    assert (run_dir / "results.csv").read_bytes() == right
    (run_dir / "results.csv").unlink()
    read_results(run_dir)
    assert (run_dir / "results.csv").read_bytes() == right


def test_no_row_is_looked_for_in_a_run_folder(run_dir, own):
    """Whoever sends a run may send anything along."""
    before = {path for path in run_dir.rglob("*") if path.name != "results.csv"}
    right = collect(run_dir).read_bytes()
    read_results(run_dir)
    for path in files(own):
        forged(path)
        shutil.copy(path, run_dir / CELL / "records" / path.name)
        shutil.move(path, run_dir / CELL / path.name)
    assert {path for path in run_dir.rglob("*") if path.suffix != ROW and path.name != "results.csv"} == before
    (run_dir / "results.csv").unlink()
    read_results(run_dir)
    assert (run_dir / "results.csv").read_bytes() == right


def test_what_is_said_of_a_cell_is_said_each_time(run_dir, rows):
    path = CellFiles(run_dir / CELL).capture("ws4")
    path.write_bytes(path.read_bytes()[:-7])
    for _ in range(2):
        said = []
        collect(run_dir, said.append, rows.row)
        assert len(said) == 1


def test_what_is_wrong_with_a_cell_is_named_each_time(run_dir, rows):
    CellFiles(run_dir / CELL).capture("ws2").write_bytes(b"\xff" * 100)
    for _ in range(2):
        with pytest.raises(ResultError, match=r"ws2\.pcap"):
            rows.row(run_dir / CELL)


def test_a_store_that_takes_nothing_costs_time_only(run_dir, tmp_path):
    (tmp_path / "store").write_text("")
    assert Rows(Store(tmp_path / "store")).row(run_dir / CELL) == derived(run_dir / CELL)


def test_rows_are_removed_like_results(run_dir, rows):
    rows.row(run_dir / CELL)
    assert rows._store.trim(most_bytes=0)[0] == 0
    assert files(rows._store) == []


def test_rows_are_there_when_the_last_cell_ends_and_a_run_without_cache_reads_and_writes_none(
    run_fake, tmp_path, monkeypatch
):
    store, seen = Store(tmp_path / "cache" / "results"), []

    def noted(event):
        if isinstance(event, CellDone):
            seen.append(len(files(store)))

    first = run_fake(listeners=[noted]).folder
    assert seen == [1, 2, 3]
    table = (first / "results.csv").read_bytes()
    kept = files(store)
    for path in kept:
        forged(path)
    again = run_fake(out=tmp_path / "again", use_cache=False).folder
    assert (again / "results.csv").read_bytes() == table
    for path in kept:
        path.unlink()
    run_fake(out=tmp_path / "more", use_cache=False)
    assert files(store) == []
