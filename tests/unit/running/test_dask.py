"""Executor dask on real `dask scheduler` and `dask worker` processes: the bytes of a local run, whatever happens to them. `make test-scale` kills more."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from cut_network import CutNetwork

from scpslab.errors import CapabilityError, LabError, UsageError
from scpslab.running import clusters
from scpslab.running.events import CellDone, CellStarted, Note
from scpslab.running.executors.dask import DaskExecutor, Patience
from scpslab.running.sample import Sample
from scpslab.server import Turns

pytest.importorskip("distributed")
DATA = Path(__file__).parents[2] / "data"

KILLS = int(os.environ.get("SCPSLAB_SCALE_KILLS", "1"))
long = pytest.mark.skipif("SCPSLAB_SCALE_KILLS" not in os.environ, reason="starts many processes: make test-scale")
LIMIT_S = 120
MANY = ["repeats=10"]
CELLS = 30
CUT_S = 60


class Process:
    """A process that is no child of this one."""

    def __init__(self, pid: int) -> None:
        self.handle = os.pidfd_open(pid)

    def send_signal(self, number: signal.Signals) -> None:
        """As kill does; a process that has ended takes none."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)

    def kill(self) -> None:
        """With -9."""
        self.send_signal(signal.SIGKILL)

    def has_ended(self, wait_s: float = 0) -> bool:
        """Whether it has, now or in so many seconds."""
        return bool(select.select([self.handle], [], [], wait_s)[0])

    def wait(self) -> None:
        """Until it has ended."""
        assert self.has_ended(LIMIT_S)


