"""`python -m scpslab.setup`: builds everything that engines need and prints the time of each step.

`--programs FOLDER`: only the programs of node images.

`--from WHEEL`: takes them from a wheel first, for a clone on a machine that cannot build them (arm64) or that saves the
minutes.
"""

from __future__ import annotations

import signal
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import NoReturn

from rich.console import Console
from rich.table import Table

from scpslab.core.errors import INTERRUPTED_EXIT, ScpslabError, UsageError
from scpslab.core.project import PARTS_INDEX
from scpslab.core.scratch import scratch
from scpslab.setup import Say, cache_dir, ensure, packed
from scpslab.setup.images import (
    CARRIED,
    PARTS,
    compare,
    ensure_programs,
    find,
    place,
    recipe_hash,
    timings,
    unpack,
)

# Where a wheel has them (tools/wheel_parts.py).
INSIDE = PurePosixPath("scpslab", "project_files", "parts")
EXPECTED = "expected a wheel of scpslab that carries built parts. Make one on an x86-64 machine: make wheel."


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


def _main() -> None:
    if sys.argv[1:2] == ["--programs"] and len(sys.argv) == 3:
        ensure_programs(Path(sys.argv[2]), say)
        return
    if sys.argv[1:2] == ["--from"] and len(sys.argv) == 3:
        for name in take(Path(sys.argv[2]), say):
            say(f"{name}: the wheel has one of another recipe")
    present = {part.name for part in PARTS if find(part, cache_dir())}
    images = ensure(say)
    if len(present) < len(PARTS):
        Console().print(_table(present))
    print(f"images {images.hash}: lab kernel and guest are in {cache_dir()}")
    for part in PARTS:
        if verdict := compare(part, cache_dir()):
            print(verdict.text)


def _table(present: set[str]) -> Table:
    """The steps of every part with their wall time; for a part that existed already, the times of its build."""
    table = Table("part", "step", "wall s", "", box=None, pad_edge=False)
    for part in PARTS:
        for title, taken_s in timings(part, cache_dir()):
            table.add_row(part.title, title, f"{taken_s:.1f}", "earlier" if part.name in present else "now")
    return table


def take(given: Path, say: Say) -> list[str]:
    """Puts the parts of a wheel, or of the only wheel in a folder, into the cache.

    Returns the names of those whose recipes are other ones in this clone.

    Raises:
        UsageError: there is no such wheel, it carries no parts, or none of them has a recipe of this clone.
        CapabilityError: a part is damaged, or the cache cannot take it.
    """
    wheel = _wheel(given)
    others: list[str] = []
    with scratch() as folder:
        _extract(wheel, folder)
        index = packed.index(folder)
        for part in CARRIED:
            own = index.get(part.name)
            if own is None:
                continue
            if own.recipe != recipe_hash(part):
                others.append(part.name)
            elif not (place(part, cache_dir()) / part.product).exists():
                unpack(part, own, folder, cache_dir(), say)
    if len(others) == len(index):
        raise UsageError(
            f"{wheel}: found parts of other recipes only; expected those of this clone. "
            "Make the wheel from the same commit."
        )
    return others


def _wheel(given: Path) -> Path:
    if not given.is_dir():
        return given
    found = sorted(given.glob("scpslab-*.whl"))
    if len(found) != 1:
        raise UsageError(f"{given}: found {len(found)} wheels; {EXPECTED}")
    return found[0]


def _extract(wheel: Path, folder: Path) -> None:
    """Extracts the packed parts, and nothing else, whatever names the archive has."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if PurePosixPath(name).parent == INSIDE]
            for name in names:
                with archive.open(name) as data, (folder / PurePosixPath(name).name).open("wb") as copy:
                    while block := data.read(1 << 20):
                        copy.write(block)
    except (OSError, zipfile.BadZipFile) as error:
        _refuse(wheel, str(error), error)
    if str(INSIDE / PARTS_INDEX.name) not in names:
        _refuse(wheel, "no built parts", None)


def _refuse(wheel: Path, found: str, cause: Exception | None) -> NoReturn:
    raise UsageError(f"{wheel}: found {found}; {EXPECTED}") from cause


if __name__ == "__main__":
    sys.exit(attempt(_main))
