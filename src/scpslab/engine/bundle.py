"""The lab program as the guest sees it: one folder with the tools and the Python code, compiled for the guest's
interpreter. And what hashes cover of it.
"""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from scpslab.core.contents import digest_of
from scpslab.core.folders import whole_folder
from scpslab.core.kinds import Registry
from scpslab.core.project import PACKAGE, ROOT
from scpslab.core.scratch import scratch
from scpslab.setup import Images, Program

PARTS = (
    "__init__.py",
    "topology.py",
    *("core/__init__.py", "core/addresses.py", "core/choices.py", "core/kinds.py", "core/names.py", "core/problems.py"),
    *("core/project.py", "core/strict_json.py", "core/units.py"),
    *("plan", "lab", "kinds"),
)
# What the guest has of a kind: a changed metric, or a changed key of a scenario, recomputes no cell.
KIND_LAYERS = {"__init__.py", "plan.py", "lab.py"}
# What makes a cell's input of its plan: the vectors of bit errors, the input's folder, the words of the kernel's
# command line.
INPUT_PARTS = (
    *("scenario/draws.py", "scenario/errors.py", "scenario/kinds.py", "kinds/errors"),
    *("engine/cell_folder.py", "engine/uml.py", "engine/virtual.py"),
)
COMPILE_JOB = '''"""Compiles the lab program with the interpreter that will run it, so that no cell waits for it."""

import compileall
import py_compile
import shutil

shutil.copytree("/opt/scpslab/source", "/tmp/lab")
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
done = compileall.compile_dir("/tmp/lab", quiet=1, invalidation_mode=mode, stripdir="/tmp/lab")
shutil.copytree("/tmp/lab", "/cell/out/lab")
open("/cell/out/status.json", "w").write('{"status": "%s"}' % ("completed" if done else "failed"))
'''


def sources() -> list[tuple[Path, str]]:
    """Every file of the bundle with its place in it, in a fixed order."""
    modules = [
        (file, name)
        for file, name in _files(PACKAGE, PARTS)
        if not name.startswith("scpslab/kinds/") or file.name in KIND_LAYERS
    ]
    modules += [
        (file, f"own_kinds/{file.relative_to(folder)}")
        for folder in Registry.folders
        for file in sorted(folder.glob("*/*/*.py"))
        if file.name in KIND_LAYERS
    ]
    found = [(file, "run_lab.py" if name == "scpslab/lab/run_lab.py" else name) for file, name in modules]
    return found + [(file, f"topologies/{file.name}") for file in sorted((ROOT / "topologies").glob("*.py"))]


def input_hash(package: Path = PACKAGE) -> str:
    """Hash of the code that makes a cell's input of its plan: together with the plan it stands for the input's
    bytes.
    """
    others = [(file, str(file)) for folder in Registry.folders for file in sorted(folder.glob("errors/*/*.py"))]
    return digest_of([*_files(package, INPUT_PARTS), *others])[:24]


def _files(package: Path, parts: Iterable[str]) -> list[tuple[Path, str]]:
    found: list[Path] = []
    for part in parts:
        path = package / part
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [(file, f"scpslab/{file.relative_to(package)}") for file in found]


def copy_programs(folder: Path, programs: Iterable[Path]) -> None:
    """Puts the lab program's files into a folder, together with the programs that it starts."""
    for file, name in sources():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / name)
    for file in programs:
        shutil.copy2(file, folder / file.name)


def bundle_hash(images: Images, scps: Program | None) -> str:
    """Hash of everything in the bundle, and of the job that compiles it.

    `scps`: the SCPS stack, if it is part of the bundle.
    """
    stack = f"scps\0{scps.hash}\0" if scps is not None else ""
    return digest_of(sources(), f"{images.hash}{stack}".encode())[:24]


def ensure_bundle(images: Images, scps: Program | None, cache: Path, boot: Callable[[Path, Path], None]) -> Path:
    """The bundle's folder in the cache, made at first use.

    `boot(lab, cell)` runs a guest whose lab program is the folder `lab`.
    """

    def fill(folder: Path) -> None:
        with scratch() as work:
            job, cell = work / "job", work / "cell"
            copy_programs(job / "source", [])
            (job / "run_lab.py").write_text(COMPILE_JOB)
            (cell / "out").mkdir(parents=True)
            boot(job, cell)
            shutil.copytree(cell / "out" / "lab", folder, dirs_exist_ok=True)
        for tool in [*sorted(images.tools_dir.iterdir()), *([scps.path] if scps else [])]:
            shutil.copy2(tool, folder / tool.name)

    return whole_folder(cache / "lab" / bundle_hash(images, scps), fill)
