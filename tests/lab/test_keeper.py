"""The user's keeper: commands that follow each other share templates, and whatever ends on the way costs no result."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scpslab.core.scratch import private_folder, remove_dead, scratch
from scpslab.engine import kept
from scpslab.engine.kept import end_keepers, sockets
from scpslab.engine.virtual import TEMPLATES
from scpslab.plan.cell import LONGEST_S
from scpslab.setup import cache_dir
from tests.lab.forks import Statuses, is_completed, meanwhile, plans_of, prepared, processes_in, run, seen
from tests.lab.ran import digests

KEEP_S = 60
PARTS = ("kernel", "guest", "tools", "stack", "boot", "lab")


@pytest.fixture
def place(tmp_path, monkeypatch) -> Iterator[Path]:
    """The folder for templates of a cache folder of the test's own, which has the built parts; no keeper is left."""
    built = cache_dir()
    with prepared(plans_of("fy97")):
        pass
    cache = tmp_path / "cache"
    cache.mkdir()
    for part in PARTS:
        for file in built.glob(f"{part}*"):
            (cache / file.name).symlink_to(file)
    monkeypatch.setenv("SCPSLAB_CACHE", str(cache))
    monkeypatch.setenv(kept.SETTING, str(KEEP_S))
    folder = cache / TEMPLATES
    yield folder
    end_keepers(folder)
    assert processes_in(tmp_path) == {}
    assert list(folder.glob("scpslab-*")) == []


@pytest.fixture
def plans(undisturbed):
    return dict(undisturbed.plans)


def pid_of(place: Path) -> int:
    """The process id of the only keeper."""
    (path,) = sockets(place)
    return int(path.parent.name.split("-")[1])


def templates_of(place: Path) -> list[Path]:
    """The folders of the keeper's templates."""
    return [folder for folder in place.glob("scpslab-*") if (folder / "home").is_dir()]


def kernels(place: Path) -> list[int]:
    """The lab kernels below a folder: templates, and forks."""
    return [pid for pid in processes_in(place) if b"linux" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]]


def commands(plans, folders: list[Path]) -> list[Statuses]:
    """What commands that follow each other do: each has an engine of its own."""
    found = []
    for folder in folders:
        with prepared(plans) as engine:
            found.append(run(engine, plans, folder, jobs=2))
            assert engine.templates() == []
    return found


def test_commands_that_follow_each_other_share_a_template(place, plans, undisturbed, tmp_path):
    """It waits meanwhile, in the keeper; the bytes are those of an undisturbed run, and `clean` ends it."""
    for number, statuses in enumerate(commands(plans, [tmp_path / "first", tmp_path / "second"])):
        assert is_completed(statuses, plans), statuses
        assert digests(tmp_path / ("first", "second")[number]) == undisturbed.files
    (template,) = templates_of(place)
    assert list((template / "cells").glob("*")) == []
    assert end_keepers(place) == 1
    assert end_keepers(place) == 0


def leave_nothing(keeper: int, place: Path) -> None:
    """Kills a keeper, and does what other commands do then, one after the other: its kernels are still about to end when
    the first of them looks.
    """
    os.kill(keeper, signal.SIGKILL)
    seen(lambda: [] if remove_dead(place) or list(place.glob(f"scpslab-{keeper}-*")) else [True])


@pytest.mark.parametrize("end", [lambda _, place: end_keepers(place), leave_nothing], ids=["told", "removed"])
@pytest.mark.parametrize("is_up", [False, True], ids=["booting", "running"])
def test_a_keeper_that_ends_takes_no_cell_with_it(place, plans, undisturbed, tmp_path, end, is_up):
    """Nor does a file of its folder that is missing then, or later, end the command."""
    with prepared(plans) as engine, meanwhile(engine, plans, tmp_path / "cells") as statuses:
        template = seen(lambda: templates_of(place))
        if is_up:
            seen(lambda: list((template / "cells").glob("*")))
        end(pid_of(place), place)
    assert is_completed(statuses, plans), statuses
    assert digests(tmp_path / "cells") == undisturbed.files


