"""`scpslab mn`: a Mininet script of the user's own, in virtual time. It runs in guests alone, never on this machine."""

from __future__ import annotations

import base64
import re
import shutil
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import Annotated

import typer

from scpslab.cli.options import choice, engine_choice, max_wall
from scpslab.cli.tables import plain_console, say_to
from scpslab.cli.terminal import warn
from scpslab.core import names, strict_json
from scpslab.core.contents import check_sizes
from scpslab.core.errors import FAILED_EXIT, INTERRUPTED_EXIT, ScenarioError, UsageError, harmless
from scpslab.core.scratch import scratch
from scpslab.documents.yaml_lines import text_of
from scpslab.engine import DEFAULT, ENGINES, CellRun, Engine
from scpslab.engine.base import Interrupted
from scpslab.lab.place import END_OF_SCRIPT
from scpslab.plan import Plan
from scpslab.plan.cell import LONGEST_S
from scpslab.plan.mininet import MOST_FILE_BYTES, MOST_FILES, Described, MininetScript, ScriptFile, Test
from scpslab.plan.values import LONGEST_LABEL, LONGEST_TEXT
from scpslab.runs import CellFiles
from scpslab.scenario.planning.mininet import EMPTY, plan_of

# Whoever wrote a script can do nothing to this machine.
GUESTS = {name: engine for name, engine in ENGINES.items() if not engine.reach}
ENGINE = engine_choice(GUESTS, "Engine to run it in (on the wall clock, CLI(net) is at your terminal)")
# The first run only builds objects; a script that computes for longer, or for ever, is ended.
FIRST_RUN_WALL_S = 60
# Of the files beside a script.
MOST_LOOKED_AT, HIDDEN = 2000, re.compile(r"(^|/)(\.|__)")
LARGEST_NETWORK_BYTES = MOST_SAID_BYTES = 1 << 20
TESTS: dict[str, Test] = {"cli": "cli", "pingall": "pingall", "iperf": "iperf"}


def mn(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGUMENTS")] = None,
    topo: str | None = None,
    test: Annotated[str, choice("--test", TESTS, "What to do with a topo: cli, pingall or iperf.")] = "cli",
    commands: Path | None = None,
    packages: str = "",
    engine: Annotated[str, ENGINE] = DEFAULT,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    wall_s: Annotated[int, max_wall("End the script after this time on the wall clock.")] = 1800,
    keep: Path | None = None,
) -> None:
    """Run your own Mininet script in virtual time.

    The script runs in a guest, never on this machine: first to say what its network is, then on that network.
    "scpslab docs mininet" has a table of Mininet's words and ours, and says what is not done.

    Examples: scpslab mn bottleneck.py · scpslab mn mytopo.py --topo mytopo,3 --test pingall · scpslab mn net.py
    --engine live

    Options:
        script: A Python file that makes a Mininet network, or has topos.
        arguments: Its own, after --.
        topo: One of the file's topos, with its arguments: NAME[,ARGUMENTS].
        commands: The lines that CLI(net) reads in virtual time.
        packages: What nodes have besides, such as iptables,pypi:numpy==2.4.6
        seed: Losses and all other random numbers are drawn from it.
        keep: Keep the plan, the accounts of all links and the script's files in this new folder.
    """
    if keep and keep.exists():
        raise UsageError(f"--keep: found {keep}; expected a folder that is not there yet. Choose another name.")
    if topo is not None and not (0 < len(topo) <= LONGEST_LABEL and topo.isprintable()):
        expected = "expected one of the script's topos, with its arguments. Correct the option."
        raise UsageError(f"--topo: found {names.shown(topo)}; {expected}")
    asked = MininetScript(
        file=names.file_label(script.name),
        code=_text(script),
        topo=topo,
        test=TESTS[test],
        commands=_text(commands),
        described="",
        arguments=tuple(arguments or ()),
        files=_beside(script),
    )
    layers = tuple(filter(None, packages.split(",")))
    runner = GUESTS[engine]()
    with scratch() as folder:
        try:
            first = plan_of(EMPTY, asked, seed, FIRST_RUN_WALL_S, packages=layers)
            runner.prepare(say_to(plain_console(stderr=True)), [first])
            described = _described(runner, CellRun(first, folder / "first"), asked.file)
            for note in described.notes:
                warn(note)
            again = partial(plan_of, described, replace(asked, described=described.digest), seed, packages=layers)
            if runner.interactive:
                failed = _interact(runner, again(LONGEST_S, "mininet"), folder / "second")
            else:
                failed = _run(runner, CellRun(again(wall_s), folder / "second"), asked.file)
        finally:
            runner.close()
        if keep:
            check_sizes(folder / "second")
            shutil.copytree(folder / "second", keep)
    if failed:
        raise typer.Exit(FAILED_EXIT)


