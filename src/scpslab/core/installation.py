"""Which scpslab this is: its version, its commit, and what to type so that it gets what it lacks.

No package index has scpslab, and the name is free for a stranger: advice names the wheel's file, never the name alone.
"""

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scpslab.core.project import IS_INSTALLED, PARTS_INDEX, ROOT

# Builds, or unpacks, the parts that cells need.
SETUP = f"{sys.executable} -m scpslab.setup" if IS_INSTALLED else "make setup"
# Installs what builds them.
PACKAGES = "install it; or install a wheel of scpslab that carries the built parts" if IS_INSTALLED else "make packages"
# What decides results and pictures. A new file elsewhere, such as a scenario of the user, is no change of the program.
PROGRAM = ("src", "stack", "images", "topologies", "scenarios", "analysis", "pyproject.toml", "requirements.lock")
GIT_S = 20


@cache
def version() -> str:
    """The version in pyproject.toml."""
    found: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return found


@dataclass(frozen=True)
class Commit:
    """A commit, and whether files of the program differ from it."""

    id: str
    changed: bool


@cache
def commit() -> Commit | None:
    """The commit of the clone that runs, or from which the installed wheel was made; None if neither is known, or
    without git.
    """
    if not IS_INSTALLED:
        return commit_of(ROOT)
    if not PARTS_INDEX.is_file():
        return None
    program = json.loads(PARTS_INDEX.read_text())["program"]
    return Commit(program["commit"], program["changed"]) if program["commit"] else None


def commit_of(root: Path) -> Commit | None:
    """The commit of the clone `root`; None if `root` is none."""
    top = _git(root, "rev-parse", "--show-toplevel")
    head = _git(root, "rev-parse", "HEAD")
    # An installation may lie in a clone of something else.
    if top is None or head is None or Path(top).resolve() != root.resolve():
        return None
    return Commit(head, _git(root, "status", "--porcelain", "--", *PROGRAM) != "")


def _git(root: Path, *words: str) -> str | None:
    # No program that the clone's configuration names is started, and nothing is written.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def pip_install(extra: str = "", options: str = "") -> str:
    """The command that installs the wheel with an extra, or again."""
    return f'{sys.executable} -m pip install {options}"{_wheel()}{f"[{extra}]" if extra else ""}"'


def add_extra(extra: str) -> str:
    """The command that adds what an extra of the package needs."""
    return pip_install(extra) if IS_INSTALLED else "make development"


def _wheel() -> str:
    """The wheel's file as pip has noted it, if it is still there; otherwise the name to look for."""
    try:
        noted = importlib.metadata.distribution("scpslab").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        noted = None
    file = Path(unquote(urlsplit(json.loads(noted or "{}").get("url", "")).path))
    return str(file) if file.suffix == ".whl" and file.is_file() else f"scpslab-{version()}-….whl"
