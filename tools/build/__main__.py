"""`python -m tools.build`, a maintainer's: `pin` and `published` (pin.py), `pack FOLDER [--without-appliance]`
(pack.py).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scpslab.setup.__main__ import attempt, say
from tools.build.pack import pack
from tools.build.pin import pin, publish


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.build", description="Pins versions, publishes hashes and packs parts."
    )
    works = parser.add_subparsers(dest="work", required=True)
    works.add_parser("pin", help="write the versions that the mirror has today into the recipes")
    works.add_parser("published", help="write the hashes of the parts that are built here")
    packing = works.add_parser("pack", help="build the parts that a wheel carries, and pack them")
    packing.add_argument("folder", type=Path, help="where they go; it is emptied")
    packing.add_argument("--without-appliance", action="store_true", help="for machines of x86-64 that allow ptrace")
    return parser.parse_args()


def _do(given: argparse.Namespace) -> None:
    if given.work == "pack":
        pack(given.folder, say, with_appliance=not given.without_appliance)
    else:
        (pin if given.work == "pin" else publish)(say)


if __name__ == "__main__":
    arguments = _arguments()
    sys.exit(attempt(lambda: _do(arguments)))