def _text(path: Path | None) -> str:
    """A file's text, which goes into the plan."""
    if path is None:
        return ""
    # A character has at most four bytes.
    text = text_of(path, f"a file with at most {LONGEST_TEXT} characters", 4 * LONGEST_TEXT)
    if len(text) > LONGEST_TEXT:
        expected = "expected at most that many, because a plan holds the text. Shorten the file."
        raise ScenarioError(f"{path}: found more than {LONGEST_TEXT} characters; {expected}")
    return text.replace("\r\n", "\n")


def _beside(script: Path) -> tuple[ScriptFile, ...]:
    """The files beside a script and below its folder, which come along up to a size."""
    looked_at = islice(script.parent.rglob("*"), MOST_LOOKED_AT)
    inner = {path: path.relative_to(script.parent) for path in looked_at if path.is_file() and not path.is_symlink()}
    # What --keep has kept, which says its plan, is not the script's.
    kept = tuple(f"{path.parent}/" for path, name in inner.items() if path.name == "plan.json")
    shown = [path for path, name in inner.items() if path != script and not HIDDEN.search(str(name))]
    shown = [path for path in shown if not str(path).startswith(kept)]
    found = {path: path.stat().st_size for path in sorted(shown)}
    smallest = sorted(found, key=found.__getitem__)[:MOST_FILES]
    sums = accumulate(found[path] for path in smallest)
    chosen = [path for path, total in zip(smallest, sums, strict=True) if total <= MOST_FILE_BYTES]
    if left := [names.shown(path.name) for path in found if path not in chosen]:
        warn(
            f"{len(left)} of {len(found)} files beside {script.name} do not come ({', '.join(left[:3])}); at most "
            f"{MOST_FILES} files and {MOST_FILE_BYTES >> 20} MiB do. Put the script into a folder of its own"
        )
    contents = {path: base64.b64encode(path.read_bytes()).decode() for path in chosen}
    return tuple(ScriptFile(path=str(inner[path]), content=content) for path, content in contents.items())


def _described(runner: Engine, cell: CellRun, file: str) -> Described:
    """The network that a script describes in its first run.

    Raises:
        ScenarioError: it describes none.
    """
    status = runner.run(cell)
    path = cell.folder / "network.json"
    if not path.is_file():
        reason = f" ({status.reason})" if status.reason else ""
        # Whatever the script or its guest said is more than is known here.
        if _say(cell.folder):
            expected = "expected a network. Correct what is said above."
            raise ScenarioError(f"{file}: found an end before there was a network{reason}; {expected}")
        advice = "Correct the script."
        raise ScenarioError(f"{file}: found no network and no word{reason}; expected Mininet(...), or topos. {advice}")
    with path.open("rb") as text:
        content = text.read(LARGEST_NETWORK_BYTES + 1)
    try:
        return Described.read(strict_json.loads(content))
    except ValueError as error:
        raise ScenarioError(f"{file}: the network: {error}. Correct the script.") from error


def _run(runner: Engine, cell: CellRun, file: str) -> bool:
    """Runs a script on its network, and shows what it said; returns whether it failed."""
    status = runner.run(cell)
    _say(cell.folder)
    if status.virtual_s is not None:
        typer.echo(f"{status.virtual_s:.1f} s of virtual time", err=True)
    if status.reason:
        warn(f"{file}: {status.reason}")
    return status.status != "completed"


def _interact(runner: Engine, plan: Plan, folder: Path) -> bool:
    """Runs a script at the terminal, on the wall clock; returns whether it failed."""
    with scratch() as work:
        try:
            return bool(runner.interact(plan, work, lambda _out: None))
        except Interrupted:
            raise typer.Exit(INTERRUPTED_EXIT) from None
        finally:
            if (work / "cell" / "out").is_dir():
                shutil.copytree(work / "cell" / "out", folder)


def _say(folder: Path) -> bool:
    """Prints what a script said, which the lab's console has; returns whether it said anything."""
    path = CellFiles(folder).log("console")
    if not path.is_file():
        return False
    with path.open("rb") as file:
        text = file.read(MOST_SAID_BYTES).decode(errors="replace").replace("\r", "")
    # What comes behind it is the kernel's.
    before, end, _ = text.rpartition(END_OF_SCRIPT)
    line = harmless(before if end else text).rstrip("\n")
    if line:
        typer.echo(line)
    if path.stat().st_size > MOST_SAID_BYTES:
        warn(f"found {path.stat().st_size} bytes of output; these are the first {MOST_SAID_BYTES}")
    return bool(line)
