"""Templates are shared while cells need them, replaced when they have ended, and dropped when there are too many. A
result's hash covers the code that makes a cell's input of its plan: the plan alone does not say where bit errors
fall. What is read of a lab's console: samples of a running cell. A program in the lab can write there whatever it
likes.
"""

import ast
import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from scpslab.cli.progress import ConsoleProgress
from scpslab.core.project import PACKAGE
from scpslab.engine.base import CellSample, Needs
from scpslab.engine.bundle import INPUT_PARTS, PARTS, bundle_hash, input_hash, sources
from scpslab.engine.console import read
from scpslab.engine.template import MOST_IDLE, Held, TemplatePool
from scpslab.engine.uml import no_network
from scpslab.engine.virtual import VirtualEngine
from scpslab.lab.loop import Epoch
from scpslab.lab.records import COPIES, LONGEST_LIVE, MOST_LIVE_BYTES, Live
from scpslab.running.events import CellProgress, RunInterrupted, RunStarted
from scpslab.setup import Images

NEEDED = 100


class FakeTemplate:
    """A template that boots when it is asked to, unless it cannot."""

    def __init__(self, boots=True):
        self.boots, self.memory_bytes, self.is_alive, self.is_closed = boots, None, True, False

    def boot(self, limit_s):
        self.memory_bytes = 1 if self.boots and self.is_alive else None

    def kill(self):
        self.is_alive = False

    def close(self):
        self.kill()
        self.is_closed = True


class Pool:
    """A pool, and all templates that were made for it."""

    def __init__(self, free_bytes=lambda: NEEDED):
        self.pool, self.made, self.given_back = TemplatePool(free_bytes), [], []

    def make(self, boots=True):
        template = FakeTemplate(boots)
        self.made.append(template)
        return Held(template, Path("/nowhere"), lambda: self.given_back.append(template))

    def use(self, key, boots=True):
        return self.pool.use(key, lambda: self.make(boots), 1.0, NEEDED)


@pytest.fixture
def pool():
    return Pool()


def test_cells_of_a_template_share_it(pool):
    with pool.use("a") as first, pool.use("a") as second:
        assert first is second
    with pool.use("a") as third:
        assert third is first
    assert len(pool.made) == 1


def test_one_that_has_ended_is_replaced_and_given_back(pool):
    with pool.use("a") as first:
        first.template.kill()
    with pool.use("a") as second:
        assert second is not first
    assert pool.given_back == [pool.made[0]]


def test_one_that_does_not_boot_is_its_first_cell_s_alone(pool):
    with pool.use("a", boots=False) as held:
        assert held.template.memory_bytes is None
        assert pool.given_back == []
    assert pool.given_back == pool.made
    with pool.use("a") as held:
        assert held.template.memory_bytes == 1


def test_the_one_used_longest_ago_goes_when_there_are_too_many(pool):
    keys = [f"t{number}" for number in range(MOST_IDLE)]
    for key in (*keys, keys[0]):
        with pool.use(key):
            pass
    with pool.use("one more"):
        pass

    assert pool.given_back == [pool.made[1]]


def test_those_that_wait_go_when_memory_is_short():
    pool = Pool(free_bytes=lambda: NEEDED - 1)
    with pool.use("used"):
        for key in ("a", "b"):
            with pool.use(key):
                pass

    assert pool.given_back == [pool.made[1]]


def test_closing_ends_all_and_gives_back_those_in_use_when_their_cells_have_noticed(pool):
    with pool.use("a"):
        pass
    with pool.use("b"):
        pool.pool.close()
        assert [template.is_alive for template in pool.made] == [False, False]
        assert pool.given_back == [pool.made[0]]
    assert pool.given_back == pool.made


def test_nothing_boots_after_a_stop(pool):
    pool.pool.stop()
    with pool.use("a") as held:
        assert held.template.memory_bytes is None
    assert pool.given_back == pool.made


# What these say is in the plan by then (the keys of scenarios), or only in messages.
OUTSIDE = ("documents", "core/errors.py", "core/folders.py", "core/scratch.py", "core/contents.py")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package in which modules can be changed."""
    folder = tmp_path_factory.mktemp("copy") / "scpslab"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def covered(parts):
    return sorted(
        file
        for part in parts
        for file in ((PACKAGE / part).rglob("*.py") if (PACKAGE / part).is_dir() else [PACKAGE / part])
    )


@pytest.mark.parametrize("file", covered(INPUT_PARTS), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_change_of_a_module_that_makes_inputs_is_another_hash(copy, file):
    before, changed = input_hash(copy), copy / file.relative_to(PACKAGE)
    changed.write_text(f"{changed.read_text()}\n# changed\n")

    assert input_hash(copy) != before


def test_every_module_that_vectors_are_made_with_is_covered():
    """Those of the lab program are in the bundle's hash."""
    known = {*covered(INPUT_PARTS), *covered(PARTS)}
    left = {
        file
        for file in imported_by(PACKAGE / "scenario" / "errors.py")
        if file not in known and not str(file.relative_to(PACKAGE)).startswith(OUTSIDE)
    }

    assert not left


