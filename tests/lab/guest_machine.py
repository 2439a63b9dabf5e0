"""A guest in real time that plays the machine of engine `host`: root, netem, Open vSwitch and Docker of its own."""

import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import scpslab
from scpslab.engine.base import Needs
from scpslab.engine.bundle import copy_programs
from scpslab.engine.live import LiveEngine
from scpslab.engine.uml import Guest
from scpslab.plan import Plan
from scpslab.setup import ensure_stack, ensure_tools

IN_GUEST = Path(__file__).parent / "in_guest"


def program_folder(folder: Path, script: str, with_stack: bool = False) -> Path:
    """What such a guest starts from: a script of in_guest/ as run_lab.py, the project's code, a lab program."""
    shutil.copytree(
        Path(scpslab.__file__).parent, folder / "source" / "scpslab", ignore=shutil.ignore_patterns("__pycache__")
    )
    stack = [ensure_stack(print).path] if with_stack else []
    copy_programs(folder / "programs", [*ensure_tools(print).iterdir(), *stack])
    shutil.copyfile(IN_GUEST / script, folder / "run_lab.py")
    return folder


class HostInGuest(LiveEngine):
    """Engine `host` on the kernel of a guest: each cell is a lab of a machine of its own."""

    name: ClassVar[str] = "host-in-guest"

    def prepare(self, say: Callable[[str], None], plans: Iterable[Plan]) -> None:
        """As engine `live`; and the folder that machines start from."""
        plans = list(plans)
        super().prepare(say, plans)
        self._folder = tempfile.TemporaryDirectory(prefix="scpslab-machine-")
        self._program = program_folder(
            Path(self._folder.name), "run_cell.py", any(Needs.of(plan).stack for plan in plans)
        )

    def guest(self, plan: Plan) -> Guest:
        """As engine `live`, with the machine in the place of the lab program."""
        return replace(super().guest(plan), program=self._program)
