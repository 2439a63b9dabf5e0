"""Compares the bytes that two states of the project give: the cells of tests/same_bytes, run by the commit REF and by
this working tree.

Everything under cells/, and results.csv, must be equal, with two exceptions. A plan.json may differ where its format
number does: then its meaning is compared by what it did. The times at which phases of the set-up began, before the
epoch, may differ: a lab program that reads one file more takes longer. A kernel's random numbers depend on that too:
with --but-drawn they may differ as well (drawn_numbers.py).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if __package__:
    from tools.drawn_numbers import without_drawn_numbers
else:
    from drawn_numbers import without_drawn_numbers

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "tests" / "same_bytes"
NEEDS_DOCKER = {"docker"}
MOST_SHOWN = 40


@dataclass(frozen=True)
class Tree:
    """One state of the project: where its files are, and the Python that runs them."""

    name: str
    root: Path
    python: Path

    def run(self, scenario: Path, out: Path) -> Path:
        """Runs a scenario file of this working tree, and gives its run folder."""
        words = [str(self.python), "-m", "scpslab", "run", str(scenario), "--out", str(out), "--no-cache"]
        done = subprocess.run(
            words, env=os.environ | {"PYTHONPATH": str(self.root / "src")}, check=False, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(
                f"error: {scenario.name} with {self.name}: found exit code {done.returncode}; "
                f"expected 0.\n{done.stdout}{done.stderr}"
            )
        (folder,) = (found for found in out.iterdir() if (found / "manifest.json").exists())
        return folder


def main() -> None:
    """Prints what differs; exit code 1 when something does."""
    parser = argparse.ArgumentParser(description="Compare the bytes of a commit's results with this working tree's.")
    parser.add_argument("ref", help="commit to compare with")
    parser.add_argument(
        "--only", nargs="*", help="names of files of tests/same_bytes, without .yaml; all of them if not given"
    )
    parser.add_argument(
        "--but-drawn",
        action="store_true",
        help="do not compare the numbers that a kernel draws (ports, first sequence numbers …)",
    )
    options = parser.parse_args()
    known = {path.stem: path for path in sorted(SCENARIOS.glob("*.yaml"))}
    chosen = options.only or list(known)
    if unknown := set(chosen) - set(known):
        sys.exit(f"error: --only: found {', '.join(sorted(unknown))}; expected some of {', '.join(known)}.")
    if not _has_docker() and (without := NEEDS_DOCKER & set(chosen)):
        print(f"left out: {', '.join(sorted(without))}: no Docker Engine answers here")
        chosen = [name for name in chosen if name not in without]
    with tempfile.TemporaryDirectory(prefix="scpslab-same-bytes-") as work:
        trees = (_commit(options.ref, Path(work) / "ref"), Tree("this tree", ROOT, Path(sys.executable)))
        cells = files = 0
        different: list[str] = []
        for name in chosen:
            then, now = (tree.run(known[name], Path(work) / f"{number}" / name) for number, tree in enumerate(trees))
            found, compared = compare(then, now, but_drawn=options.but_drawn)
            different += [f"{name}: {line}" for line in found]
            files += compared
            cells += len(list((now / "cells").iterdir()))
            print(f"{name}: {compared} files, {len(found)} differ", flush=True)
    for line in different[:MOST_SHOWN]:
        print(line)
    if len(different) > MOST_SHOWN:
        print(f"{len(different) - MOST_SHOWN} more")
    print(
        f"{cells} cells, {files} files: {f'{len(different)} differ' if different else 'the same bytes'} "
        f"({options.ref} and this tree)"
    )
    sys.exit(bool(different))


def compare(then: Path, now: Path, *, but_drawn: bool = False) -> tuple[list[str], int]:
    """What differs between two run folders, a line each, and how many files were compared."""
    names = {path.relative_to(folder) for folder in (then, now) for path in _compared(folder)}
    lines = []
    for name in sorted(names):
        before, after = then / name, now / name
        if not (before.exists() and after.exists()):
            lines.append(f"{name}: only in {'this tree' if after.exists() else 'the commit'}")
        elif _content(before, but_drawn) != _content(after, but_drawn) and not _is_new_format(before, after):
            lines.append(f"{name}: differs")
    return lines, len(names)


def _compared(folder: Path) -> Iterator[Path]:
    yield folder / "results.csv"
    yield from (path for path in (folder / "cells").rglob("*") if path.is_file())


def _content(path: Path, but_drawn: bool) -> bytes:
    content = without_drawn_numbers(path.name, path.read_bytes()) if but_drawn else path.read_bytes()
    if path.name != "lab.jsonl":
        return content
    lines = [json.loads(line) for line in content.splitlines()]
    return json.dumps([line for line in lines if line.get("event") != "phase" or line["t_s"] >= 0]).encode()


def _is_new_format(before: Path, after: Path) -> bool:
    return (
        before.name == "plan.json"
        and json.loads(before.read_bytes())["format"] != json.loads(after.read_bytes())["format"]
    )


def _commit(ref: str, folder: Path) -> Tree:
    """The commit's files, with this environment where it asks for the same packages, else with its own."""
    asked = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    if asked.returncode:
        sys.exit(f'error: REF: found "{ref}"; expected a commit of this repository. See git log.')
    commit = asked.stdout.strip()
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "--extract"], cwd=folder, check=True, input=archive)
    lock = "requirements.lock"
    if (folder / lock).read_bytes() == (ROOT / lock).read_bytes():
        (folder / ".venv").symlink_to(ROOT / ".venv")
        return Tree(commit[:12], folder, Path(sys.executable))
    subprocess.run([folder / "tools" / "setup-python"], check=True)
    return Tree(commit[:12], folder, folder / ".venv" / "bin" / "python")


def _has_docker() -> bool:
    return (
        shutil.which("docker") is not None
        and subprocess.run(["docker", "info"], check=False, capture_output=True).returncode == 0
    )


if __name__ == "__main__":
    main()