def test_a_template_that_does_not_come_up_is_told_of_before_its_folder_goes(place, plans, tmp_path, monkeypatch):
    """Also where the command takes its time to read it."""
    plan = replace(plans["c0"], cell=replace(plans["c0"].cell, limits=replace(plans["c0"].cell.limits, wall_s=0)))
    copied = shutil.copytree

    def slowly(*words: Any, **more: Any) -> Any:
        time.sleep(1)
        return copied(*words, **more)

    monkeypatch.setattr(shutil, "copytree", slowly)
    with prepared({"c0": plan}) as engine:
        statuses = run(engine, {"c0": plan}, tmp_path / "cells")
    assert "came before the network was up" in statuses["c0"]
    seen(lambda: [] if list(place.glob("scpslab-*/home")) or templates_of(place) else [True])


@pytest.mark.parametrize("kept_s", [KEEP_S, 0], ids=["in the keeper", "in the command"])
def test_the_longest_wall_limit_that_a_plan_may_have_can_be_waited_for(place, plans, tmp_path, monkeypatch, kept_s):
    monkeypatch.setenv(kept.SETTING, str(kept_s))
    cell = plans["c0"].cell
    plan = replace(plans["c0"], cell=replace(cell, limits=replace(cell.limits, wall_s=LONGEST_S)))
    with prepared({"c0": plan}) as engine:
        statuses = run(engine, {"c0": plan}, tmp_path / "cells")
    assert is_completed(statuses, ["c0"]), statuses


@pytest.mark.parametrize("victim", ["keeper", "template", "stopped keeper", "told"])
def test_what_ends_is_replaced_and_costs_no_cell(place, plans, undisturbed, tmp_path, victim, monkeypatch):
    """While two of its cells run."""
    monkeypatch.setattr(kept, "HELLO_LIMIT_S", 2.0)
    with prepared(plans) as engine, meanwhile(engine, plans, tmp_path / "cells") as statuses:
        template = seen(lambda: templates_of(place))
        seen(lambda: list((template / "cells").glob("*")))
        time.sleep(undisturbed.took_s / 10)
        keeper = pid_of(place)
        if victim == "told":
            assert end_keepers(place) == 1
        elif victim == "template":
            home = [pid for pid, folder in processes_in(template).items() if folder == str(template / "home")]
            for pid in home:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        elif victim == "keeper":
            os.kill(keeper, signal.SIGKILL)
    assert is_completed(statuses, plans), statuses
    assert digests(tmp_path / "cells") == undisturbed.files
    if victim == "stopped keeper":
        os.kill(keeper, signal.SIGSTOP)
        after = commands(plans, [tmp_path / "after"])
        os.kill(keeper, signal.SIGKILL)
        assert is_completed(after[0], plans)
    if victim != "template":
        seen(lambda: [] if Path(f"/proc/{keeper}").exists() else [True])
    # A later command removes what was left.
    with prepared(plans):
        pass


def test_a_command_that_is_killed_leaves_nothing_running(place, plans, tmp_path):
    """And its cell is not left in the template's folder; the template waits for others."""
    with prepared(plans) as engine:
        run(engine, {"c0": plans["c0"]}, tmp_path / "first")
    (template,) = templates_of(place)
    before = kernels(place)
    program = (
        "import sys; sys.path[:0] = [sys.argv[2]]\nfrom pathlib import Path\n"
        "from tests.lab.forks import *\nfrom tests.lab.forks import prepared, run\n"
        "plan = cells_like(next(iter(plans_of('fy97').values())), 1)\n"
        "with prepared(plan) as engine: run(engine, plan, Path(sys.argv[1]))\n"
    )
    root = Path(__file__).parents[2]
    command = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "killed"), str(root)], cwd=root)
    seen(lambda: list((template / "cells").glob("*")))
    seen(lambda: set(kernels(place)) - set(before) and [1])
    command.kill()
    command.wait()
    seen(lambda: [True] if set(kernels(place)) <= set(before) and not list((template / "cells").glob("*")) else [])
    with prepared(plans) as engine:
        assert is_completed(run(engine, {"c1": plans["c1"]}, tmp_path / "after"), ["c1"])
    assert templates_of(place) == [template]


