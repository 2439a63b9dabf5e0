"""`scpslab run` killed at any moment: the same command goes on with the same bytes; nothing is left."""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from scpslab.core.project import ROOT
from tests.lab.copied_tree import built_parts
from tests.lab.forks import left_after_a_while
from tests.lab.ran import digests

MOMENTS = int(os.environ.get("SCPSLAB_RUN_KILLS", "4"))
LIMIT_S = 500


class Runs:
    """Runs of three cells with a cache of results of their own; what is built is that of the user."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, built_parts(folder / "cache", without=("results",))

    def start(self, out: str) -> subprocess.Popen[bytes]:
        argv = [ROOT / "scpslab", "run", "links/transfer", "--set", "workloads.transfer.size=20 kB"]
        argv += ["--out", self.folder / out]
        environment = os.environ | {"SCPSLAB_CACHE": str(self.cache)}
        return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, out: str) -> tuple[int, str]:
        process = self.start(out)
        _, said = process.communicate(timeout=LIMIT_S)
        return process.returncode, said.decode()

    def forget_results(self) -> None:
        """Empties the cache of results, so that cells are run and not taken from it."""
        (self.cache / "results").rename(self.folder / f"results-{len(list(self.folder.iterdir()))}")

    def files(self, out: str) -> dict[str, str]:
        """Digests of cells and table."""
        (run,) = (self.folder / out).iterdir()
        return digests(run, ["cells", "results.csv"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("kills"))


@pytest.fixture(scope="module")
def undisturbed(runs):
    """An undisturbed run: what it made, and how long it took."""
    runs.run("first")
    runs.forget_results()
    started = time.monotonic()
    code, said = runs.run("undisturbed")
    assert code == 0, said
    return runs.files("undisturbed"), time.monotonic() - started


@pytest.mark.parametrize("seed", range(MOMENTS))
def test_a_killed_run_goes_on_with_the_same_bytes(runs, undisturbed, seed):
    files, took_s = undisturbed
    if (runs.cache / "results").exists():
        runs.forget_results()
    process = runs.start(f"killed-{seed}")
    try:
        process.wait(timeout=random.Random(seed).uniform(0.1, 0.95) * took_s)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate(timeout=LIMIT_S)
    # Templates and forks end with the process that they serve, before anybody looks for them.
    assert left_after_a_while(runs.folder) == {}

    code, said = runs.run(f"killed-{seed}")

    assert code == 0, said
    assert runs.files(f"killed-{seed}") == files
    assert list(Path("/dev/shm").glob(f"scpslab-{process.pid}-*")) == []
    assert list((runs.folder / f"killed-{seed}").rglob("*.part")) == []
    assert [path.name for path in (runs.cache / "results").iterdir() if path.name.startswith("scpslab-")] == []


def test_two_runs_into_one_folder_do_not_touch_each_other(runs, undisturbed):
    files, _ = undisturbed
    runs.forget_results()
    pair = [runs.start("pair"), runs.start("pair")]
    said = [process.communicate(timeout=LIMIT_S)[1].decode() for process in pair]

    codes = sorted(process.returncode for process in pair)
    assert codes in ([0, 2], [0, 0]), said
    if codes == [0, 2]:
        assert any("expected one run at a time in a folder" in text for text in said)
    assert runs.files("pair") == files
