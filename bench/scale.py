"""What a cell costs besides its lab: with the local executor, in shards that are merged, and on a worker of Dask, in one run. `python bench/scale.py CELLS`.

The cells are made by an engine that starts no lab (tests/data/fake_worker.py), so that only the program's own work is left.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

DATA = Path(__file__).parents[1] / "tests" / "data"


def main(cells: int) -> None:
    """Prints seconds for each cell, and their ratio to the local executor's."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        # Workers are processes of their own, with the same engine.
        os.environ |= {"SCPSLAB_CACHE": folder, "FAKE_MEMORY": folder, "PYTHONPATH": str(DATA), "DASK_DISTRIBUTED__WORKER__PRELOAD": "fake_worker"}
        sys.path.insert(0, str(DATA))
        import fake_worker  # noqa: F401, PLC0415  # it reads the environment, and puts its engine in place

        from scpslab.running import RunOptions, run_scenario  # noqa: PLC0415
        from scpslab.running.events import CellDone, RunStarted  # noqa: PLC0415
        from scpslab.running.merge import merge  # noqa: PLC0415
        from scpslab.running.shard import Shard  # noqa: PLC0415

        times: dict[type, float] = {}

        def listen(event: object) -> None:
            times.setdefault(type(event), time.monotonic())

        def run(name: str, **options: object) -> tuple[Path, float]:
            times.clear()
            asked = RunOptions(overrides=[f"repeats={cells // 3}"], jobs=1, use_cache=False, out=out / name, **options)
            ran = run_scenario("links/transfer", asked, [listen]).folder
            return ran, json.loads((ran / "manifest.json").read_text())["wall_s"]

        local, local_s = run("local")
        print(f"local:  {1000 * local_s / cells:.2f} ms a cell")
        shards = [run("shards", shard=Shard(number, 2)) for number in (1, 2)]
        began = time.monotonic()
        (merged,) = merge([ran for ran, _ in shards])
        merge_s = time.monotonic() - began
        shard_s = sum(seconds for _, seconds in shards)
        print(f"shards: {1000 * shard_s / cells:.2f} ms a cell, {shard_s / local_s:.2f} of local; merge {1000 * merge_s / cells:.2f} ms a cell")
        dask, dask_s = run("dask", executor="dask", cluster="local")
        first_s = times[CellDone] - times[RunStarted]
        print(f"dask:   {1000 * dask_s / cells:.2f} ms a cell, {dask_s / local_s:.2f} of local; first result after {first_s:.1f} s")
        print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB for {cells} cells")
        tables = {(ran / "results.csv").read_bytes() for ran in (local, merged, dask)}
        print("results.csv: the same bytes" if len(tables) == 1 else "results.csv: OTHER BYTES")


if __name__ == "__main__":
    main(int(sys.argv[1]))
