"""The store of results: whole or not at all, checked when read, shared without locks, and kept small."""

import errno
import hashlib
import io
import os
import re
import tarfile
import threading
from pathlib import Path

import pytest

from scpslab import plan as plans
from scpslab.core.errors import ResultError, UsageError
from scpslab.running import RunOptions
from scpslab.running.events import CellDone, Note
from scpslab.running.verify import Sample, verify
from scpslab.runs.store import Store, packed
from tests import golden
from tests.cases import refusal

KEY, OTHER = "ab" * 16, "cd" * 16


@pytest.fixture
def cell(tmp_path):
    folder = tmp_path / "cell"
    (folder / "captures").mkdir(parents=True)
    (folder / "logs").mkdir()
    (folder / "plan.json").write_text("{}")
    (folder / "logs" / "a.log").write_bytes(os.urandom(3000))
    return folder


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


def entry(store):
    (found,) = store.entries()
    return found.path


def test_what_was_kept_is_had_again(tmp_path, cell):
    store = Store(tmp_path / "store")
    store.keep(KEY, cell)
    assert not store.fetch(OTHER, tmp_path / "other")
    assert store.fetch(KEY, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(cell)
    assert packed(cell) == entry(store).read_bytes()
    assert list((store.root / "writing").iterdir()) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[:40],
        lambda data: data[:500] + bytes([data[500] ^ 1]) + data[501:],
    ],
)
def test_a_damaged_entry_is_named_and_dropped(tmp_path, cell, told, damage):
    store = Store(tmp_path / "store")
    store.keep(KEY, cell)
    path = entry(store)
    path.write_bytes(damage(path.read_bytes()))
    told("store of results", "damage", store.fetch, KEY, tmp_path / "again", error=ResultError)
    assert not (tmp_path / "again").exists()
    assert list(store.entries()) == []


def test_an_entry_of_a_size_that_no_result_has_is_refused_unread(tmp_path, cell):
    store = Store(tmp_path / "store")
    store.keep(KEY, cell)
    with entry(store).open("r+b") as file:
        file.truncate(6 << 30)
    with pytest.raises(ResultError, match=f"found {6 << 30} bytes, more than {4 << 30}; expected the result"):
        store.fetch(KEY, tmp_path / "again")
    assert list(store.entries()) == []


def test_a_full_disk_is_no_damage_of_what_was_kept(tmp_path, cell, monkeypatch):
    store = Store(tmp_path / "store")
    store.keep(KEY, cell)
    opened = Path.open

    def full(path, mode="r", *rest, **named):
        if "x" in mode:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return opened(path, mode, *rest, **named)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space left"):
        store.fetch(KEY, tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("again")] == []
    assert entry(store).is_file()


class Stale(io.RawIOBase):
    """A file whose server has gone."""

    def read(self, size=-1):
        raise OSError(errno.ESTALE, "Stale file handle")


@pytest.mark.parametrize("when", ["opened", "read"])
def test_an_entry_that_cannot_be_read_costs_no_run(run_fake, tmp_path, monkeypatch, when):
    """As another user's, or one on a server that has gone."""
    run_fake()
    system_cache_of(tmp_path, monkeypatch)
    opened = Path.open

    def stale(path, *rest, **named):
        if path.suffix == ".cell" and when == "opened":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return Stale() if path.suffix == ".cell" else opened(path, *rest, **named)

    monkeypatch.setattr(Path, "open", stale)
    events = []
    run_fake(out=tmp_path / "there", listeners=[events.append])
    assert [event.cached for event in events if isinstance(event, CellDone)] == [False] * 3
    words = "found Permission denied" if when == "opened" else "found Stale file handle"
    assert any(words in event.text for event in events if isinstance(event, Note))


