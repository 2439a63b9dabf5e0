"""Kinds that are not the project's: FAMILY/NAME/LAYER.py in a folder `kinds` beside a scenario, in one that the
environment names, or in an installed package (docs/write-a-kind.md).
"""

import ast
import importlib.util
import os
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

from scpslab.core.errors import ScenarioError
from scpslab.core.folders import somebody_elses
from scpslab.core.kinds import Registry

NAME, GROUP, VARIABLE = "kinds", "scpslab.kinds", "SCPSLAB_KINDS"
LAYERS = ("plan", "lab", "scenario", "metrics")
FAMILIES = ("workloads", "services", "probes", "disciplines", "errors", "stacks")


def add_known() -> None:
    """Lets those of installed packages be found, and of the folders that the user's environment names."""
    for entry in entry_points(group=GROUP):
        found = importlib.util.find_spec(entry.value)
        for folder in (found.submodule_search_locations or []) if found else []:
            Registry.add(Path(folder))
    for word in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        Registry.add(Path(word).resolve())


def add_beside(scenario: Path, *, is_trusted: bool) -> None:
    """Lets those of the folder beside a scenario be found, and judges all, which are code that runs with the user's
    rights.

    Raises:
        ScenarioError: what is wrong with their files.
    """
    folders = dict.fromkeys([*Registry.folders, (scenario.parent / NAME).resolve()])
    files = [file for folder in folders for file in sorted(folder.glob("*/*/*.py"))]
    if wrong := [f"{file}: {what}" for file in files for what in _misfits(file, is_trusted=is_trusted)]:
        raise ScenarioError("\n".join(wrong))
    for file in files:
        Registry.add(file.parents[2])
        family, name, layer = file.parts[-3], file.parts[-2].replace("_", "-"), file.stem
        try:
            list(Registry.finder(family, layer) if layer != "lab" else ())
        except Exception as error:  # whatever somebody's code raises
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ScenarioError(f"{file}: found {said}; expected a file that can be imported. Correct it.") from error
        if any((one.family, one.layer) == (family, layer) and name not in one for one in Registry.every):
            found = f"{file}: found no kind {name}; expected one with the name of its folder"
            raise ScenarioError(f'{found}. Register it as kind="{name}", or rename the folder.')


def _misfits(file: Path, *, is_trusted: bool) -> Iterator[str]:
    family, name, layer = file.parts[-3], file.parts[-2].replace("_", "-"), file.stem
    if family not in FAMILIES or layer not in LAYERS:
        places = f"FAMILY/NAME/LAYER.py with one of {', '.join(FAMILIES)} and of {', '.join(LAYERS)}"
        yield f"found {family} and {layer}; expected {places}. Rename it."
    elif name in Registry.finder(family, "") and not any(file.is_relative_to(one) for one in Registry.folders):
        yield f"found a second kind {name} of {family}; expected a name of its own. Rename its folder."
    if not is_trusted and (whose := somebody_elses(file)):
        yield f"found {whose}; expected a file that you or root own and nobody else may write. Read it, then copy it."
    try:
        tree = ast.parse(file.read_text())
    except (SyntaxError, ValueError) as error:
        yield f"found {error}; expected Python. Correct it."
        return
    for part in ast.walk(tree):
        if isinstance(part, ast.Module | ast.ClassDef) and not ast.get_docstring(part):
            what = f"class {getattr(part, 'name', 'of the file')} without a docstring"
            yield f"found {what}; expected a line that says what it is. Add it."
