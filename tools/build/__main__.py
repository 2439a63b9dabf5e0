"""`python -m tools.build`: `take WHEEL` has the parts of a wheel (wheel.py) and builds the others, `programs FOLDER`
makes the programs of node images.

A maintainer's: `pin` and `published` (pin.py), `pack FOLDER [--without-appliance]` (pack.py).
"""

import argparse
import platform
import shutil
import sys
from pathlib import Path

from scpslab.setup import ensure_stack, ensure_tools
from scpslab.setup.__main__ import attempt, build, say
from scpslab.setup.images import writing
from tools.build.pack import pack
from tools.build.pin import pin, publish
from tools.build.wheel import take


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.build",
        description="Takes parts from a wheel, makes programs; pins versions, publishes hashes and packs parts.",
    )
    works = parser.add_subparsers(dest="work", required=True)
    taking = works.add_parser("take", help="take the parts of a wheel, and build the others")
    taking.add_argument("wheel", type=Path, help="a wheel, or the folder of the only one")
    making = works.add_parser("programs", help="make the programs of node images")
    making.add_argument("folder", type=Path, help="where they go; it must not be there yet")
    works.add_parser("pin", help="write the versions that the mirror has today into the recipes")
    works.add_parser("published", help="write the hashes of the parts that are built here")
    packing = works.add_parser("pack", help="build the parts that a wheel carries, and pack them")
    packing.add_argument("folder", type=Path, help="where they go; it is emptied")
    packing.add_argument("--without-appliance", action="store_true", help="for machines of x86-64 that allow ptrace")
    return parser.parse_args()


def _do(given: argparse.Namespace) -> None:
    match given.work:
        case "take":
            for name in take(given.wheel, say):
                say(f"{name}: the wheel has one of another recipe")
            build()
        case "programs":
            _programs(given.folder)
        case "pack":
            pack(given.folder, say, with_appliance=not given.without_appliance)
        case "pin":
            pin(say)
        case _:
            publish(say)


def _programs(folder: Path) -> None:
    """Makes a folder of the lab's programs that the Docker images of nodes contain."""
    tools, stack = ensure_tools(say), ensure_stack(say, platform.machine())
    with writing(folder):
        folder.mkdir(parents=True)
        for program in (tools / "labtool", tools / "iperf3-sleep.so", stack.path):
            shutil.copy2(program, folder)


if __name__ == "__main__":
    arguments = _arguments()
    sys.exit(attempt(lambda: _do(arguments)))