@pytest.fixture(scope="module")
def dask():
    """Starts a program of Dask; see forked_dask.py."""
    server = subprocess.Popen([sys.executable, str(DATA / "forked_dask.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(words: list[str], environment: dict[str, str], log: Path) -> Process:
        server.stdin.write(json.dumps({"words": words, "environment": environment, "log": str(log)}) + "\n")
        server.stdin.flush()
        return Process(int(server.stdout.readline()))

    yield start
    server.kill()
    server.wait()


class Site:
    """A scheduler and workers, as processes, on loopback."""

    def __init__(self, folder: Path, start) -> None:
        self.folder, self.start, self.processes, self.count = folder, start, [], 0
        self.memory = folder / "worker-memory"
        self.memory.mkdir()
        self.address = ""

    def scheduler(self) -> Process:
        """Starts a scheduler; a second one where the first was."""
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        port = self.address.rpartition(":")[2] or "0"
        words = ["scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--dashboard-address", ":0", "--scheduler-file", str(file)]
        process = self._start(words, {}, self.folder / "scheduler.log")
        wait(lambda: file.is_file() and file.read_text().rstrip().endswith("}"))
        self.address = json.loads(file.read_text())["address"]
        return process

    def worker(self, **environment: str) -> Process:
        """Starts a worker; `environment`: see fake_worker.py."""
        self.count += 1
        local = environment.pop("local", str(self.folder / f"local-{self.count}"))
        Path(local).mkdir(exist_ok=True)
        words = ["worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--dashboard-address", ":0", "--name", f"w{self.count}"]
        words += ["--local-directory", local, "--preload", "fake_worker", "--memory-limit", "0"]
        log = self.folder / f"{self.count}.log"
        process = self._start(words, {"FAKE_MEMORY": str(self.memory), "PYTHONPATH": str(DATA)} | environment, log)
        wait(lambda: b"Registered to" in log.read_bytes())
        return process

    def ran(self) -> list[str]:
        """The cells that workers have run, each as often as it was."""
        return (self.memory / "ran").read_text().split() if (self.memory / "ran").exists() else []

    def end(self) -> None:
        """Kills what is left."""
        for process in self.processes:
            process.kill()
            process.wait()

    def _start(self, words: list[str], environment: dict[str, str], log: Path) -> Process:
        log.touch()
        self.processes.append(self.start(words, os.environ | environment, log))
        return self.processes[-1]


def wait(condition) -> None:
    """Until a condition of another process holds."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, "the other process did not get there"
        threading.Event().wait(0.02)


@pytest.fixture
def site(tmp_path, monkeypatch, dask):
    monkeypatch.setattr(DaskExecutor, "patience", Patience(answer_s=5, workers_s=30, late_s=2, look_s=0.05))
    # What a whole class shares on a disk is here the test's own.
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "5s")
    made = Site(tmp_path, dask)
    made.scheduler()
    yield made
    made.end()


@pytest.fixture
def expected(run_fake, tmp_path):
    """The files of a local run."""
    found = files(run_fake(overrides=MANY, out=tmp_path / "local").folder)
    shutil.rmtree(tmp_path / "cache")
    return found


def files(folder: Path) -> dict[str, bytes]:
    """All files of cells, and the table."""
    paths = [*(path for path in (folder / "cells").rglob("*") if path.is_file()), folder / "results.csv"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def remotely(run_fake, site, **options):
    """A run on the site's workers, and its events."""
    events = []
    listeners = [events.append, *options.pop("listeners", ())]
    result = run_fake(**({"overrides": MANY, "executor": "dask", "cluster": site and site.address, "listeners": listeners} | options))
    return files(result.folder), events


def notes(events) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Note))


@pytest.mark.parametrize("share", [True, pytest.param(False, marks=long)], ids=["shared-store", "shipped"])
def test_workers_give_the_bytes_of_a_local_run(run_fake, site, expected, monkeypatch, tmp_path, share):
    if share:
        (tmp_path / "store").mkdir()
        monkeypatch.setenv("SCPSLAB_STORE", str(tmp_path / "store"))
    site.worker()
    site.worker()

    found, events = remotely(run_fake, site)

    assert found == expected
    assert len([event for event in events if isinstance(event, CellStarted)]) == len([event for event in events if isinstance(event, CellDone)]) == CELLS
    assert sorted(site.ran()) == sorted(event.cell for event in events if isinstance(event, CellDone))
    assert len(list((tmp_path / "store").glob("*/*.cell"))) == (CELLS if share else 0)
    assert list((tmp_path / "store").glob("writing/*")) == []


@long
def test_a_run_starts_its_own_workers(run_fake, expected, tmp_path, monkeypatch):
    import dask.config as settings  # the extra dask

    (tmp_path / "two.yaml").write_text("kind: cluster\nversion: 1\nscheduler: local\nworkers: 2\n")
    (tmp_path / "worker-memory").mkdir()
    monkeypatch.setenv("FAKE_MEMORY", str(tmp_path / "worker-memory"))
    monkeypatch.setenv("FAKE_S", "0.05")
    monkeypatch.setenv("PYTHONPATH", str(DATA))
    monkeypatch.syspath_prepend(DATA)
    with settings.set({"distributed.worker.preload": ["fake_worker"]}):
        found, _ = remotely(run_fake, None, cluster=str(tmp_path / "two.yaml"))
    for cluster in clusters._opened.values():
        cluster.close()
    clusters._opened.clear()
    assert found == expected
    assert len((tmp_path / "worker-memory" / "ran").read_text().split()) == CELLS


@long
def test_a_worker_of_another_build_gets_nothing(run_fake, site, expected):
    site.worker(FAKE_HASH="other")
    with pytest.raises(CapabilityError, match="found another lab program or SCPS stack"):
        remotely(run_fake, site)
    assert site.ran() == []
    site.worker()
    found, events = remotely(run_fake, site)
    assert found == expected
    assert "It gets no more cells." in notes(events)


def test_a_worker_that_lies_is_found_and_what_it_gave_is_withdrawn(run_fake, site, expected, tmp_path, monkeypatch):
    (tmp_path / "store").mkdir()
    monkeypatch.setenv("SCPSLAB_STORE", str(tmp_path / "store"))
    site.worker(FAKE_LIE="all is well", FAKE_S="0.02")
    site.worker(FAKE_S="0.05")

    found, events = remotely(run_fake, site, check=Sample.parse("40%"))

    assert "found other bytes than on this machine" in notes(events)
    assert found == expected
    # Nor does anybody who takes results from the stores get a lie.
    again, events = remotely(run_fake, site, out=tmp_path / "again", executor="local", cluster=None, check=None)
    assert again == expected
    assert all(event.cached for event in events if isinstance(event, CellDone))


def test_checks_take_turns_where_users_share_the_machine(run_fake, site, expected, tmp_path, monkeypatch):
    # The worker is on another machine, which nobody shares.
    site.worker()
    (tmp_path / "turns").mkdir()
    (tmp_path / "server.yaml").write_text(f"kind: server\nversion: 1\nturns: {tmp_path / 'turns'}\ncells: 1\n")
    monkeypatch.setenv("SCPSLAB_SERVER", str(tmp_path / "server.yaml"))
    somebody = Turns.here()
    turn = somebody.take(1)
    waited = []

    def give_back():
        wait(lambda: any(ticket.since_s is not None for ticket in somebody.seen()))
        waited.append(len(site.ran()))
        somebody.give_back(turn)

    thread = threading.Thread(target=give_back)
    thread.start()
    found, _ = remotely(run_fake, site, check=Sample.parse("100%"))
    thread.join()
    somebody.close()
    assert waited
    assert found == expected
    assert list((tmp_path / "turns").iterdir()) == []


@long
def test_a_lie_is_not_noticed_without_a_check(run_fake, site, expected):
    site.worker(FAKE_LIE="all is well")
    found, _ = remotely(run_fake, site)
    assert found != expected


@long
@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted by root")
def test_a_worker_with_a_full_disk_is_left_alone(run_fake, site, expected, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "scpslab-test", str(full)], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        site.worker(local=str(full))
        site.worker(FAKE_S="0.05")
        with suppress(OSError), (full / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1024))
        found, events = remotely(run_fake, site)
    finally:
        site.end()
        subprocess.run(["umount", "--lazy", str(full)], check=True)
    assert "No space left on device" in notes(events)
    assert found == expected