def imported_by(first: Path):
    """The modules of the package that a module imports, and those that they import."""
    found, waiting = set(), [first]
    while waiting:
        for node in ast.walk(ast.parse(waiting.pop().read_text())):
            names = (
                [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                if isinstance(node, ast.ImportFrom) and node.module
                else []
            )
            for name in names:
                path = PACKAGE.parent.joinpath(*name.split("."))
                for file in (path.with_suffix(".py"), path / "__init__.py"):
                    if name != "scpslab" and file.is_file() and PACKAGE in file.parents and file not in found:
                        found.add(file)
                        waiting.append(file)
    return found


def test_an_engine_s_hash_covers_inputs_and_bundle(monkeypatch):
    small_plan = no_network({"wall_s": 1, "memory_mib": 64})

    def made(images):
        engine = VirtualEngine()
        engine._bundles = {needs: (Path(), bundle_hash(images, None)) for needs in [Needs.of(small_plan)]}
        return engine.hash(small_plan)

    images = Images(Path(), Path(), Path(), "parts")
    hashes = {made(images), made(Images(Path(), Path(), Path(), "other parts"))}
    monkeypatch.setattr("scpslab.engine.uml.input_hash", lambda: "other inputs")
    assert len(hashes | {made(images)}) == 3
    assert all(file.is_file() for file, _ in sources())


SOURCES = frozenset({"transfer", "queue-hop"})


def line(text: str) -> bytes:
    return f"\x1e{text}".encode()


def test_a_line_of_the_live_stream_is_a_sample():
    started = CellSample(1.5, "transfer", {"state": "started"})
    assert read(line('{"source": "transfer", "t_s": 1.5, "state": "started"}'), SOURCES) == started
    waits = CellSample(0, "queue-hop", {"bytes": 7, "rate": None})
    assert read(line('{"source": "queue-hop", "t_s": 0, "bytes": 7, "rate": null}\r'), SOURCES) == waits


@pytest.mark.parametrize(
    "said",
    [
        b'{"source": "transfer", "t_s": 1}',
        b'x\x1e{"source": "transfer", "t_s": 1}',
        *map(line, ["", "{", "[" * 2000, '["source", "t_s"]', '{"source": "transfer"}', '{"t_s": 1}']),
        *(line(f'{{"source": {source}, "t_s": 1}}') for source in ('"somebody"', '["transfer"]')),
        *(
            line(f'{{"source": "transfer", "t_s": {t_s}}}')
            for t_s in ("true", '"1"', "-1", "1e300", "NaN", '1, "t_s": 2')
        ),
        *(
            line(f'{{"source": "transfer", "t_s": 1, {value}}}')
            for value in (
                *('"bytes": Infinity', f'"bytes": 1{"0" * 1000}', '"bytes": [1]', '"bytes": false', '"by tes": 1'),
                *('"state": "\\u001b[2J"', '"state": "\\u202e"', f'"state": "{"x" * 61}"'),
            )
        ),
        line('{"source": "transfer", "t_s": 1}' + " " * LONGEST_LIVE),
        b'\x1e{"source": "transfer", "t_s": 1, "state": "\xff"}',
    ],
)
def test_a_line_that_the_lab_does_not_write_is_no_sample(said):
    assert read(said, SOURCES) is None


class Awake:
    """A loop that sleeps when it is told to."""

    def __init__(self):
        self.calls = []

    def before_sleep(self, call):
        self.calls.append(call)

    def sleep(self):
        while self.calls:
            self.calls.pop()(10**9)


def test_the_stream_has_an_end_and_grows_thin(capsys):
    """At most a record a second; each further 128 of a source are twice as far apart; 1 MiB in all."""
    live = Live(loop := Awake(), Epoch())
    for t_s in range(10 * COPIES):
        for _ in range(2):
            live.copy("queue-hop", {"t_s": t_s, "bytes": 1})
        live.copy("queue-hop", {"t_s": t_s + 0.5, "bytes": 1})
        if t_s % 2:
            loop.sleep()
    told = [read(said.encode(), SOURCES).t_s for said in capsys.readouterr().out.split("\n")[:-1]]
    assert told[: 2 * COPIES : 2] == list(range(COPIES))
    assert told[1 : 2 * COPIES : 2] == list(range(COPIES))
    assert len(told) == 2 * (COPIES + COPIES + COPIES + COPIES // 8 * 3)

    live = Live(loop, Epoch())
    live.copy("transfer", {"t_s": 1, "state": "x" * LONGEST_LIVE})
    for number in range(2 * MOST_LIVE_BYTES // 1000):
        live.copy(str(number), {"t_s": 1, "state": "x" * 1000})
        loop.sleep()
    assert MOST_LIVE_BYTES - 1100 < len(capsys.readouterr().out) <= MOST_LIVE_BYTES


def test_the_bar_shows_how_far_a_cell_is(tmp_path):
    console = Console(force_terminal=True, width=200, file=io.StringIO())
    shown = ConsoleProgress(console)
    shown(RunStarted("test", tmp_path, "virtual", ("r1",)))
    shown(CellProgress("r1", CellSample(41.2, "tcp-ws1", {"bytes_acked": 1_200_000})))

    assert shown.bar.tasks[0].description == "r1 at 41 s, 1.2 MB acknowledged"
    shown(RunInterrupted("test", tmp_path))
