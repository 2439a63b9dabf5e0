"""What a run changed in a scenario of the project: a run with other conditions says nothing about the scenario's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from scpslab.core import units
from scpslab.core.errors import ScenarioError
from scpslab.documents.document import read
from scpslab.scenario.load import FOLDER, load, resolved_yaml
from scpslab.scenario.model import FORM, ScenarioFile
from scpslab.scenario.paths import Data

# Keys that change which cells run or what is recorded of them, but not what a cell is.
FREE = ("title", "source", "description", "repeats", "seed", "limits", "probes", "checks", "skip", "sweep")


def altered(name: str, resolved: Path) -> tuple[str, ...]:
    """Where a run's resolved scenario has other conditions than the project's scenario `name[:variant]`: key, found and
    expected.

    Nothing for a scenario that the project does not have. A file that cannot be read has other conditions: nobody knows
    which.
    """
    if (base := _of_project(name)) is None:
        return ()
    try:
        # The file may come from a stranger: it is read, and no topology that it names is run.
        mine = read(resolved, FORM).held_against(ScenarioFile)
        return tuple(
            _changes(base, mine.model_dump(mode="json", by_alias=True, exclude={"variants"}, exclude_none=True))
        )
    except ScenarioError:
        return (f"{resolved.name}: cannot be read",)


def changes_conditions(overrides: Sequence[str]) -> bool:
    """Whether one of these `KEY=VALUE` sets something else than which cells run and what is recorded of them."""
    return any(text.partition("=")[0].strip().split(".")[0] not in FREE for text in overrides)


@cache
def _of_project(name: str) -> Data | None:
    if not (FOLDER / f"{name.partition(':')[0]}.yaml").is_file():
        return None
    found: Data = yaml.safe_load(resolved_yaml(load(name)))
    return found


def _changes(base: Mapping[str, Any], mine: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys((*base, *mine)):
        if key == "parameters":
            # A topology may have got parameters since.
            both = {name: value for name, value in base.get(key, {}).items() if name in mine.get(key, {})}
            yield from _differences(both, mine.get(key, {}), key)
        elif key not in FREE:
            yield from _differences(base.get(key), mine.get(key), key)
    axes, own = base.get("sweep", {}), mine.get("sweep", {})
    for axis in dict.fromkeys((*axes, *own)):
        if axis not in axes or axis not in own:
            yield f"sweep.{axis}: {'new' if axis in own else 'missing'}"
            continue
        yield from _differences(axes[axis].get("set"), own[axis].get("set"), f"sweep.{axis}.set")
        cases = axes[axis].get("cases", {})
        for label, settings in own[axis].get("cases", {}).items():
            if label in cases:
                yield from _differences(cases[label], settings, f"sweep.{axis}.cases.{label}")


def _differences(base: Any, mine: Any, at: str) -> Iterator[str]:
    if isinstance(base, dict) and isinstance(mine, dict):
        for key in dict.fromkeys((*base, *mine)):
            yield from _differences(base.get(key), mine.get(key), f"{at}.{key}")
    elif isinstance(base, list) and isinstance(mine, list) and len(base) == len(mine):
        for index, pair in enumerate(zip(base, mine, strict=True)):
            named = pair[0].get("name") if isinstance(pair[0], dict) else None
            yield from _differences(*pair, f"{at}.{named or index}")
    elif base != mine and not _is_same_quantity(base, mine):
        yield f"{at}: {_shown(mine)} instead of {_shown(base)}"


def _is_same_quantity(base: Any, mine: Any) -> bool:
    """Whether two texts are one quantity, such as 4 MB and 4000000 B."""
    for kind in units.KINDS:
        try:
            return units.parse(kind, base) == units.parse(kind, mine)
        except units.UnitError:
            continue
    return False


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)[:80]
