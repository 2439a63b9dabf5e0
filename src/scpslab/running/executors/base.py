"""The small interface that every executor has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from scpslab.engine import CellRun, Engine


class Reports(Protocol):
    """Receives an executor's reports about cells, in the thread that called the executor, one after the other."""

    def started(self, cell_id: str) -> None:
        """A cell is about to be carried out."""

    def ended(self, cell_id: str, status: dict[str, Any]) -> None:
        """A cell has ended, and its folder is complete. This report may come again for a cell whose first report was interrupted."""


class Executor(ABC):
    """Carries out cells. `jobs`: the number of cells at a time (None: the executor decides)."""

    def __init__(self, jobs: int | None) -> None:
        self.jobs = jobs

    @abstractmethod
    def run(self, engine: Engine, cells: Mapping[str, CellRun], reports: Reports) -> None:
        """Carries out cells with a prepared engine, each into its folder, and reports them.

        If the user interrupts, or a cell raises, the executor ends the cells that run, reports those that had ended by then, and raises.

        Raises:
            KeyboardInterrupt: the user ended it.
        """
