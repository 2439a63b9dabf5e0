"""Executor dask on real schedulers and workers: the bytes of a local run; `make test-scale` kills more of them."""

import gc
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
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from cut_network import CutNetwork

from scpslab.core.errors import LabError
from scpslab.engine import CellSample
from scpslab.running import clusters, remote
from scpslab.running.dask import DaskExecutor, Patience, _Run
from scpslab.running.events import CellDone, CellProgress, CellStarted, Note

pytest.importorskip("distributed")
DATA = Path(__file__).parents[1] / "data"

KILLS = int(os.environ.get("SCPSLAB_SCALE_KILLS", "1"))
long = pytest.mark.skipif("SCPSLAB_SCALE_KILLS" not in os.environ, reason="starts many processes: make test-scale")
LIMIT_S = 120
MANY = ["repeats=10", "workloads.transfer.start={random: 0 s..1 s}"]
CELLS = 30
CUT_S = 60
QUIET = "--no-dashboard --dashboard-address :0"


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
    server = subprocess.Popen(
        [sys.executable, str(DATA / "forked_dask.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def start(words: list[str], environment: dict[str, str], log: Path) -> Process:
        server.stdin.write(json.dumps({"words": words, "environment": environment, "log": str(log)}) + "\n")
        server.stdin.flush()
        return Process(int(server.stdout.readline()))

    yield start
    server.kill()
    server.wait()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Files of a cluster's certificates, as the environment names them to Dask."""
    from distributed import Security  # the extra dask

    folder, made = tmp_path_factory.mktemp("tls"), Security.temporary()
    files = {"CA_FILE": made.tls_ca_file}
    for role in ("client", "scheduler", "worker"):
        files |= {f"{role.upper()}__{what.upper()}": getattr(made, f"tls_{role}_{what}") for what in ("cert", "key")}
    for name, content in files.items():
        (folder / name).write_text(content)
    return {f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(folder / name) for name in files}


class Site:
    """A scheduler and workers, as processes, on loopback, which know each other by certificates."""

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
        words = f"scheduler --protocol tls --host 127.0.0.1 --port {port} {QUIET} --scheduler-file {file}"
        process = self._start(words, {}, self.folder / "scheduler.log")
        wait(lambda: file.is_file() and file.read_text().rstrip().endswith("}"))
        self.address = json.loads(file.read_text())["address"]
        return process

    def worker(self, **environment: str) -> Process:
        """Starts a worker; `environment`: see fake_worker.py."""
        self.count += 1
        local = environment.pop("local", str(self.folder / f"local-{self.count}"))
        Path(local).mkdir(exist_ok=True)
        words = f"worker {self.address} --nthreads 1 --no-nanny {QUIET} --name w{self.count} --local-directory {local}"
        words += " --preload fake_worker --memory-limit 0"
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

    def _start(self, words: str, environment: dict[str, str], log: Path) -> Process:
        log.touch()
        self.processes.append(self.start(words.split(), os.environ | environment, log))
        return self.processes[-1]


def wait(condition) -> None:
    """Until a condition of another process holds."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, "the other process did not get there"
        threading.Event().wait(0.02)


@pytest.fixture
def with_certificates(certificates, monkeypatch):
    """Dask's settings name them, in this process and in those that it starts."""
    import dask.config as settings  # the extra dask

    with monkeypatch.context() as patch:
        for name, path in certificates.items():
            patch.setenv(name, path)
        settings.refresh()
        yield
    settings.refresh()


@pytest.fixture
def site(tmp_path, monkeypatch, dask, with_certificates):
    monkeypatch.setattr(DaskExecutor, "patience", Patience(answer_s=5, workers_s=30, look_s=0.05))
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
    result = run_fake(**({"overrides": MANY, "cluster": site.address, "listeners": listeners} | options))
    return files(result.folder), events


def start_client(site, folder: Path, out: str) -> subprocess.Popen[bytes]:
    """A run on the site's workers in a process of its own, into a folder of that name."""
    program = f"{DATA / 'run_with_fake_engine.py'} {folder / 'memory'} 0 run links/transfer"
    settings = [word for text in MANY for word in ("--set", text)]
    where = f"--cluster {site.address} --out {folder / out}"
    with (folder / "client.log").open("wb") as log:
        return subprocess.Popen([sys.executable, *program.split(), *settings, *where.split()], stdout=log, stderr=log)


@contextmanager
def meanwhile(work):
    """Does some work beside a run, to its end."""
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join()


def test_workers_give_the_bytes_of_a_local_run(run_fake, site, expected):
    site.worker()
    site.worker()

    found, events = remotely(run_fake, site)

    assert found == expected
    started, done = ([event.cell for event in events if isinstance(event, kind)] for kind in (CellStarted, CellDone))
    assert len(started) == len(done) == CELLS
    assert sorted(site.ran()) == sorted(done)


def test_workers_tell_what_running_cells_do_and_nobody_else_is_heard(run_fake, site, expected, monkeypatch):
    """Whoever has the certificates can say something there: of another cell, of another source, or no line at all."""
    places, said = _Run._places, []

    def lying(run, client):
        if not said and run.id:
            line = '\x1e{"source": "transfer", "t_s": 1}'
            said.extend([("nowhere", line), (next(iter(run.left)), line.replace("transfer", "somebody")), (line,), 7])
            for words in said:
                client.log_event(remote.topic(run.id), words)
        return places(run, client)

    monkeypatch.setattr(_Run, "_places", lying)
    site.worker(FAKE_S="0.1")
    found, events = remotely(run_fake, site)

    assert found == expected
    assert len(said) == 4
    told = [event for event in events if isinstance(event, CellProgress)]
    assert told
    assert [event.sample for event in told] == [CellSample(0.5, "transfer", {"state": "started"})] * len(told)
    for event in told:
        done = next(at for at, other in enumerate(events) if isinstance(other, CellDone) and other.cell == event.cell)
        assert events.index(event) < done


def test_a_worker_of_another_build_ends_the_run(run_fake, site):
    site.worker(FAKE_HASH="other")
    with pytest.raises(LabError, match="found another lab program or SCPS stack"):
        remotely(run_fake, site)
    assert site.ran() == []


def test_a_result_of_another_plan_ends_the_run_and_is_not_there(run_fake, site, tmp_path):
    site.worker(FAKE_PLAN="another")
    with pytest.raises(LabError, match="found a damaged result .the result of another plan"):
        remotely(run_fake, site, out=tmp_path / "runs")
    assert [cell for run in (tmp_path / "runs").iterdir() for cell in (run / "cells").iterdir()] == []


def test_a_worker_whose_answers_never_come_ends_the_run(run_fake, site, monkeypatch):
    site.worker()

    def late(run, client):
        raise TimeoutError

    monkeypatch.setattr(_Run, "_turn", late)
    with pytest.raises(LabError, match="found 10 lost connections and no result between them"):
        remotely(run_fake, site)


@pytest.mark.parametrize("how", ["answer", "error", "message"])
def test_no_pickle_of_a_worker_is_loaded(run_fake, site, expected, tmp_path, how):
    """A worker sends objects that run a program where they are loaded: as its answer and the answer's class, as an
    error, inside of a message.
    """
    ran = tmp_path / "ran-at-the-client"
    site.worker(FAKE_EVIL=how, FAKE_EVIL_FILE=str(ran))
    # What the scheduler passes on in one message with other news cannot be told apart.
    words = "found a message with an object of Python; expected data" if how == "message" else "a worker|A worker lies"
    with pytest.raises(LabError, match=words):
        remotely(run_fake, site)
    assert not ran.exists()


def test_nobody_without_the_certificates_gets_into_a_cluster(site):
    """Another user of the machine can reach its ports, and has certificates of their own or none."""
    from distributed import Client, Security  # the extra dask

    site.worker()
    clusters.refuse()
    with Client(site.address, security=clusters.security(), set_as_default=False) as mine:
        assert mine.submit(eval, "b'done'", pure=False).result(LIMIT_S) == b"done"
        addresses = [site.address, *mine.scheduler_info()["workers"]]
    assert [address for address in addresses if not address.startswith("tls://127.0.0.1:")] == []
    for address in addresses:
        for theirs, there in ((Security.temporary(), address), (None, address.replace("tls://", "tcp://"))):
            gc.collect()
            with pytest.raises((OSError, RuntimeError)):
                Client(there, security=theirs, timeout=2, set_as_default=False)


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

    with meanwhile(kill):
        found, _ = remotely(run_fake, site)
    assert found == expected


def test_a_connection_that_is_made_again_uses_the_same_workers(run_fake, site, expected, monkeypatch):
    """The scheduler and its workers live; only an answer to this client came too late."""
    site.worker(FAKE_S="0.05")
    places, lost = _Run._places, []

    def late(run, client):
        if not lost and len(site.ran()) >= 3:
            lost.append(True)
            raise TimeoutError
        return places(run, client)

    monkeypatch.setattr(_Run, "_places", late)
    found, events = remotely(run_fake, site)
    assert lost
    said = "found no connection (TimeoutError); trying again"
    assert any(said in event.text for event in events if isinstance(event, Note))
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

    with meanwhile(kill):
        found, _ = remotely(run_fake, site)
    assert found == expected


@long
def test_a_scheduler_that_does_not_come_back_ends_the_run_which_resumes(run_fake, site, expected, monkeypatch):
    monkeypatch.setattr(DaskExecutor, "patience", Patience(answer_s=2, workers_s=3, look_s=0.05))
    site.worker(FAKE_S="0.05")

    def gone(event):
        if isinstance(event, CellDone):
            site.end()

    with pytest.raises(LabError, match="found no scheduler for 3 s"):
        remotely(run_fake, site, listeners=[gone])
    monkeypatch.setattr(DaskExecutor, "patience", Patience(look_s=0.05))
    site.scheduler()
    site.worker()
    result = run_fake(overrides=MANY, cluster=site.address)
    assert files(result.folder) == expected


@long
@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_client_resumes(run_fake, site, expected, tmp_path, seed):
    moment = random.Random(seed).randrange(1, CELLS)
    site.worker(FAKE_S="0.05")
    client = start_client(site, tmp_path, "runs")
    wait(lambda: len(site.ran()) >= moment)
    client.kill()
    client.wait()
    result = run_fake(overrides=MANY, cluster=site.address)
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
    result = run_fake(overrides=MANY, cluster=site.address)
    assert files(result.folder) == expected
    assert before < CELLS


@long
def test_two_clients_share_workers(run_fake, site, expected, tmp_path):
    site.worker()
    site.worker()
    other = start_client(site, tmp_path, "other")
    found, _ = remotely(run_fake, site)
    assert other.wait(LIMIT_S) == 0
    (run,) = (tmp_path / "other").iterdir()
    assert found == expected == files(run)


@long
@pytest.mark.parametrize("cut_off", ["worker", "client", "scheduler"])
def test_a_minute_without_answers_costs_time_only(run_fake, site, expected, cut_off):
    """The network of a worker or of the client is cut, or the scheduler is stopped."""
    network, scheduler = CutNetwork(int(site.address.rpartition(":")[2])), site.processes[0]
    direct, site.address = site.address, network.address if cut_off == "worker" else site.address
    site.worker(FAKE_S="0.3")
    site.address = network.address if cut_off == "client" else direct
    stop, go = network.cut, network.mend
    if cut_off == "scheduler":
        stop, go = (partial(scheduler.send_signal, one) for one in (signal.SIGSTOP, signal.SIGCONT))

    def cut():
        wait(lambda: len(site.ran()) >= 2)
        stop()
        threading.Event().wait(CUT_S)
        go()

    began = time.monotonic()
    with meanwhile(cut):
        found, _ = remotely(run_fake, site)
    assert (network.connections > 0) == (cut_off != "scheduler")
    network.close()
    assert found == expected
    assert time.monotonic() - began > CUT_S
