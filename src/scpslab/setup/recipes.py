"""The recipes of the parts: which files one consists of, and the builders (tools/build), which are loaded only when
something is built.
"""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scpslab.core import project

DOCKER_RECIPE = "images/guest-docker"
# Folders of images/ that are not images of nodes.
NO_NODES = ("guest", "guest-docker", "lab-kernel", "lab-kernel-ipv6")


def files_of(folder: Path) -> list[Path]:
    """The files of a recipe; folders inside are recipes of their own."""
    return sorted(file for file in folder.iterdir() if file.is_file())


def appliance_files(folder: Path) -> list[Path]:
    """The files of the appliance's recipe: those of its folder, and the version of the source."""
    return [*files_of(folder), appliance_source(folder)]


def with_lab_kernel(folder: Path) -> list[Path]:
    """The files of a recipe that adds to the lab kernel's."""
    return [*files_of(folder), *files_of(folder.parent / "lab-kernel")]


def appliance_source(folder: Path) -> Path:
    """The file that names the version of the appliance's source, which is the lab kernel's."""
    return folder.parent / "lab-kernel" / "versions.txt"


def stack_files(folder: Path) -> list[Path]:
    """The source files of the `scps` program, without tests and benches."""
    crates = (*folder.glob("crates/*/Cargo.toml"), *folder.glob("crates/*/src/**/*.rs"))
    return sorted([folder / "Cargo.toml", folder / "Cargo.lock", *crates])


def docker_files(root: Path) -> list[Path]:
    """The files of the recipe of Docker for guests: those of the images of nodes, and of the programs in them."""
    nodes = (folder for folder in (root / "images").iterdir() if folder.is_dir() and folder.name not in NO_NODES)
    of_nodes = (file for folder in nodes for file in folder.rglob("*"))
    of_guest = (
        *(root / DOCKER_RECIPE).iterdir(),
        *(root / "images/guest/tools").glob("*"),
        root / "tools/build-images",
    )
    files = (file for file in (*of_nodes, *of_guest) if file.is_file())
    return sorted([*files, *stack_files(root / "stack")])


def builder(module: str) -> Any:
    """A module of the builders. They lie outside the package, in a clone and in a wheel."""
    if str(project.ROOT) not in sys.path:
        sys.path.insert(0, str(project.ROOT))
    return importlib.import_module(f"tools.build.{module}")


def built_by(module: str, function: str = "build") -> Callable[[Any], None]:
    """What builds a part: a function of the builders that takes a job."""

    def build(job: Any) -> None:
        getattr(builder(module), function)(job)

    return build
