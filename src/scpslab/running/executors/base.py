"""Where the cells of a run are carried out: the small interface every executor has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from scpslab.engine import CellRun, Engine


class Reports(Protocol):
    """What a run wants to hear of its cells, in the thread that called the executor, one after the other."""

    def started(self, cell_id: str) -> None:
        """A cell is about to be carried out."""

    def ended(self, cell_id: str, status: dict[str, Any]) -> None:
        """A cell is over, and its folder complete. May come again for a cell whose first report was interrupted."""


class Executor(ABC):
    """Carries out cells. `jobs`: as many at a time as the user wants (None: as the executor sees fit)."""

    def __init__(self, jobs: int | None) -> None:
        self.jobs = jobs

    @abstractmethod
    def run(self, engine: Engine, cells: Mapping[str, CellRun], reports: Reports) -> None:
        """Carries out cells with a prepared engine, each into its folder, and reports them.

        When the user interrupts, or a cell raises: what runs is ended, what ended beside it is reported, and then this raises.

        Raises:
            KeyboardInterrupt: the user ended it.
        """
