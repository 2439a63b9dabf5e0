"""A hook of hatchling: a wheel carries the students' parts of the assignments, and the built parts of the folder in
SCPSLAB_PARTS (`make wheel`); with these it is one for Linux.

Without that variable the wheel has no built parts and suits any machine: its user's machine builds them at first use,
as in a clone.
"""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "SCPSLAB_PARTS"
FILES = "scpslab/project_files"
ASSIGNMENTS, LEFT_OUT = "assignments", {"instructor", "__pycache__"}
# The parts are static programs for x86-64 Linux 3.2 and newer: any C library of the machine will do. Machines of other
# kinds run them in the appliance.
SYSTEMS = ("manylinux_2_17", "manylinux2014", "musllinux_1_1")


class PartsHook(BuildHookInterface):
    """Adds files to the wheel that are no files of the repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files, and with built parts sets the wheel's tag."""
        # A folder that pyproject.toml includes by force is included whole: hatchling's `exclude` has no say in it.
        build_data["force_include"] |= {
            str(file): f"{FILES}/{file.relative_to(self.root).as_posix()}"
            for file in sorted(Path(self.root, ASSIGNMENTS).rglob("*"))
            if file.is_file() and not LEFT_OUT & set(file.relative_to(self.root).parts)
        }
        if version != "standard" or not (given := os.environ.get(VARIABLE)):
            return
        folder = Path(given).absolute()
        files = sorted(folder.iterdir())
        if not any(file.name == "parts.json" for file in files):
            raise SystemExit(
                f"error: {VARIABLE}={given}: found no parts.json; expected a folder of packed parts. Run: make wheel."
            )
        build_data["force_include"] |= {str(file): f"{FILES}/parts/{file.name}" for file in files}
        build_data["pure_python"] = False
        # Without the appliance no cell runs on arm64.
        kinds = ("aarch64", "x86_64") if any(file.name.startswith("appliance.") for file in files) else ("x86_64",)
        build_data["tag"] = "py3-none-" + ".".join(f"{system}_{kind}" for system in SYSTEMS for kind in kinds)
