"""Are the built parts the published ones? images/published.txt has a line `PART RECIPE SHA256 TOOLS` for each that a
maintainer has published.

A part's bytes follow from its recipe, from the versions that it was built from, and from the compilers (or mkfs.erofs)
of the machine. A recipe that was changed since the last publication has no line: nothing can be said of it.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from scpslab.core.errors import CapabilityError, some_of

LINE = re.compile(r"([a-z]+) ([0-9a-f]{16}) ([0-9a-f]{64}) (\S.*)", re.ASCII)


@dataclass(frozen=True)
class Entry:
    """A published part."""

    part: str
    recipe: str
    sha256: str
    tools: str


@dataclass(frozen=True)
class Judgement:
    """`same`: whether a part is the published one, None where none is published for its recipe.

    `text` says it in words.
    """

    same: bool | None
    text: str


def read(file: Path) -> list[Entry]:
    """The published parts; none if there is no such file.

    Raises:
        CapabilityError: a line is something else.
    """
    entries = []
    for number, line in enumerate(
        file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else (), 1
    ):
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if match is None:
            raise CapabilityError(
                f'{file}:{number}: found "{line}"; expected PART RECIPE SHA256 TOOLS. Run: make published.'
            )
        entries.append(Entry(*match.groups()))
    return entries


def tools(programs: tuple[str, ...]) -> str:
    """The first line that each program says of its version."""
    versions = []
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"}
    for program in programs:
        try:
            done = subprocess.run(
                [program, "--version"], capture_output=True, text=True, errors="replace", env=environment, check=False
            )
        except OSError:
            versions.append(f"no {program}")
        else:
            versions.append((done.stdout.strip().splitlines() or [program])[0])
    return "; ".join(versions)


def judge(title: str, made: Entry, differs: list[str], entries: list[Entry]) -> Judgement:
    """The verdict on a built part called `title`. `differs`: see `Job`."""
    there = [entry for entry in entries if (entry.part, entry.recipe) == (made.part, made.recipe)]
    if differs:
        advice = "SCPSLAB_SNAPSHOT may name a place that has them (README.md)"
        found = f"{title}: other versions than published: {some_of(differs)}"
        return Judgement(False, f"{found}; results may differ from the published ones. {advice}")
    if not there:
        return Judgement(None, f"{title}: nothing published for this recipe")
    if any(entry.sha256 == made.sha256 for entry in there):
        return Judgement(True, f"{title}: as published")
    others = [entry.tools for entry in there]
    cause = f"made with {made.tools}, the published one with {' or '.join(others)}"
    if made.tools in others:
        cause = "from the same versions"
    found = f"{title}: SHA-256 {made.sha256[:12]} is not the published {there[0].sha256[:12]}: {cause}"
    return Judgement(False, f"{found}; results may differ from the published ones")
