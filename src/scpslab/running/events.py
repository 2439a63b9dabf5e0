"""The events of a run, as values.

A listener is a function of one event; listeners are called in the order in which they were given.

A run: Note*, RunStarted, CellDone* (those that had a result), then CellStarted, CellProgress* and CellDone for each
cell that is run, and at the end exactly one of RunDone, RunInterrupted, RunFailed. A campaign: Note*, CampaignStarted,
its runs side by side, and exactly one of CampaignDone, CampaignInterrupted, CampaignFailed. A run that never started
(the machine lacks something, another process has its folder) tells at most Notes.

All events come from the thread that called, one after the other. A cell has at most one CellStarted and one CellDone,
which say of which scenario it is. A cell that had started but was not done when its run ended has no result. A Note may
come at any time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scpslab.engine import CellSample
from scpslab.lab.records import Status
from scpslab.scenario.planning import Expected


@dataclass(frozen=True)
class Note:
    """A line for people, for example about something that is built."""

    text: str


@dataclass(frozen=True)
class OfRun:
    """What happens to a run: the name of its scenario, and its folder."""

    scenario: str
    folder: Path


@dataclass(frozen=True)
class OfCampaign:
    """What happens to a campaign: its name, and its folder."""

    campaign: str
    folder: Path


@dataclass(frozen=True)
class RunStarted(OfRun):
    """A run begins in its folder, whose lock it holds, with all these cells.

    `expected`: what each takes, as far as its plan tells.
    """

    engine: str
    cells: tuple[str, ...]
    expected: Mapping[str, Expected] = field(default_factory=dict)


@dataclass(frozen=True)
class CellStarted:
    """A cell was handed to the engine."""

    cell: str
    scenario: str = ""


@dataclass(frozen=True)
class CellProgress:
    """A running cell said what it does; of cells on workers, at most one a second for each worker."""

    cell: str
    sample: CellSample
    scenario: str = ""


@dataclass(frozen=True)
class CellDone:
    """A cell has a result, and the result is kept: how it ended, and whether the result existed before."""

    cell: str
    status: Status
    cached: bool
    scenario: str = ""


@dataclass(frozen=True)
class RunDone(OfRun):
    """Every cell has a result, and results.csv is written."""

    wall_s: float


class RunInterrupted(OfRun):
    """The user ended the run; finished cells are kept."""


@dataclass(frozen=True)
class RunFailed(OfRun):
    """The run broke; finished cells are kept."""

    error: Exception


@dataclass(frozen=True)
class CampaignStarted(OfCampaign):
    """A campaign begins in its folder: the names of its scenarios, and the number of cells of all of them."""

    scenarios: tuple[str, ...]
    cells: int


@dataclass(frozen=True)
class CampaignDone(OfCampaign):
    """Every run is done."""

    wall_s: float


class CampaignInterrupted(OfCampaign):
    """The user ended the campaign; finished cells are kept."""


@dataclass(frozen=True)
class CampaignFailed(OfCampaign):
    """One of the runs broke; finished cells are kept."""

    error: Exception


Event = Note | CellStarted | CellProgress | CellDone | OfRun | OfCampaign
Listener = Callable[[Event], None]


def to_all(listeners: Sequence[Listener]) -> Listener:
    """Tells an event to every listener, in their order."""

    def tell(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return tell


@contextmanager
def endings(tell: Listener, interrupted: Event, failed: Callable[[Exception], Event]) -> Iterator[None]:
    """Tells how a block ends that does not end well."""
    try:
        yield
    except KeyboardInterrupt:
        tell(interrupted)
        raise
    except Exception as error:
        tell(failed(error))
        raise


class Tally:
    """A listener that counts the cells done, those of them that already had a result, and the virtual seconds of the
    others.
    """

    def __init__(self) -> None:
        self.done, self.cached, self.virtual_s = 0, 0, 0.0

    def __call__(self, event: Event) -> None:
        """Counts a cell that is done."""
        if isinstance(event, CellDone):
            self.done += 1
            self.cached += event.cached
            self.virtual_s += 0.0 if event.cached else event.status.virtual_s or 0.0
