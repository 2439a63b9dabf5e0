"""The small interface every engine has: what it needs, and running one cell's plan into a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from scpslab.errors import UsageError
from scpslab.plan import Plan


@dataclass(frozen=True)
class CellRun:
    """One cell to run: its plan (docs/plan-format.md), the folder its files go to, and the CPU core it may use (None: any)."""

    plan: Plan
    folder: Path
    core: int | None = None


class Engine(ABC):
    """A place where cells run. `deterministic` engines give the same bytes every time, so their results are cached."""

    name: ClassVar[str]
    deterministic: ClassVar[bool]
    # Whether a person can be in the lab: in virtual time nobody would keep up.
    interactive: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, say: Callable[[str], None], plans: Iterable[Plan]) -> None:
        """Builds or finds what the engine needs for these plans.

        Raises:
            CapabilityError: this machine cannot, with what to do about it.
        """

    @abstractmethod
    def hash(self, plan: Plan) -> str:
        """Hash of everything of a prepared engine that determines the plan's results."""

    @abstractmethod
    def run(self, cell: CellRun) -> dict[str, Any]:
        """Runs a cell to its end and returns its status; the folder then holds plan, status, environment, records, captures, logs.

        A cell that hangs is ended at its limits and gets the status `failed`. Thread-safe.
        """

    def interact(self, plan: Plan, folder: Path) -> int:
        """Runs a plan at the user's terminal until the user leaves; what is left is in `folder`/cell/out. Returns the lab's exit code.

        Raises:
            UsageError: an engine that is not `interactive`.
        """
        raise UsageError(f"engine {self.name}: found a lab that nobody can be in; expected an engine on the wall clock. Choose live or host.")

    @abstractmethod
    def stop(self) -> None:
        """Ends every cell that runs now, by process id; `run` then raises Interrupted."""


class Interrupted(Exception):  # it is no error
    """The cell was ended because the user asked for it; nothing of it is kept."""
