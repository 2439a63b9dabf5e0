"""What many cells cost besides their labs. `python bench/scale.py PART …`; every part says what it measures.

The cells are made by an engine that starts no lab (tools/no_lab.py), so that only the program's own work is
left.
"""

import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
# A scenario may have no more (docs/scenario-reference.md).
REPEATS_MAX = 10_000


class Bench:
    """Runs of links/transfer with cells without labs, each with its events' times."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seen = folder, list[tuple[float, object]]()
        os.environ |= {"SCPSLAB_CACHE": str(folder), "NO_LAB_MEMORY": str(folder)}
        sys.path.insert(0, str(ROOT))
        import tools.no_lab  # noqa: F401, PLC0415  # it reads the environment, and puts its engine in place

    def run(self, name: str, cells: int, **options: object) -> tuple[Path, float]:
        """The folder of a run, and its seconds with its planning."""
        from scpslab.running import RunOptions, run_scenario  # noqa: PLC0415

        self.seen.clear()
        began = time.monotonic()

        def seen(event: object) -> None:
            self.seen.append((time.monotonic() - began, event))

        asked = RunOptions(
            **{"overrides": _of(cells), "jobs": 1, "use_cache": False, "out": self.folder / name} | options
        )  # type: ignore[arg-type]
        return run_scenario("links/transfer", asked, [seen]).folder, time.monotonic() - began

    def times(self, kind: str) -> list[float]:
        """When events of a kind came, in seconds since the run was asked for."""
        return [at for at, event in self.seen if type(event).__name__ == kind]


def main(part: str, *words: str) -> None:
    """Runs a part."""
    with tempfile.TemporaryDirectory() as folder:
        PARTS[part](Path(folder), *(map(float, words) if part == "plans" else words))


def overhead(folder: Path, cells: str = "1500", cluster: str = "") -> None:
    """Overhead CELLS [ADDRESS]: a cell on this machine, taken from the results that were kept, and on workers of Dask,
    which were started with --preload tools.no_lab, PYTHONPATH of this clone and a folder as NO_LAB_MEMORY.
    """
    bench, number = Bench(folder), int(cells)
    print(f"What distributing costs ({number} cells without labs)")

    def run(name: str, **options: object) -> tuple[Path, float]:
        ran, _ = bench.run(name, number, **options)
        return ran, json.loads((ran / "manifest.json").read_text())["wall_s"]

    local, local_s = run("local")
    print(f"local:  {1000 * local_s / number:.2f} ms a cell")
    again, again_s = run("again", use_cache=True)
    print(f"again, from the results that were kept: {1000 * again_s / number:.2f} ms a cell")
    runs = [local, again]
    if cluster:
        dask, dask_s = run("dask", cluster=cluster)
        first_s = bench.times("CellDone")[0] - bench.times("RunStarted")[0]
        rest_ms = 1000 * (bench.times("CellDone")[-1] - bench.times("CellDone")[0]) / number
        print(
            f"dask:   {1000 * dask_s / number:.2f} ms a cell, {dask_s / local_s:.2f} of local; "
            f"first result after {first_s:.1f} s, then {rest_ms:.2f} ms a cell"
        )
        runs.append(dask)
    print(f"memory: {_memory_mib():.0f} MiB for {number} cells")
    tables = {(ran / "results.csv").read_bytes() for ran in runs}
    print("results.csv: the same bytes" if len(tables) == 1 else "results.csv: OTHER BYTES")


def plans(folder: Path, cells: float = 10**5) -> None:
    """Plans CELLS: planning alone."""
    from scpslab.running import RunOptions, plan_run  # noqa: PLC0415

    Bench(folder)
    print(f"What planning costs ({int(cells)} cells)")
    began = time.monotonic()
    plan_run("links/transfer", RunOptions(overrides=_of(int(cells)), out=folder / "runs"))
    print(f"planned: {1000 * (time.monotonic() - began) / cells:.2f} ms a cell, {_memory_mib():.0f} MiB")


def cost(_: Path, runs: str) -> None:
    """Cost RUNS: for each scenario in a folder of runs, what `plan --cost` says, beside the seconds that its cells
    took.
    """
    from scpslab import plan as plans  # noqa: PLC0415
    from scpslab.runs import CellFiles, RunFolder  # noqa: PLC0415
    from scpslab.scenario.planning import expected  # noqa: PLC0415

    print("| scenario | cells | took | by the plans |")
    totals = [0.0, 0.0]
    for folder in sorted(RunFolder.all_in(Path(runs)), key=lambda one: one.path.name):
        manifest = folder.manifest()
        known = [plans.parse(CellFiles(folder.cell(cell).path).plan.read_bytes()) for cell in manifest.took_s]
        sums = [sum(manifest.took_s.values()), sum(expected(plan).wall_s for plan in known)]
        totals = [total + one for total, one in zip(totals, sums, strict=True)]
        if known:
            print(f"| {manifest.scenario} | {len(known)} | {sums[0]:.0f} s | {sums[1]:.0f} s |")
    print(f"| all | | {totals[0]:.0f} s | {totals[1]:.0f} s |")


def results(folder: Path, run: str, cells: str = "8000") -> None:
    """Results RUN [CELLS]: a run of links/transfer whose cells have the packets of those of RUN: taken from the store,
    then its table derived from captures, and again from kept rows.
    """
    from scpslab import plan as plans  # noqa: PLC0415
    from scpslab.analysis.table import read_results  # noqa: PLC0415
    from scpslab.running import RunOptions, plan_run  # noqa: PLC0415
    from scpslab.runs import CellFiles, RunFolder  # noqa: PLC0415
    from scpslab.runs.store import cell_key, own_store  # noqa: PLC0415

    bench, number = Bench(folder), int(cells)
    planned = plan_run("links/transfer", RunOptions(overrides=_of(number), out=folder / "runs")).plans
    donors = [cell.path for cell in RunFolder(Path(run)).planned_cells()]
    for index, plan in enumerate(planned.values()):
        made = folder / "made"
        shutil.copytree(donors[index % len(donors)], made)
        CellFiles(made).plan.write_text(plans.text(plan))
        own_store().keep(cell_key(plan, "no lab"), made)
        shutil.rmtree(made)
    ran, ran_s = bench.run("runs", number, use_cache=True)
    taken_s = bench.times("CellDone")[-1]
    print(f"planned and taken from the store: {taken_s:.1f} s, {1000 * taken_s / number:.2f} ms a cell")
    print(
        f"table from captures: {ran_s - taken_s:.1f} s, {1000 * (ran_s - taken_s) / number:.2f} ms a cell", flush=True
    )
    table = (ran / "results.csv").read_bytes()
    (ran / "results.csv").unlink()
    began = time.monotonic()
    read_results(ran)
    print(
        f"table from rows: {time.monotonic() - began:.1f} s, {1000 * (time.monotonic() - began) / number:.2f} ms a cell"
    )
    print("the same bytes" if (ran / "results.csv").read_bytes() == table else "OTHER BYTES")


def _of(cells: int) -> list[str]:
    """What makes links/transfer have so many cells: as few delays as its repeats allow, and three at least."""
    delays = max(3, -(-cells // REPEATS_MAX))
    return [f"sweep.delay=[{', '.join(f'{1 + number} ms' for number in range(delays))}]", f"repeats={cells // delays}"]


def _memory_mib() -> float:
    """This process's memory, at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


PARTS: dict[str, Callable[..., None]] = {part.__name__: part for part in (overhead, plans, cost, results)}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in PARTS:
        sys.exit("usage: python bench/scale.py PART\n" + "\n".join(f"  {part.__doc__}" for part in PARTS.values()))
    else:
        main(*sys.argv[1:])