def test_many_writers_and_readers_share_a_store(tmp_path, cell):
    store, wrong = Store(tmp_path / "store"), []

    def work(number):
        for turn in range(10):
            store.keep(KEY, cell)
            place = tmp_path / f"{number}-{turn}"
            if not store.fetch(KEY, place) or contents(place) != contents(cell):
                wrong.append(place)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_results_are_removed_by_age_and_size(tmp_path, cell):
    store = Store(tmp_path / "store")
    for number in range(4):
        store.keep(f"{number:032x}", cell)
        os.utime(store.root / "00" / f"{number:032x}.cell", (10**9 + number, 10**9 + number))
    size = entry_size = next(store.entries()).size_bytes
    assert store.trim(most_bytes=2 * size) == (2, 2 * entry_size)
    assert sorted(one.path.stem[-1] for one in store.entries()) == ["2", "3"]
    assert store.fetch(f"{2:032x}", tmp_path / "again")
    assert store.trim(older_than_s=3600) == (1, size)
    assert [one.path.stem[-1] for one in store.entries()] == ["2"]


def test_files_that_go_while_they_are_looked_at_are_no_trouble(tmp_path, cell):
    store = Store(tmp_path / "store")
    store.keep(f"{0:032x}", cell)
    # Listed, and not there any more.
    (store.root / "writing" / f"host-1-{0:032x}").symlink_to(tmp_path / "gone")
    left = store.root / "writing" / f"host-2-{0:032x}"
    left.write_bytes(b"begun")
    os.utime(left, (10**9, 10**9))
    assert store.trim() == (0, 0)
    assert not left.exists()


