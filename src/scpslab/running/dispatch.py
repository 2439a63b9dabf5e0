"""Which worker runs which cells: batches, workers that end, refuse, lie or are late. It has no clock and no connection; whoever has them tells it what happens.

A cell is waiting, with one or two workers, or done. Cells that were with a worker when it ended wait one by one from then on, so that the
next worker that ends shows which cell it had, and no other cell is blamed.

The work for a result does not depend on how many cells are out, or with how many workers: there may be thousands of either.
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


class _Places:
    """The workers that have a place for a batch, by the number of batches that they have; those with the same number in the order in which they came."""

    def __init__(self) -> None:
        self._levels: list[dict[str, None]] = []

    def put(self, name: str, batches: int) -> None:
        """A worker with so many batches has a place."""
        while len(self._levels) <= batches:
            self._levels.append({})
        self._levels[batches][name] = None

    def remove(self, name: str, batches: int) -> None:
        """A worker with so many batches has none any more, or has another number of batches."""
        if batches < len(self._levels):
            self._levels[batches].pop(name, None)

    def first(self) -> str | None:
        """The worker that is next: one with the fewest batches. None if nobody has a place."""
        return next((next(iter(level)) for level in self._levels if level), None)

    def idle(self) -> list[str]:
        """The workers without any batch."""
        return list(self._levels[0]) if self._levels else []


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
        # How many batches have each cell that is out.
        self._copies: Counter[str] = Counter()
        self._free = _Places()
        self._places = 0
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
            self._lose(self._leave(name))
        for name, number in places.items():
            if name not in self.workers and name not in self.excluded:
                self.workers[name] = Worker(number)
                self._places += number
                self._note_place(name)

    def lost(self, number: int) -> None:
        """A batch was lost with its worker, which nobody may have noticed yet."""
        self._lose([number])

    def cut_off(self) -> None:
        """No worker can be reached: all batches are lost, and no worker or cell is to blame."""
        for name in list(self.workers):
            self._leave(name)
        for number in list(self.batches):
            self._requeue(self._take(number).cells, self.waiting)

    def give(self, now_s: float) -> list[Batch]:
        """Batches for every worker that has a place."""
        given = []
        while (name := self._free.first()) is not None and (cells := self._next_cells()):
            given.append(self._hand_out(name, cells, now_s))
        return given

    def spare(self, now_s: float, late_s: float, pace: float) -> list[Batch]:
        """For workers without work: a second copy of batches that take longer than expected at this pace and `late_s` more. The first result counts."""
        if self.waiting or self.alone:
            return []
        given, idle = [], self._free.idle()
        # Batches are in the order in which they began.
        for batch in list(self.batches.values()) if idle else ():
            is_late = now_s - batch.began_s > late_s + pace * batch.busy_s
            if idle and is_late and (cells := [cell for cell in batch.cells if cell not in self.done and self._copies[cell] == 1]):
                given.append(self._hand_out(idle.pop(), cells, now_s))
        return given

    def ended(self, number: int, got: Iterable[str]) -> list[str]:
        """A batch has ended with results of these cells; returns those of them that had none before. Its other cells wait again."""
        batch = self._take(number)
        had = set(batch.cells)
        new = [cell for cell in got if cell in had and cell not in self.done]
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
        for number in self._leave(worker) if worker in self.workers else ():
            self._requeue(self._take(number).cells, self.waiting)

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

    def _leave(self, name: str) -> set[int]:
        """A worker gets nothing any more; returns the batches that it has."""
        worker = self.workers.pop(name)
        self._free.remove(name, len(worker.batches))
        self._places -= worker.places
        return worker.batches

    def _note_place(self, name: str) -> None:
        worker = self.workers[name]
        if len(worker.batches) < worker.places:
            self._free.put(name, len(worker.batches))

    def _take(self, number: int) -> Batch:
        batch = self.batches.pop(number)
        for cell in batch.cells:
            self._copies[cell] -= 1
            if not self._copies[cell]:
                del self._copies[cell]
        if (worker := self.workers.get(batch.worker)) is not None:
            self._free.remove(batch.worker, len(worker.batches))
            worker.batches.discard(number)
            self._note_place(batch.worker)
        return batch

    def _requeue(self, cells: Iterable[str], queue: deque[str]) -> None:
        """Puts those that are not done, and that no other worker has, first into a queue."""
        queue.extendleft(reversed([cell for cell in cells if cell not in self.done and cell not in self._copies]))

    def _next_cells(self) -> list[str]:
        if self.alone:
            return [self.alone.popleft()]
        # Towards the end batches become short, so that all workers end at the same time.
        most_s, busy_s = min(self.batch_s, self._left_s / (2 * self._places)), 0.0
        cells: list[str] = []
        while self.waiting and (not cells or busy_s + self.costs[self.waiting[0]] <= most_s):
            cells.append(self.waiting.popleft())
            busy_s += self.costs[cells[-1]]
        return cells

    def _hand_out(self, worker: str, cells: list[str], now_s: float) -> Batch:
        batch = Batch(self._next, worker, tuple(cells), now_s, sum(self.costs[cell] for cell in cells))
        self._next += 1
        self.batches[batch.number] = batch
        self._copies.update(cells)
        self._free.remove(worker, len(self.workers[worker].batches))
        self.workers[worker].batches.add(batch.number)
        self._note_place(worker)
        return batch
