"""A result's hash covers the code that makes a cell's input of its plan: the plan alone does not say where bit errors
fall.
"""

import ast
import shutil
from pathlib import Path

import pytest

from scpslab.core.project import PACKAGE
from scpslab.engine.base import Needs
from scpslab.engine.bundle import INPUT_PARTS, PARTS, bundle_hash, input_hash, sources
from scpslab.engine.uml import no_network
from scpslab.engine.virtual import VirtualEngine
from scpslab.setup import Images

# What these say is in the plan by then (the keys of scenarios), or only in messages.
OUTSIDE = ("documents", "core/errors.py", "core/folders.py")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package in which modules can be changed."""
    folder = tmp_path_factory.mktemp("copy") / "scpslab"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def covered(parts):
    return sorted(
        file
        for part in parts
        for file in ((PACKAGE / part).rglob("*.py") if (PACKAGE / part).is_dir() else [PACKAGE / part])
    )


@pytest.mark.parametrize("file", covered(INPUT_PARTS), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_change_of_a_module_that_makes_inputs_is_another_hash(copy, file):
    before, changed = input_hash(copy), copy / file.relative_to(PACKAGE)
    changed.write_text(f"{changed.read_text()}\n# changed\n")

    assert input_hash(copy) != before


def test_every_module_that_vectors_are_made_with_is_covered():
    """Those of the lab program are in the bundle's hash."""
    known = {*covered(INPUT_PARTS), *covered(PARTS)}
    left = {
        file
        for file in imported_by(PACKAGE / "scenario" / "errors.py")
        if file not in known and not str(file.relative_to(PACKAGE)).startswith(OUTSIDE)
    }

    assert not left


def imported_by(first: Path):
    """The modules of the package that a module imports, and those that they import."""
    found, waiting = set(), [first]
    while waiting:
        for node in ast.walk(ast.parse(waiting.pop().read_text())):
            names = (
                [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                if isinstance(node, ast.ImportFrom) and node.module
                else []
            )
            for name in names:
                path = PACKAGE.parent.joinpath(*name.split("."))
                for file in (path.with_suffix(".py"), path / "__init__.py"):
                    if name != "scpslab" and file.is_file() and PACKAGE in file.parents and file not in found:
                        found.add(file)
                        waiting.append(file)
    return found


def test_an_engine_s_hash_covers_inputs_and_bundle(monkeypatch):
    small_plan = no_network({"wall_s": 1, "memory_mib": 64})

    def made(images):
        engine = VirtualEngine()
        engine._bundles = {needs: (Path(), bundle_hash(images, None)) for needs in [Needs.of(small_plan)]}
        return engine.hash(small_plan)

    images = Images(Path(), Path(), Path(), "parts")
    hashes = {made(images), made(Images(Path(), Path(), Path(), "other parts"))}
    monkeypatch.setattr("scpslab.engine.uml.input_hash", lambda: "other inputs")
    assert len(hashes | {made(images)}) == 3
    assert all(file.is_file() for file, _ in sources())
