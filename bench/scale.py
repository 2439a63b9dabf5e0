"""What many cells cost besides their labs. `python bench/scale.py PART …`; every part says what it measures.

The cells are made by an engine that starts no lab (tests/data/fake_worker.py), so that only the program's own work is left. They may sleep instead.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

DATA = Path(__file__).parents[1] / "tests" / "data"
DASK = Path(sys.executable).with_name("dask")
RECOVERY_CELLS, RECOVERY_TRIES = 40, 3
DISPATCH_WORKERS = 1000
# A scenario may have no more (docs/scenario-reference.md).
REPEATS_MAX = 10_000


class Bench:
    """Runs of links/transfer with cells that sleep, each with its events' times."""

    def __init__(self, folder: Path, sleep_s: float) -> None:
        self.folder, self.seen = folder, list[tuple[float, object]]()
        # Workers are processes of their own, with the same engine.
        os.environ |= {"SCPSLAB_CACHE": str(folder), "FAKE_MEMORY": str(folder), "FAKE_S": str(sleep_s), "PYTHONPATH": str(DATA)}
        os.environ["DASK_DISTRIBUTED__WORKER__PRELOAD"] = "fake_worker"
        sys.path.insert(0, str(DATA))
        import fake_worker  # noqa: F401, PLC0415  # it reads the environment, and puts its engine in place

    def run(self, name: str, cells: int, *, listen: Callable[[object], None] = lambda event: None, **options: object) -> tuple[Path, float]:
        """The folder of a run, and its seconds with its planning."""
        from scpslab.running import RunOptions, run_scenario  # noqa: PLC0415

        self.seen.clear()
        began = time.monotonic()

        def seen(event: object) -> None:
            self.seen.append((time.monotonic() - began, event))
            listen(event)

        asked = RunOptions(**{"overrides": _of(cells), "jobs": 1, "use_cache": False, "out": self.folder / name} | options)  # type: ignore[arg-type]
        return run_scenario("links/transfer", asked, [seen]).folder, time.monotonic() - began

    def times(self, kind: str) -> list[float]:
        """When events of a kind came, in seconds since the run was asked for."""
        return [at for at, event in self.seen if type(event).__name__ == kind]


def main(part: str, *words: str) -> None:
    """Runs a part."""
    with tempfile.TemporaryDirectory() as folder:
        PARTS[part](Path(folder), *(words if part == "cost" else map(float, words)))


def overhead(folder: Path, cells: float = 1500) -> None:
    """Overhead CELLS: a cell with the local executor, in shards that are merged, and on workers of Dask."""
    from scpslab.running.merge import merge  # noqa: PLC0415
    from scpslab.running.shard import Shard  # noqa: PLC0415

    bench, number = Bench(folder, 0), int(cells)

    def run(name: str, **options: object) -> tuple[Path, float]:
        ran, _ = bench.run(name, number, **options)
        return ran, json.loads((ran / "manifest.json").read_text())["wall_s"]

    local, local_s = run("local")
    print(f"local:  {1000 * local_s / cells:.2f} ms a cell")
    shards = [run("shards", shard=Shard(one, 2)) for one in (1, 2)]
    began = time.monotonic()
    (merged,) = merge([ran for ran, _ in shards])
    merge_s = time.monotonic() - began
    shard_s = sum(seconds for _, seconds in shards)
    print(f"shards: {1000 * shard_s / cells:.2f} ms a cell, {shard_s / local_s:.2f} of local; merge {1000 * merge_s / cells:.2f} ms a cell")
    dask, dask_s = run("dask", executor="dask", cluster="local")
    first_s = bench.times("CellDone")[0] - bench.times("RunStarted")[0]
    rest_ms = 1000 * (bench.times("CellDone")[-1] - bench.times("CellDone")[0]) / cells
    print(f"dask:   {1000 * dask_s / cells:.2f} ms a cell, {dask_s / local_s:.2f} of local; first result after {first_s:.1f} s, then {rest_ms:.2f} ms a cell")
    print(f"memory: {_memory_mib():.0f} MiB for {number} cells")
    tables = {(ran / "results.csv").read_bytes() for ran in (local, merged, dask)}
    print("results.csv: the same bytes" if len(tables) == 1 else "results.csv: OTHER BYTES")


def dispatch(_: Path) -> None:
    """Dispatch: deciding alone, without connections: a thousand workers, whose batches end one after the other."""
    from scpslab.running.dispatch import Dispatch  # noqa: PLC0415

    for cells in (10**4, 10**5, 10**6):
        made = Dispatch({f"delay=1ms,r{number}": 0.7 for number in range(cells)})
        made.present({f"tcp://10.0.0.1:{number}": 1 for number in range(DISPATCH_WORKERS)})
        began, now_s, results = time.monotonic(), 0.0, 0
        out = made.give(now_s)
        while out:
            batch = out[results % len(out)]
            results += 1
            made.ended(batch.number, batch.cells)
            out[(results - 1) % len(out)] = out[-1]
            out[-1:] = made.give(now_s)
        took_us = 1e6 * (time.monotonic() - began)
        print(f"{cells} cells, {results} batches: {took_us / cells:.1f} µs a cell, {took_us / results:.0f} a batch")
    print(f"memory: {_memory_mib():.0f} MiB")


