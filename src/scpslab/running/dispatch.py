"""Which worker runs which cells: batches, workers that end, refuse, lie or are late. It has no clock and no connection; whoever has them tells it what happens.

A cell is waiting, with one or two workers, or done. Cells that were with a worker when it ended wait one by one from then on, so that the
next worker that ends shows which cell it had, and no other cell is blamed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# A batch is as long as it costs little to lose, and to send.
BATCH_S = 60.0
# So many workers end with a cell before the cell is given up, and so many raise the same trouble before it is the cell's.
MOST_LOSSES, MOST_TROUBLES = 5, 3


@dataclass(frozen=True)
class Batch:
    """Cells that one worker runs one after the other. `began_s`: when it was given out; `busy_s`: how long it is expected to take."""

    number: int
    worker: str
    cells: tuple[str, ...]
    began_s: float
    busy_s: float


class GivenUpError(Exception):
    """A cell that cannot be had from any worker; the message says why."""


@dataclass
class Worker:
    """A worker: the number of batches that it takes at a time, and those that it has."""

    places: int
    batches: set[int] = field(default_factory=set)


class Dispatch:
    """The cells of a run between their workers. `costs`: the seconds that each is expected to take, in the order in which cells share networks."""

    def __init__(self, costs: Mapping[str, float], batch_s: float = BATCH_S) -> None:
        self.costs, self.batch_s = dict(costs), batch_s
        self.waiting: deque[str] = deque(costs)
        self.alone: deque[str] = deque()
        self.done: set[str] = set()
        self.workers: dict[str, Worker] = {}
        # The cells whose results each gave, also of those that have gone.
        self.gave: dict[str, list[str]] = {}
        self.excluded: dict[str, str] = {}
        self.batches: dict[int, Batch] = {}
        self._left_s = sum(costs.values())
        self._losses: Counter[str] = Counter()
        self._troubles: Counter[str] = Counter()
        self._next = 1

    @property
    def is_over(self) -> bool:
        """Whether every cell is done."""
        return len(self.done) == len(self.costs)

    def present(self, places: Mapping[str, int]) -> None:
        """Exactly these workers are there, with so many places for batches each. Those that were and are not any more have ended."""
        for name in [name for name in self.workers if name not in places]:
            self._lose(self.workers.pop(name).batches)
        for name, number in places.items():
            if name not in self.workers and name not in self.excluded:
                self.workers[name] = Worker(number)

    def lost(self, number: int) -> None:
        """A batch was lost with its worker, which nobody may have noticed yet."""
        self._lose([number])

    def cut_off(self) -> None:
        """No worker can be reached: all batches are lost, and no worker or cell is to blame."""
        for number in list(self.batches):
            self._requeue(self._take(number).cells, self.waiting)
        self.workers.clear()

    def give(self, now_s: float) -> list[Batch]:
        """Batches for every worker that has a place."""
        given = []
        for most in range(max((worker.places for worker in self.workers.values()), default=0)):
            for name, worker in self.workers.items():
                if len(worker.batches) == most < worker.places and (cells := self._next_cells()):
                    given.append(self._hand_out(name, cells, now_s))
        return given

    def spare(self, now_s: float, late_s: float, pace: float) -> list[Batch]:
        """For workers without work: a second copy of batches that take longer than expected at this pace and `late_s` more. The first result counts."""
        given = []
        idle = [name for name, worker in self.workers.items() if not worker.batches] if not (self.waiting or self.alone) else []
        copies = Counter(cell for batch in self.batches.values() for cell in batch.cells)
        late = [batch for batch in self.batches.values() if now_s - batch.began_s > late_s + pace * batch.busy_s]
        for batch in sorted(late, key=lambda batch: batch.began_s):
            cells = [cell for cell in batch.cells if cell not in self.done and copies[cell] == 1]
            if idle and cells:
                given.append(self._hand_out(idle.pop(), cells, now_s))
        return given

    def ended(self, number: int, got: Iterable[str]) -> list[str]:
        """A batch has ended with results of these cells; returns those of them that had none before. Its other cells wait again."""
        batch = self._take(number)
        new = [cell for cell in got if cell in batch.cells and cell not in self.done]
        self.done.update(new)
        self._left_s -= sum(self.costs[cell] for cell in new)
        self.gave.setdefault(batch.worker, []).extend(new)
        self._requeue(batch.cells, self.waiting)
        return new

    def trouble(self, worker: str, cell: str, why: str) -> None:
        """A worker could not run a cell: it gets no more, as far as there are others.

        Raises:
            GivenUpError: the cell had the same on too many workers.
        """
        self._troubles[cell] += 1
        if self._troubles[cell] >= MOST_TROUBLES:
            raise GivenUpError(f"cell {cell}: {why}")
        self.exclude(worker, why)

    def exclude(self, worker: str, why: str) -> None:
        """A worker gets no more cells. What it has is lost, and no cell is to blame."""
        self.excluded[worker] = why
        if worker in self.workers:
            for number in list(self.workers[worker].batches):
                self._requeue(self._take(number).cells, self.waiting)
            del self.workers[worker]

    def withdraw(self, worker: str) -> list[str]:
        """The cells whose results a worker gave, which count no longer; they wait again. The worker may have gone."""
        gave = self.gave.pop(worker, [])
        self.done.difference_update(gave)
        self._left_s += sum(self.costs[cell] for cell in gave)
        self._requeue(gave, self.waiting)
        return gave

    def _lose(self, numbers: Iterable[int]) -> None:
        for number in list(numbers):
            cells = [cell for cell in self._take(number).cells if cell not in self.done]
            if len(cells) == 1:
                self._losses[cells[0]] += 1
                if self._losses[cells[0]] >= MOST_LOSSES:
                    raise GivenUpError(f"cell {cells[0]}: {MOST_LOSSES} workers ended while they ran it alone")
            self._requeue(cells, self.alone)

    def _take(self, number: int) -> Batch:
        batch = self.batches.pop(number)
        if batch.worker in self.workers:
            self.workers[batch.worker].batches.discard(number)
        return batch

    def _requeue(self, cells: Iterable[str], queue: deque[str]) -> None:
        """Puts those that are not done, and that no other worker has, first into a queue."""
        out = {cell for batch in self.batches.values() for cell in batch.cells}
        queue.extendleft(reversed([cell for cell in cells if cell not in self.done and cell not in out]))

    def _next_cells(self) -> list[str]:
        if self.alone:
            return [self.alone.popleft()]
        # Towards the end batches become short, so that all workers end at the same time.
        places = sum(worker.places for worker in self.workers.values())
        most_s, busy_s = min(self.batch_s, self._left_s / (2 * places)), 0.0
        cells: list[str] = []
        while self.waiting and (not cells or busy_s + self.costs[self.waiting[0]] <= most_s):
            cells.append(self.waiting.popleft())
            busy_s += self.costs[cells[-1]]
        return cells

    def _hand_out(self, worker: str, cells: list[str], now_s: float) -> Batch:
        batch = Batch(self._next, worker, tuple(cells), now_s, sum(self.costs[cell] for cell in cells))
        self._next += 1
        self.batches[batch.number] = batch
        self.workers[worker].batches.add(batch.number)
        return batch
