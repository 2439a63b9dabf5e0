"""`python -m tools.build`: `images [--from WHEEL]` builds what engines need, or takes it from a wheel first (wheel.py),
and prints the time of each step; `programs FOLDER` makes the programs of node images.

A maintainer's: `pin` and `published` (pin.py), `pack FOLDER [--without-appliance]` (pack.py).
"""

from __future__ import annotations

import argparse
import platform
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from scpslab.core.errors import INTERRUPTED_EXIT, ScpslabError
from scpslab.setup import cache_dir, ensure, ensure_stack, ensure_tools
from scpslab.setup.images import PARTS, compare, find, timings, writing
from tools.build.pack import pack
from tools.build.pin import pin, publish
from tools.build.wheel import take


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.build",
        description="Builds what engines need; pins versions, publishes hashes and packs parts.",
    )
    works = parser.add_subparsers(dest="work", required=True)
    building = works.add_parser("images", help="build the parts that are missing")
    building.add_argument("--from", dest="wheel", type=Path, help="take them first from this wheel, or this folder's")
    making = works.add_parser("programs", help="make the programs of node images")
    making.add_argument("folder", type=Path, help="where they go")
    works.add_parser("pin", help="write the versions that the mirror has today into the recipes")
    works.add_parser("published", help="write the hashes of the parts that are built here")
    packing = works.add_parser("pack", help="build the parts that a wheel carries, and pack them")
    packing.add_argument("folder", type=Path, help="where they go; it is emptied")
    packing.add_argument("--without-appliance", action="store_true", help="for machines of x86-64 that allow ptrace")
    return parser.parse_args()


def attempt(work: Callable[[], None]) -> int:
    """Does some work of building; returns the exit code of the error, if there is one."""
    # Ended in whatever way, a build first ends its programs.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        work()
    except ScpslabError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted: finished parts are kept; repeat the command to build the others", file=sys.stderr)
        return INTERRUPTED_EXIT
    return 0


def say(text: str, /, *, is_under_way: bool = False) -> None:
    """Prints a line at once."""
    print(f"{text} …" if is_under_way else text, flush=True)


def _do(given: argparse.Namespace) -> None:
    match given.work:
        case "images":
            _images(given.wheel)
        case "programs":
            _programs(given.folder)
        case "pack":
            pack(given.folder, say, with_appliance=not given.without_appliance)
        case "pin":
            pin(say)
        case _:
            publish(say)


def _images(wheel: Path | None) -> None:
    for name in take(wheel, say) if wheel else ():
        say(f"{name}: the wheel has one of another recipe")
    present = {part.name for part in PARTS if find(part, cache_dir())}
    images = ensure(say)
    if len(present) < len(PARTS):
        Console().print(_table(present))
    print(f"images {images.hash}: lab kernel and guest are in {cache_dir()}")
    for part in PARTS:
        if verdict := compare(part, cache_dir()):
            print(verdict.text)


def _programs(folder: Path) -> None:
    """Makes a folder of the lab's programs that the Docker images of nodes contain."""
    tools, stack = ensure_tools(say), ensure_stack(say, platform.machine())
    with writing(folder):
        folder.mkdir(parents=True)
        for program in (tools / "labtool", tools / "iperf3-sleep.so", stack.path):
            shutil.copy2(program, folder)


def _table(present: set[str]) -> Table:
    """The steps of every part with their wall time; for a part that existed already, the times of its build."""
    table = Table("part", "step", "wall s", "", box=None, pad_edge=False)
    for part in PARTS:
        for title, taken_s in timings(part, cache_dir()):
            table.add_row(part.title, title, f"{taken_s:.1f}", "earlier" if part.name in present else "now")
    return table


if __name__ == "__main__":
    arguments = _arguments()
    sys.exit(attempt(lambda: _do(arguments)))
