"""What unit tests share. None starts a process: what needs one is in tests/processes, or is tested without it."""

import importlib.util
import json
import multiprocessing.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from scpslab.cli import app
from scpslab.core import installation
from scpslab.running import RunOptions, run_scenario

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
PROGRAM = DATA / "run_with_fake_engine.py"
# Events of Python that precede a process (docs.python.org/3/library/audit_events.html).
STARTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn", "subprocess.Popen"}
# matplotlib asks for the fonts of a machine once.
FONTS = "fc-list"


class Guard:
    """Refuses processes while a test of this folder runs."""

    is_on = False

    def __init__(self) -> None:
        sys.addaudithook(self.look)

    def look(self, event: str, arguments: tuple) -> None:
        if self.is_on and event in STARTS and arguments[:1] != (FONTS,):
            self.refuse(event, *arguments)

    @staticmethod
    def refuse(*what: object) -> None:
        pytest.fail(f"{what}: found a process; expected none in tests/unit. Move the test to tests/processes.")


GUARD = Guard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """For fixtures of all scopes too."""
    GUARD.is_on = item.path.is_relative_to(HERE)
    try:
        return (yield)
    finally:
        GUARD.is_on = False


@pytest.fixture(autouse=True)
def without_processes(monkeypatch):
    """A run asks git for no commit; multiprocessing starts nothing behind Python's back."""
    monkeypatch.setattr(installation, "_git", lambda root, *words: None)
    monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", GUARD.refuse)
    yield
    installation.commit.cache_clear()


@pytest.fixture
def in_this_process(monkeypatch):
    """Work on what strangers have written is done here: tests/processes/test_limited.py tests the child."""
    monkeypatch.setattr("scpslab.running.verify.limited", lambda work, limits: json.loads(json.dumps(work())))


@pytest.fixture
def scpslab(monkeypatch, capsys):
    """Runs a command line; gives exit code, standard output and standard error."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["scpslab", *map(str, words)])
        code = 0
        try:
            app.main()
        except SystemExit as stopped:
            code = stopped.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """The generator of synthetic runs (tests/data/synthetic_run.py)."""
    spec = importlib.util.spec_from_file_location("synthetic_run", DATA / "synthetic_run.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run_dir(tmp_path: Path, synthetic: ModuleType) -> Path:
    """A run of two stacks, three BERs and two repeats, one cell incomplete."""
    return synthetic.write_run(tmp_path / "fig04-golden-0002")


@pytest.fixture
def golden(tmp_path: Path, synthetic: ModuleType) -> Path:
    """A run with the committed table, which must not change without a reason."""
    folder: Path = synthetic.write_run(tmp_path / "golden" / "fig04-golden-0001")
    shutil.copyfile(DATA / "fig04-golden.csv", folder / "results.csv")
    return folder


@pytest.fixture
def run_fake(monkeypatch, tmp_path):
    """Runs a scenario (links/transfer) with the fake engine into tmp_path/runs; the cache is tmp_path/cache."""
    spec = importlib.util.spec_from_file_location("run_with_fake_engine", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.Fake.memory = tmp_path / "memory"
    module.Fake.memory.mkdir()
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("scpslab.running.runner.places", lambda: ())

    def run(name="links/transfer", *, repeats: bool = True, run=run_scenario, listeners=(), **options):
        monkeypatch.setattr(module.Fake, "deterministic", repeats)
        monkeypatch.setitem(run_scenario.__globals__["ENGINES"], "virtual", module.Fake)
        return run(name, RunOptions(**({"out": tmp_path / "runs", "jobs": 1} | options)), listeners)

    return run
