"""The part of this package that runs in the appliance, on the guest image's Python, which has the standard library only."""

from __future__ import annotations

import shutil
from pathlib import Path

from scpslab.core.project import PACKAGE

# Programs of a cell are not among them: they are in the lab program's folder.
NEEDED = ("__init__.py", "core", "plan", "setup", "runs", "engine", "lab", "kinds", "topology.py")
START = "from scpslab.engine.appliance.inside import main\n\nmain()\n"


def copy_program(folder: Path) -> None:
    """Puts the program into a folder; it starts with appliance.py."""
    for name in NEEDED:
        source = PACKAGE / name
        if source.is_dir():
            shutil.copytree(source, folder / "scpslab" / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (folder / "scpslab").mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / "scpslab" / name)
    (folder / "appliance.py").write_text(START)