def workers(folder: Path, sleep_s: float = 1.0, cells_each: float = 40) -> None:
    """Workers SECONDS CELLS: cells that sleep so long, so many for each of 1, 2, 4 and 8 workers."""
    bench = Bench(folder, sleep_s)
    for number in (1, 2, 4, 8):
        cells = 3 * round(cells_each * number / 3)
        with _site(folder / f"site-{number}", number) as address:
            bench.run(f"w{number}", cells, executor="dask", cluster=address)
        _print_pace(bench, number, cells, sleep_s)


def many(folder: Path, cells: float = 10**5, number: float = 16, sleep_s: float = 0.05) -> None:
    """Many CELLS WORKERS SECONDS: as many sleeping cells as there are, from planning to merging; workers are tasks in one process."""
    from scpslab.running.merge import merge  # noqa: PLC0415
    from scpslab.running.shard import Shard  # noqa: PLC0415

    bench, count = Bench(folder, sleep_s), int(cells)
    with _site(folder / "site", int(number), processes=max(1, int(number) // 125)) as address:
        dask, _ = bench.run("dask", count, executor="dask", cluster=address)
    print(f"planned, and began: after {bench.times('RunStarted')[0]:.0f} s; first result after {bench.times('CellDone')[0]:.0f} s")
    _print_pace(bench, int(number), count, sleep_s)
    print(f"client: {_memory_mib():.0f} MiB", flush=True)
    # Results are in the store now.
    began = time.monotonic()
    shards = [bench.run("shards", count, shard=Shard(one, 2), use_cache=True)[0] for one in (1, 2)]
    print(f"two shards from the store: {1000 * (time.monotonic() - began) / cells:.2f} ms a cell", flush=True)
    began = time.monotonic()
    (merged,) = merge(shards)
    merge_s = time.monotonic() - began
    print(f"merge:  {merge_s:.0f} s, {1000 * merge_s / cells:.2f} ms a cell; memory {_memory_mib():.0f} MiB")
    same = (merged / "results.csv").read_bytes() == (dask / "results.csv").read_bytes()
    print("results.csv: the same bytes" if same else "results.csv: OTHER BYTES")


def plans(folder: Path, cells: float = 10**5) -> None:
    """Plans CELLS: planning and dividing alone."""
    from scpslab.running import RunOptions  # noqa: PLC0415
    from scpslab.running.parts import cut  # noqa: PLC0415
    from scpslab.running.runner import ScenarioRun  # noqa: PLC0415

    Bench(folder, 0)
    began = time.monotonic()
    made = ScenarioRun("links/transfer", RunOptions(overrides=_of(int(cells)), out=folder / "runs"))
    print(f"planned: {1000 * (time.monotonic() - began) / cells:.2f} ms a cell, {_memory_mib():.0f} MiB", flush=True)
    began = time.monotonic()
    sizes = sorted(len(part) for part in cut(made.plans, 1000))
    print(f"divided into 1000 shards of {sizes[0]} to {sizes[-1]} cells: {1000 * (time.monotonic() - began) / cells:.2f} ms a cell, {_memory_mib():.0f} MiB")


def cost(_: Path, runs: str) -> None:
    """Cost RUNS: for each scenario in a folder of runs, what `plan --cost` says before and after other runs, beside the seconds that its cells took."""
    from scpslab import plan as plans  # noqa: PLC0415
    from scpslab.planning import expected  # noqa: PLC0415
    from scpslab.runfolder import CellFiles, RunFolder  # noqa: PLC0415
    from scpslab.running.measured import Measured  # noqa: PLC0415

    print("| scenario | cells | took | plan alone | with runs of other scenarios |")
    totals = [0.0, 0.0, 0.0]
    for folder in sorted(RunFolder.all_in(Path(runs)), key=lambda one: one.path.name):
        took = folder.known_times()
        known = [plans.parse(CellFiles(folder.cell(cell).path).plan.read_bytes()) for cell in took]
        with tempfile.TemporaryDirectory() as others:
            base = str(folder.manifest()["scenario"]).partition(":")[0]
            for other in RunFolder.all_in(Path(runs)):
                if str(other.manifest()["scenario"]).partition(":")[0] != base:
                    (Path(others) / other.path.name).symlink_to(other.path.resolve())
            measured = Measured.of(Path(others))
            sums = [sum(took.values()), sum(expected(plan).wall_s for plan in known), sum(measured.wall_s("none", plan) for plan in known)]
        totals = [total + one for total, one in zip(totals, sums, strict=True)]
        if known:
            print(f"| {folder.manifest()['scenario']} | {len(known)} | {sums[0]:.0f} s | {sums[1]:.0f} s | {sums[2]:.0f} s |")
    print(f"| all | | {totals[0]:.0f} s | {totals[1]:.0f} s | {totals[2]:.0f} s |")


def recovery(folder: Path) -> None:
    """Recovery: seconds from kill -9 of the only worker, or of the scheduler, to the next result and to the end; what was killed is started again at once."""
    bench = Bench(folder, 0.2)
    for killed in ("worker", "scheduler"):
        for turn in range(RECOVERY_TRIES):
            _recover(bench, folder / f"{killed}-{turn}", killed)


def _recover(bench: Bench, folder: Path, killed: str) -> None:
    results: list[float] = []
    kills: list[float] = []

    def listen(event: object) -> None:
        if type(event).__name__ == "CellDone":
            results.append(time.monotonic())

    with _Site(folder) as site:
        site.scheduler()
        site.workers(1)

        def kill() -> None:
            while len(results) < RECOVERY_CELLS // 4:
                time.sleep(0.01)
            kills.append(time.monotonic())
            for process in site.processes if killed == "scheduler" else site.processes[-1:]:
                process.kill()
                process.wait()
            if killed == "scheduler":
                site.scheduler()
            site.workers(1)

        thread = threading.Thread(target=kill)
        thread.start()
        bench.run(folder.name, RECOVERY_CELLS, listen=listen, executor="dask", cluster=site.address)
        thread.join()
    # What had come by then is told a moment later.
    after = [at - kills[0] for at in results if at > kills[0] + 0.5]
    print(f"{killed} killed: next result after {after[0]:.1f} s, end after {after[-1]:.1f} s, with {len(after)} cells of 0.2 s", flush=True)


class _Site:
    """A scheduler of Dask and workers, as processes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.address = folder, ""
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.folder.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def scheduler(self) -> None:
        """A scheduler; a second one where the first was."""
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        port = self.address.rpartition(":")[2] or "0"
        self._start(
            [str(DASK), "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--dashboard-address", ":0", "--scheduler-file", str(file)]
        )
        while not (file.is_file() and file.read_text().rstrip().endswith("}")):
            time.sleep(0.02)
        self.address = json.loads(file.read_text())["address"]

    def workers(self, number: int) -> None:
        """A process with so many workers; it says when all are there."""
        process = self._start([sys.executable, __file__, "serve", self.address, str(number), str(self.folder)])
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"

    def _start(self, words: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            self.processes.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log))
        return self.processes[-1]


@contextmanager
def _site(folder: Path, number: int, processes: int | None = None) -> Iterator[str]:
    """So many workers in so many processes; None: each in its own."""
    with _Site(folder) as site:
        site.scheduler()
        count = processes or number
        for one in range(count):
            site.workers(number // count + (one < number % count))
        yield site.address


async def _serve(address: str, number: int, folder: str) -> None:
    from distributed import Worker  # noqa: PLC0415

    there = [await Worker(address, nthreads=1, memory_limit=0, local_directory=folder, dashboard=False) for _ in range(number)]
    print("ready", flush=True)
    await asyncio.gather(*(worker.finished() for worker in there))


def _print_pace(bench: Bench, number: int, cells: int, sleep_s: float) -> None:
    done = bench.times("CellDone")
    whole_s, least_s = done[-1] - bench.times("RunStarted")[0], cells * sleep_s / number
    print(
        f"{number} workers, {cells} cells of {sleep_s:g} s: {whole_s:.1f} s, {whole_s / least_s:.2f} of the least; "
        f"{1000 * whole_s / cells:.2f} ms a cell; half of them after {done[cells // 2] - bench.times('RunStarted')[0]:.0f} s",
        flush=True,
    )


def _of(cells: int) -> list[str]:
    """What makes links/transfer have so many cells: as few delays as its repeats allow, and three at least."""
    delays = max(3, -(-cells // REPEATS_MAX))
    return [f"sweep.delay=[{', '.join(f'{1 + number} ms' for number in range(delays))}]", f"repeats={cells // delays}"]


def _memory_mib() -> float:
    """This process's memory, at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


PARTS: dict[str, Callable[..., None]] = {part.__name__: part for part in (overhead, dispatch, workers, many, plans, recovery, cost)}

if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(_serve(sys.argv[2], int(sys.argv[3]), sys.argv[4]))
    elif len(sys.argv) < 2 or sys.argv[1] not in PARTS:
        sys.exit("usage: python bench/scale.py PART\n" + "\n".join(f"  {part.__doc__}" for part in PARTS.values()))
    else:
        main(*sys.argv[1:])
