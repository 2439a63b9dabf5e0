"""A copy of the project with a made-up kind in it: what CONTRIBUTING's table of kinds is held against.

tests/data/new_kinds/<sort>/ holds what somebody would write who adds a kind of that sort: files at their places under
src/scpslab, and `lines.yaml`, the lines of registries, each behind a line that is there. `scenario.yaml` uses the kind.
`expected.yaml` says what then must be: `word`, the kind's name in the JSON schema; `misspelled`, an override that is
refused, and what is said of it; `files`, a text or a list of texts in each of some files of the cell; `columns`, values
in results.csv. An engine is named on the command line: `options` of `scpslab run`, and `misspelled` has such `words`.
"""

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from scpslab.setup import cache_dir

ROOT = Path(__file__).parents[2]
NEW_KINDS = ROOT / "tests" / "data" / "new_kinds"
SORTS = sorted(folder.name for folder in NEW_KINDS.iterdir() if folder.is_dir())
# Scenarios name kinds of every sort but engines.
OF_SCENARIOS = [sort for sort in SORTS if sort != "engine"]
# What a run reads of the project: the package, and what the package finds beside it.
COPIED = ("analysis", "images", "pyproject.toml", "scenarios", "src", "stack", "topologies")
NOT_COPIED = shutil.ignore_patterns("__pycache__", "target", "*.egg-info")
NO_SOURCE = ("lines.yaml", "scenario.yaml", "expected.yaml")
LIMIT_S = 300


@dataclass(frozen=True)
class NewKind:
    """A made-up kind of a sort, as its folder says."""

    sort: str

    @property
    def folder(self) -> Path:
        """Where it is described."""
        return NEW_KINDS / self.sort

    @property
    def scenario(self) -> Path:
        """The scenario that uses it."""
        return self.folder / "scenario.yaml"

    def alone(self, folder: Path) -> Path:
        """That scenario in another folder, where no folder `kinds` beside it brings the kind."""
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("kinds", "__pycache__"), dirs_exist_ok=True)
        return folder / "scenario.yaml"

    @property
    def sources(self) -> list[Path]:
        """Its files, by their place under src/scpslab."""
        files = (file for file in self.folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        return sorted(name for file in files if str(name := file.relative_to(self.folder)) not in NO_SOURCE)

    @property
    def lines(self) -> list[dict[str, str]]:
        """Its lines in registries: `file` under src/scpslab, the line `after` which it stands, `line`."""
        return list(yaml.safe_load((self.folder / "lines.yaml").read_text()) or [])

    @property
    def expected(self) -> dict[str, Any]:
        """What its scenario must come to."""
        return dict(yaml.safe_load((self.folder / "expected.yaml").read_text()))

    def untrue(self, run: Path) -> list[object]:
        """What is not in the one cell of a run folder, or its row of results, though the kind should have put it
        there.
        """
        (cell,) = (run / "cells").iterdir()
        files, columns = self.expected["files"], self.expected["columns"]
        texts = [(name, text) for name, said in files.items() for text in ([said] if isinstance(said, str) else said)]
        (row,) = csv.DictReader((run / "results.csv").read_text().splitlines())
        wanted = {"status": "completed", **columns}
        return [
            *[(name, text) for name, text in texts if text not in (cell / name).read_text()],
            *[(name, row.get(name)) for name, value in wanted.items() if row.get(name) != value],
        ]


class CopiedTree:
    """The project in a folder of its own, with a made-up kind."""

    def __init__(self, folder: Path, kind: NewKind) -> None:
        self.folder, self.package = folder, folder / "src" / "scpslab"
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=NOT_COPIED)
            else:
                shutil.copy2(ROOT / name, folder / name)
        for source in kind.sources:
            target = self.package / source
            assert not target.exists(), f"{kind.sort}: {source} is there already; a new kind is in files of its own"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(kind.folder / source, target)
        for entry in kind.lines:
            self.add_line(kind, **entry)

    def add_line(self, kind: NewKind, file: str, after: str, line: str) -> None:
        """Puts a line behind the one line of a file that reads `after`."""
        path = self.package / file
        lines = path.read_text().splitlines()
        found = lines.count(after)
        assert found == 1, (
            f"{kind.sort}/lines.yaml: found the line {after!r} {found} times in {file}; expected it once. "
            "Give a line of the registry as it is."
        )
        lines.insert(lines.index(after) + 1, line)
        path.write_text("\n".join(lines) + "\n")

    def python(self, *arguments: str, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the tests' Python with the copy's package; `cache` is where it keeps what it builds and finds."""
        environment = os.environ | {"PYTHONPATH": str(self.folder / "src"), "COLUMNS": "200"}
        if cache is not None:
            environment["SCPSLAB_CACHE"] = str(cache)
        argv = [sys.executable, *arguments]
        return subprocess.run(
            argv, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )

    def scpslab(self, *words: str, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
        """The copy's own command line."""
        return self.python("-m", "scpslab", *words, cache=cache)


def built_parts(cache: Path, without: Collection[str]) -> Path:
    """Makes a cache folder with what is built, which is the user's, but some of it."""
    cache.mkdir()
    for part in cache_dir().iterdir():
        if part.name not in without:
            (cache / part.name).symlink_to(part)
    return cache