def test_a_caller_that_reads_to_the_end_does_not_wait_for_the_keeper(place, plans, tmp_path):
    """It has none of the descriptors of the command that started it."""
    words = [sys.executable, "-m", "scpslab", "run", "links/loss:test", "--out", str(tmp_path / "runs")]
    began = time.monotonic()
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < KEEP_S
    keeper = pid_of(place)
    assert {str(path.readlink()) for path in Path(f"/proc/{keeper}/fd").iterdir() if path.name in "012"} == {
        "/dev/null"
    }
    assert os.getsid(keeper) != os.getsid(0)
    assert Path(f"/proc/{keeper}/cwd").readlink() == Path("/")


def test_commands_at_once_share_a_keeper(place, plans, undisturbed, tmp_path):
    """Both would start it; cells of the same names do not meet in the folder of their template."""
    with (
        prepared(plans) as first,
        prepared(plans) as second,
        meanwhile(first, plans, tmp_path / "a") as one,
        meanwhile(second, plans, tmp_path / "b") as other,
    ):
        pass
    assert is_completed(one, plans)
    assert is_completed(other, plans)
    assert digests(tmp_path / "a") == digests(tmp_path / "b") == undisturbed.files
    assert len(sockets(place)) == len(templates_of(place)) == 1


@pytest.mark.parametrize("obstacle", ["foreign file", "dead socket", "deaf socket"])
def test_what_does_not_answer_is_passed_over(place, plans, tmp_path, obstacle, monkeypatch):
    """Another keeper is started."""
    monkeypatch.setattr(kept, "HELLO_LIMIT_S", 2.0)
    with scratch(private_folder(place)) as left, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        if obstacle == "foreign file":
            (left / kept.name()).write_text("")
        else:
            with kept.opened(left) as folder:
                listener.bind(kept.address(folder, kept.name()))
        if obstacle == "deaf socket":
            listener.listen()
        assert is_completed(commands(plans, [tmp_path / "cells"])[0], plans)
        assert len(sockets(place)) == 2


@pytest.mark.parametrize("obstacle", ["file", "open to others"])
def test_a_place_that_is_not_the_user_s_alone_has_no_keeper(place, plans, tmp_path, obstacle):
    """The command has a template of its own, beside its cells."""
    if obstacle == "file":
        place.write_text("")
    else:
        place.mkdir(mode=0o755)
    with prepared(plans) as engine:
        assert is_completed(run(engine, {"c0": plans["c0"]}, tmp_path / "cells"), ["c0"])
        assert len(engine.templates()) == 1
    assert [path.name for path in (tmp_path / "cells").iterdir()] == ["c0"]


@pytest.mark.parametrize("mib", [30, 120, 180], ids=["for a template", "for a fork", "for what a fork uses"])
def test_memory_that_runs_out_fails_the_cell_and_no_other(place, plans, little_memory, tmp_path, mib):
    """The message says what to do, and the keeper goes on."""
    folder = little_memory(mib)
    with prepared(plans) as engine:
        first = run(engine, {"c0": plans["c0"]}, tmp_path / "cells")
        little_memory(1000)
        after = run(engine, {name: plans[name] for name in ("c1", "c2", "c3")}, tmp_path / "cells", jobs=2)
    if mib < 150:
        assert first["c0"].startswith("failed"), first
    assert first["c0"] == "completed" or "set SCPSLAB_MEMORY to a larger folder" in first["c0"]
    assert is_completed(after, ["c1", "c2", "c3"]), after
    assert end_keepers(place) == 1
    assert list(folder.iterdir()) == []


def test_without_its_folder_or_its_time_the_keeper_ends(place, plans, tmp_path, monkeypatch):
    """It is not missed."""
    monkeypatch.setenv(kept.SETTING, "1")
    with prepared(plans) as engine:
        run(engine, {"c0": plans["c0"]}, tmp_path / "cells")
    seen(lambda: [] if list(place.glob("scpslab-*")) else [True], 20)
    monkeypatch.setenv(kept.SETTING, str(KEEP_S))
    with prepared(plans) as engine:
        run(engine, {"c1": plans["c1"]}, tmp_path / "cells")
        keeper = pid_of(place)
        shutil.rmtree(place)
        assert is_completed(run(engine, {"c2": plans["c2"]}, tmp_path / "cells"), ["c2"])
    seen(lambda: [] if Path(f"/proc/{keeper}").exists() else [True], 20)
    assert json.loads((tmp_path / "cells" / "c2" / "status.json").read_text())["status"] == "completed"
