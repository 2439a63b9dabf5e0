"""Files in the words of 0.3.0: the same cells, draws, losses and times under today's words.

`cells-0.3.0.json` was made of `scenarios-0.3.0.tar.gz` by the program before the words changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from scpslab import plan as plans
from scpslab import scenario
from scpslab.scenario import planning

# What a plan draws, or draws from.
DRAWN = ("rates_bps", "record_at", "stop_at")
# Of each scenario and variant, the first and last of its cells are planned.
ENDS = 3


def fingerprint(loaded: scenario.Scenario) -> list[Any]:
    """How many cells it has, and digests of their names and all that is drawn in them, and of all numbers in them.

    Words are in none of them.
    """
    cells = scenario.cells(loaded)
    planned = planning.plans([*cells[:ENDS], *cells[ENDS:][-ENDS:]])
    written = [plans.write(plan) for plan in planned.values()]
    drawn = [[cell.id for cell in cells], [list(_drawn(plan)) for plan in written]]
    return [len(cells), _digest(drawn), _digest([list(_numbers(plan)) for plan in written])]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _drawn(value: Any, key: str = "") -> Iterator[Any]:
    if key.endswith(("seed", "seeds")) or key in DRAWN:
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _drawn(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _drawn(inner)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, int | float):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _numbers(inner)
