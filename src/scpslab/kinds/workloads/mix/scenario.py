"""Kind `mix`: many bulk transfers between two hosts, whose sizes and starts are drawn."""

from bisect import bisect
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Annotated, Any, Literal

from pydantic import Field

from scpslab.core.problems import Problem
from scpslab.documents.parts import exactly_one_of, key
from scpslab.documents.quantities import PositiveDuration, Size, Start
from scpslab.plan.workloads import SECOND_NS
from scpslab.plan.workloads import Traffic as Planned
from scpslab.scenario.workloads import REQUIRED, Setting, Surroundings, Traffic, timeout_key

from scpslab.kinds.workloads.bulk.scenario import Bulk

# Programs that a host of stack scps has addresses for, less some for other workloads; and a mean number that leads to
# more of them once in 10^16 draws.
MOST_FILES, MOST_ON_AVERAGE = 120, 50
LARGEST_PORT = 65_535


Weight = Annotated[float, Field(gt=0, le=1e9)]


class File(Bulk):
    """One file, as the plan has it."""

    mix: str


class Mix(Traffic, kind="mix"):
    """Many files from one host to another, each a bulk transfer with a connection of its own.

    The first begins at `start`; the times between starts are exponential (a Poisson process), and each size is drawn by
    its weight. Every repeat has draws of its own, which depend on the mix's name alone: each stack meets the same
    files, and another rate stretches the same starts.

    Attributes:
        kind: The kind of workload.
        per_second: Mean number of files that begin in a second.
        number: Number of files.
        span: Time in which files begin, in place of a number: 50 on average at most.
        sizes: Sizes of files, with weights: the share of files that have it is its weight over the sum of all.
        segment: Data bytes per segment, as of a bulk transfer.
        port: TCP port of the first file; each further one has the next.
    """

    kind: Literal["mix"] = key(example="mix")
    per_second: float = key(least=1e-6, most=1e6, example=0.5)
    number: int | None = key(None, least=1, most=MOST_FILES, example=40)
    span: PositiveDuration | None = key(None, example="60 s")
    sizes: Annotated[dict[Size, Weight], Field(min_length=1)] = key(example={"10 kB": 70, "1 MB": 30})
    segment: Size = key("1400 B", example="512 B")
    port: Annotated[int, Field(ge=1, le=LARGEST_PORT + 1 - MOST_FILES)] = key(6001, example=6001)
    timeout: PositiveDuration = timeout_key("3000 s", "the sender of a file gives up")
    required: bool = REQUIRED

    _has_one_end = exactly_one_of("number", "span")

    @property
    def most(self) -> int:
        """All ports that it may need."""
        return self.number or MOST_FILES

    def serves(self) -> tuple[str, int]:
        """The receiving host and the first port."""
        return self.receiver, self.port

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit of its largest file; too many of them."""
        on_average = self.per_second * self.span / SECOND_NS if self.span is not None else 0
        if on_average > MOST_ON_AVERAGE:
            found = f"{on_average:.6g} files on average"
            yield Problem(("span",), found, f"at most {MOST_ON_AVERAGE}", "Shorten it, or lower per_second.")
        for problem in self._file(1, max(self.sizes), self.start).problems(around):
            yield replace(problem, at=("sizes",)) if problem.at == ("size",) else problem

    def packets(self) -> int:
        """Those of as many files as there may be, of the mean size."""
        mean = sum(size * weight for size, weight in self.sizes.items()) / sum(self.sizes.values())
        return int(2 * self.most * mean / self.segment)

    def plans(self, setting: Setting) -> list[Planned]:
        """A transfer for each file."""
        # Not every validation needs numpy.
        import numpy as np  # noqa: PLC0415

        from scpslab.scenario.draws import log  # noqa: PLC0415

        waits, lots = (setting.draws(f"mix {what}", self.name, self.most) for what in ("starts", "sizes"))
        gaps_ns = -log(1 - np.array(waits)) / self.per_second * SECOND_NS
        starts = [0, *accumulate(map(int, gaps_ns.tolist()))][: self.most]
        starts = [at for at in starts if self.span is None or at < self.span]
        begin_ns = self.start_ns(setting)
        weights = list(accumulate(self.sizes.values()))
        sizes = [[*self.sizes][bisect(weights, lot * weights[-1])] for lot in lots]
        files = enumerate(zip(sizes, starts, strict=False), 1)
        return [self._file(number, size, Start(begin_ns + at)).plan(setting) for number, (size, at) in files]

    def _file(self, number: int, size: Size, start: Start) -> File:
        shared = ("from_", "to", "segment", "timeout", "required", "kind")
        keys: dict[str, Any] = {name: getattr(self, name) for name in shared}
        keys |= {"name": f"{self.name}-{number}", "mix": self.name, "port": self.port + number - 1}
        return File.model_construct(**keys, size=size, start=start, precedence=None, congestion_control=None)