@long
def test_a_slow_worker_does_not_hold_up_the_run(run_fake, site, expected):
    site.worker(FAKE_S="1000")
    site.worker()
    found, _ = remotely(run_fake, site)
    assert found == expected


@pytest.mark.parametrize("seed", range(KILLS))
def test_killed_workers_cost_time_only(run_fake, site, expected, seed):
    draw = random.Random(seed)
    workers = [site.worker(FAKE_S="0.05") for _ in range(2)]
    moments = sorted(draw.sample(range(1, CELLS), 3))

    def kill():
        for moment in moments:
            wait(lambda moment=moment: len(site.ran()) >= moment)
            workers.pop(draw.randrange(len(workers))).kill()
            workers.append(site.worker(FAKE_S="0.05"))

    thread = threading.Thread(target=kill)
    thread.start()
    found, _ = remotely(run_fake, site)
    thread.join()
    assert found == expected


@long
@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_scheduler_is_waited_for(run_fake, site, expected, seed):
    moment = random.Random(seed).randrange(1, CELLS // 2)
    workers = [site.worker(FAKE_S="0.05") for _ in range(2)]

    def kill():
        wait(lambda: len(site.ran()) >= moment)
        for process in [site.processes[0], *workers]:
            process.kill()
            process.wait()
        site.scheduler()
        site.worker()

    thread = threading.Thread(target=kill)
    thread.start()
    found, _ = remotely(run_fake, site)
    thread.join()
    assert found == expected


@long
def test_a_scheduler_that_does_not_come_back_ends_the_run_which_resumes(run_fake, site, expected, monkeypatch):
    monkeypatch.setattr(DaskExecutor, "patience", Patience(answer_s=2, workers_s=3, late_s=2, look_s=0.05))
    site.worker(FAKE_S="0.05")

    def gone(event):
        if isinstance(event, CellDone):
            site.end()

    with pytest.raises(LabError, match="found no scheduler for 3 s"):
        remotely(run_fake, site, listeners=[gone])
    monkeypatch.setattr(DaskExecutor, "patience", Patience(look_s=0.05))
    site.scheduler()
    site.worker()
    result = run_fake(overrides=MANY, executor="dask", cluster=site.address)
    assert files(result.folder) == expected


@long
@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_client_resumes(run_fake, site, expected, tmp_path, seed):
    moment = random.Random(seed).randrange(1, CELLS)
    site.worker(FAKE_S="0.05")
    words = [sys.executable, str(DATA / "run_with_fake_engine.py"), str(tmp_path / "memory"), "0", "run", "links/transfer", "--set", *MANY]
    words += ["--executor", "dask", "--cluster", site.address, "--out", str(tmp_path / "runs")]
    with (tmp_path / "client.log").open("wb") as log:
        client = subprocess.Popen(words, stdout=log, stderr=log)
    wait(lambda: len(site.ran()) >= moment)
    client.kill()
    client.wait()
    result = run_fake(overrides=MANY, executor="dask", cluster=site.address)
    assert files(result.folder) == expected


@long
def test_an_interrupt_ends_what_workers_do(run_fake, site, expected):
    process = site.worker(FAKE_S="0.2")

    def interrupt(event):
        if isinstance(event, CellDone):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        remotely(run_fake, site, listeners=[interrupt])
    before = len(site.ran())
    assert not process.has_ended()
    # The cell that ran ends, and no other begins.
    threading.Event().wait(1)
    assert len(site.ran()) <= before + 2
    result = run_fake(overrides=MANY, executor="dask", cluster=site.address)
    assert files(result.folder) == expected
    assert before < CELLS


@long
def test_two_clients_share_workers_and_a_store(run_fake, site, expected, tmp_path, monkeypatch):
    (tmp_path / "store").mkdir()
    monkeypatch.setenv("SCPSLAB_STORE", str(tmp_path / "store"))
    site.worker()
    site.worker()
    words = [sys.executable, str(DATA / "run_with_fake_engine.py"), str(tmp_path / "memory"), "0", "run", "links/transfer", "--set", *MANY]
    words += ["--executor", "dask", "--cluster", site.address, "--out", str(tmp_path / "other")]
    with (tmp_path / "client.log").open("wb") as log:
        other = subprocess.Popen(words, stdout=log, stderr=log)
    found, _ = remotely(run_fake, site)
    assert other.wait(LIMIT_S) == 0
    (run,) = (tmp_path / "other").iterdir()
    assert found == expected == files(run)


@long
@pytest.mark.parametrize("cut_off", ["worker", "client"])
def test_a_network_that_is_cut_for_a_minute(run_fake, site, expected, cut_off):
    network = CutNetwork(int(site.address.rpartition(":")[2]))
    direct, site.address = site.address, network.address if cut_off == "worker" else site.address
    site.worker(FAKE_S="0.3")
    site.address = network.address if cut_off == "client" else direct

    def cut():
        wait(lambda: len(site.ran()) >= 2)
        network.cut()
        threading.Event().wait(CUT_S)
        network.mend()

    thread = threading.Thread(target=cut)
    thread.start()
    began = time.monotonic()
    found, _ = remotely(run_fake, site)
    thread.join()
    assert network.connections > 0
    network.close()
    assert found == expected
    assert time.monotonic() - began > CUT_S


@long
def test_a_scheduler_that_is_stopped_for_a_minute(run_fake, site, expected):
    site.worker(FAKE_S="0.3")
    scheduler = site.processes[0]

    def cut():
        wait(lambda: len(site.ran()) >= 2)
        scheduler.send_signal(signal.SIGSTOP)
        threading.Event().wait(CUT_S)
        scheduler.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=cut)
    thread.start()
    found, _ = remotely(run_fake, site)
    thread.join()
    assert found == expected


def test_what_was_asked_for_must_fit(run_fake, tmp_path):
    for options, words in [
        ({"cluster": "tcp://127.0.0.1:1"}, "expected --executor dask"),
        ({"executor": "dask"}, "expected --cluster"),
        ({"executor": "dask", "cluster": "nonsense"}, "expected local, an address such as tcp://head:8786, or a YAML file"),
    ]:
        with pytest.raises(UsageError, match=words):
            run_fake(**options)
