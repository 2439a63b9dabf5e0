"""How to run the same again: the command, and the program that ran."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scpslab.core.names import shown
from scpslab.core.version import commit, version
from scpslab.plan import Plan
from scpslab.plan.error_models import NO_MODEL
from scpslab.scenario.errors import VECTOR_RULES

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
    return {"version": version(), "commit": found.id if found else None, "changed": found.changed if found else None, "vectors": VECTOR_RULES}


def other_vectors(manifest: Mapping[str, Any], plans: Iterable[Plan]) -> str:
    """Why a run cannot have the bytes of one that is made today, if its bit errors were drawn by older rules; "" otherwise."""
    made = manifest.get("program")
    facts = made if isinstance(made, dict) else {}
    if facts.get("vectors") == VECTOR_RULES:
        return ""
    impairments = (impairment for plan in plans for impairment in plan.cell.impairments)
    if all(one.errors is None or one.errors.model == NO_MODEL for one in impairments):
        return ""
    return f"made with {shown(facts.get('version', 'an older version'))[1:-1]}, whose error vectors began elsewhere: run again"