def system_cache_of(tmp_path, monkeypatch):
    """What was this user's cache is the system's from now on."""
    monkeypatch.setenv("SCPSLAB_SYSTEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "another"))


def test_a_run_takes_results_of_the_system_cache(run_fake, tmp_path, monkeypatch):
    run_fake()
    system_cache_of(tmp_path, monkeypatch)
    events = []
    run_fake(out=tmp_path / "there", listeners=[events.append])
    assert [event.cached for event in events if isinstance(event, CellDone)] == [True] * 3


ONE_POINT = ("sweep.delay=[10 ms]", "repeats=3")


@pytest.mark.parametrize(
    ("settings", "options", "ran"),
    [
        (ONE_POINT, {}, 1),
        (("links.hop.*.errors.ber=1e-9", *ONE_POINT), {}, 3),
        (("hosts.*.preset=bbr", *ONE_POINT), {}, 3),
        (ONE_POINT, {"use_cache": False}, 3),
        (ONE_POINT, {"repeats": False}, 3),
    ],
    ids=["fixed", "bit errors", "BBR draws", "without cache", "on a real clock"],
)
def test_repeats_in_which_nothing_is_drawn_are_one_cell(run_fake, tmp_path, settings, options, ran):
    """It runs once, in this run and in those that come later; each plan says which repeat it is of."""
    for later, out in enumerate(("runs", "later")):
        events = []
        run = run_fake(overrides=list(settings), out=tmp_path / out, listeners=[events.append], **options).folder
        cells = [event for event in events if isinstance(event, CellDone)]
        is_kept = later and not options
        assert sum(not cell.cached for cell in cells) == (0 if is_kept else ran)
        planned = [plans.parse((folder / "plan.json").read_bytes()).cell for folder in sorted(run.glob("cells/*"))]
        assert [(cell.id, cell.repeat) for cell in planned] == [(cell.cell, at) for at, cell in enumerate(cells, 1)]
        assert len({cell.kernel_seed for cell in planned}) == (3 if settings != ONE_POINT else 1)


def test_a_run_names_a_damaged_result_and_runs_the_cell_again(run_fake, tmp_path):
    before = run_fake().folder
    damaged = next((tmp_path / "cache" / "results").glob("*/*.cell"))
    damaged.write_bytes(b"x")
    events = []
    after = run_fake(out=tmp_path / "again", listeners=[events.append]).folder
    assert [event.text for event in events if isinstance(event, Note) and str(damaged) in event.text]
    assert sorted(event.cached for event in events if isinstance(event, CellDone)) == [False, True, True]
    assert (before / "results.csv").read_bytes() == (after / "results.csv").read_bytes()
    assert Store(tmp_path / "cache" / "results").fetch(damaged.stem, tmp_path / "whole")


def test_a_full_store_ends_no_run(run_fake, monkeypatch):
    def keep(store, key, folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Store, "keep", keep)
    events = []
    assert run_fake(listeners=[events.append]).incomplete == 3
    (note,) = (event.text for event in events if isinstance(event, Note) and "No space left" in event.text)
    assert note.endswith("set SCPSLAB_CACHE to another folder.")


def test_a_limit_holds_after_each_run(run_fake, tmp_path, monkeypatch, told):
    monkeypatch.setenv("SCPSLAB_RESULTS_LIMIT", "0 B")
    run_fake()
    assert list(Store(tmp_path / "cache" / "results").entries()) == []
    monkeypatch.setenv("SCPSLAB_RESULTS_LIMIT", "much")
    told("store of results", "SCPSLAB_RESULTS_LIMIT", run_fake, error=UsageError)


def test_a_sample_finds_the_bytes_of_a_liar(in_this_process, run_fake, tmp_path):
    folder = run_fake().folder
    options = RunOptions(jobs=1)
    (same,) = verify(folder, options, sample=Sample.parse("2"))
    assert same.is_same
    assert (len(same.cells), same.of) == (2, 3)
    for status in folder.glob("cells/*/status.json"):
        status.write_text(status.read_text().replace("fake", "false"))
    (different,) = verify(folder, options, sample=Sample.parse("5%"))
    assert not different.is_same
    assert len(different.different) == 2
    assert "results.csv" in different.different


def test_nothing_is_run_again_into_the_run_that_is_verified(in_this_process, run_fake, told):
    folder = run_fake().folder
    before = contents(folder)
    again = {"keep": folder.parent, "sample": Sample.parse("1")}
    told("verify", "--keep", verify, folder, RunOptions(jobs=1), **again, error=UsageError)
    assert contents(folder) == before


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_an_entry_that_never_ends_costs_no_run(run_fake, tmp_path, put):
    run_fake()
    for path in tmp_path.glob("cache/results/*/*.cell"):
        path.unlink()
        put(path)
    events = []
    run_fake(out=tmp_path / "there", listeners=[events.append])
    assert [event.cached for event in events if isinstance(event, CellDone)] == [False] * 3
    assert any("found no ordinary file" in event.text for event in events if isinstance(event, Note))


@pytest.mark.parametrize("text", ["", "0", "0%", "101%", "1.5", "x", "-1"])
def test_a_sample_that_is_none_is_refused(text, told):
    told("verify", f"--sample {text}".strip(), Sample.parse, text, error=UsageError)


@pytest.mark.parametrize(
    ("member", "size"),
    [("../outside", 10), ("/outside", 10), ("zeros", 1 << 27), ("logs/x logs", 10), ("logs logs/x", 10)],
)
def test_an_entry_of_a_stranger_stays_within_its_folder_and_limits(tmp_path, member, size):
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz", compresslevel=9) as archive:
        for name in member.split():
            entry = tarfile.TarInfo(name)
            entry.size = size
            archive.addfile(entry, Zeros())
    store = Store(tmp_path / "store")
    path = store.root / KEY[:2] / f"{KEY}.cell"
    path.parent.mkdir(parents=True)
    path.write_bytes(hashlib.sha256(body.getvalue()).hexdigest().encode() + body.getvalue())

    said = refusal(store.fetch, KEY, tmp_path / "cell", error=ResultError)
    golden.Case("store of results", member).hold(re.sub(r"\d{5,}", "MANY", said), tmp_path)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["store"]


class Zeros(io.RawIOBase):
    """As many zeros as are asked for."""

    def read(self, size=-1):
        return bytes(size)
