"""Bit-error models as scenarios and planning know them: each is a way to make a gap vector, the distances in bits from
one bit error to the next. One draws the numbers of lost packets instead.

A model is a folder in scpslab.kinds. The link (stage 3, link-model §2) knows gap vectors only; `vectors.py` makes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scpslab.core.kinds import Registry
from scpslab.core.problems import Problem
from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Probability
from scpslab.plan.error_models import MODELS as PLANNED
from scpslab.plan.error_models import ErrorSettings
from scpslab.scenario.kinds import planned_from

if TYPE_CHECKING:
    from scpslab.scenario.draws import Draws, GapVector

LONGEST_MAP_BITS = 1 << 28
# The rules by which errors are drawn, as a number that manifests have. 1, which 0.3.0 did not write: clusters began in
# the middle of one, Gilbert-Elliott channels in the good state, bit maps with what was left of them. 2: every model
# begins in its stationary state, a bit map with its first bit.
VECTOR_RULES = 2


class ErrorModel(Part):
    """What a scenario says of an error model: keys that stand flat in its `errors`, beside those of all other models.

    Only who draws needs numpy, which takes as long to load as all
    the rest: it is imported where it is used.
    """

    @classmethod
    def drawn_from(cls) -> tuple[str, ...]:
        """The keys from which the seed is made, so that other settings draw other errors."""
        return tuple(cls.model_fields)

    def said(self) -> dict[str, Any]:
        """The values of these keys."""
        return {name: getattr(self, name) for name in self.drawn_from()}

    def incomplete(self) -> str | None:
        """What the keys lack, if anything."""
        return None

    def misfit(self, folder: Path) -> Problem | None:
        """What does not fit in a scenario beside `folder`; asked of every model, chosen or not."""
        return None

    def has_errors(self) -> bool:
        """Whether any bit can be wrong; where none can, the plan says model none."""
        return True

    def plan(self, name: str, folder: Path) -> ErrorSettings:
        """The plan's settings of the model of that name; `folder` is the scenario's."""
        return planned_from(PLANNED[name], self)

    @staticmethod
    def content(settings: Any) -> bytes:
        """The file that a plan's settings name, of a model whose plan says that they do.

        Raises:
            ScenarioError: it is not there, or is another one than it was when the plan was made.
        """
        raise NotImplementedError

    @classmethod
    def of_a_run(cls, named: Collection[Any], contents: Mapping[str, bytes]) -> AbstractContextManager[None]:
        """Until its end, the files of these settings of somebody else's run are the contents, and no others are
        opened.
        """
        return nullcontext()

    @staticmethod
    def gaps(settings: Any, n: int, draws: Draws) -> GapVector:
        """Distances in bits from just before the first bit to the first error, and from each error to the next (each at
        least 1).

        `n` of them, at least 2, or none when no bit is ever wrong. All but the first repeat.
        """
        import numpy as np

        return np.zeros(0, dtype=np.uint64)

    @staticmethod
    def lost_packets(settings: Any, n: int, draws: Draws) -> GapVector:
        """Numbers of packets that are lost, counted from 1 and ascending, of a model whose plan says that it names
        packets; `n` of them.
        """
        raise NotImplementedError

    @classmethod
    def bit_map(cls, settings: Any, n: int, draws: Draws, bits: int) -> bytes:
        """A map of `bits` bits, first bit first, in which 1 is an error: what a serial link repeats of a model that its
        channel does not know.
        """
        return bits_at(cls.gaps(settings, n, draws), bits)


class BitErrorRate(ErrorModel):
    """A model whose mean bit error rate can be said."""

    ber: Probability = key(0.0, says="Bit error rate, probability per bit (independent, clustered).", example=1e-6)

    def has_errors(self) -> bool:
        """At a rate above 0."""
        return self.ber != 0


MODELS: Registry[type[ErrorModel]] = Registry("errors", "scenario")


def bits_at(gaps: GapVector, bits: int) -> bytes:
    """The first `bits` bits of a gap vector as a bit map, filled up to a whole byte."""
    import numpy as np

    # Gaps that lead beyond the map are as good as the shortest that does; their sums would overflow.
    positions = np.cumsum(np.minimum(gaps, np.uint64(bits + 1))) - np.uint64(1)
    wrong = np.zeros(bits, dtype=np.uint8)
    wrong[positions[positions < bits].astype(np.int64)] = 1
    return np.packbits(wrong).tobytes()
