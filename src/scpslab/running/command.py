"""How to run the same again: the command, and the program that ran."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from scpslab.version import commit, version

DEFAULT_ENGINE = "virtual"


def command(name: str, engine: str, overrides: Sequence[str]) -> str:
    """The command that plans the same cells on the same engine, quoted for a shell."""
    words = ["scpslab", "run", name]
    if engine != DEFAULT_ENGINE:
        words += ["--engine", engine]
    for text in overrides:
        words += ["--set", text]
    return shlex.join(words)


def program() -> dict[str, Any]:
    """The version of the program, the commit of its clone, and whether its files differ from that commit; None: no clone."""
    found = commit()
    return {"version": version(), "commit": found.id if found else None, "changed": found.changed if found else None}
