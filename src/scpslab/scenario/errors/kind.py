"""What an error model is on the describing side: what a scenario says of it, how it is planned, where its errors
fall.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Probability
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.error_models.base import ErrorSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from scpslab.scenario.errors.draws import Draws

    GapVector = npt.NDArray[np.uint64]

LONGEST_MAP_BITS = 1 << 28


class ErrorModel:
    """An error model.

    Its `keys` stand flat in a scenario's `errors`, beside those of all other models. `planned` is what a plan and the
    guest know of it. Only who draws needs numpy, which takes as long to load as all the rest: it is imported where it
    is used.
    """

    keys: ClassVar[type[Part]] = Part
    planned: ClassVar[type[ErrorSettings]]

    def drawn_from(self) -> tuple[str, ...]:
        """The keys from which the seed is made, so that other settings draw other errors."""
        return tuple(self.keys.model_fields)

    def incomplete(self, errors: Any) -> str | None:
        """What a scenario's `keys` of this model lack, if anything."""
        return None

    def problems(self, errors: Any, folder: Path) -> Iterator[Problem]:
        """What does not fit in a scenario beside `folder`, with the key; asked of every model, chosen or not."""
        yield from ()

    def has_errors(self, errors: Any) -> bool:
        """Whether any bit can be wrong; where none can, the plan says model none."""
        return True

    def plan(self, errors: Any, folder: Path) -> ErrorSettings:
        """The plan's settings; `folder` is the scenario's."""
        return self.planned(**{name: getattr(errors, name) for name in self.keys.model_fields})

    def gaps(self, settings: Any, n: int, draws: Draws) -> GapVector:
        """Distances in bits from just before the first bit to the first error, and from each error to the next (each at
        least 1).

        `n` of them, at least 2, or none when no bit is ever wrong. All but the first repeat.
        """
        raise NotImplementedError

    def lost_packets(self, settings: Any, n: int, draws: Draws) -> GapVector:
        """Numbers of packets that are lost, counted from 1 and ascending, of a model whose plan says that it names
        packets; `n` of them.
        """
        raise NotImplementedError

    def bit_map(self, settings: Any, n: int, draws: Draws, bits: int) -> bytes:
        """A map of `bits` bits, first bit first, in which 1 is an error: what a serial link repeats of a model that its
        channel does not know.
        """
        return bits_at(self.gaps(settings, n, draws), bits)


class BitErrorRate(Part):
    """Settings of a model whose mean bit error rate can be said."""

    ber: Probability = key(0.0, says="Bit error rate, probability per bit (independent, clustered).", example=1e-6)


def bits_at(gaps: GapVector, bits: int) -> bytes:
    """The first `bits` bits of a gap vector as a bit map, filled up to a whole byte."""
    import numpy as np

    # Gaps that lead beyond the map are as good as the shortest that does; their sums would overflow.
    positions = np.cumsum(np.minimum(gaps, np.uint64(bits + 1))) - np.uint64(1)
    wrong = np.zeros(bits, dtype=np.uint8)
    wrong[positions[positions < bits].astype(np.int64)] = 1
    return np.packbits(wrong).tobytes()
