"""Bit-error models as scenarios and planning know them: each is a way to make a gap vector, the distances in bits from
one bit error to the next. One draws the numbers of lost packets instead.

A model is a folder in scpslab.kinds. The link (stage 3, link-model §2) knows gap vectors only; serial links, bit maps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scpslab.core.kinds import Registered, Registry
from scpslab.core.problems import Problem
from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Probability
from scpslab.plan.error_models import MODELS as PLANNED
from scpslab.plan.error_models import Errors, ErrorSettings
from scpslab.scenario.kinds import planned_from

if TYPE_CHECKING:
    from scpslab.scenario.draws import Draws, Floats, GapVector

LONGEST_MAP_BITS = 1 << 28
# The rules by which cells are carried out, as a number that manifests have under the name `vectors`: with another one
# the same plan gives other bytes (docs/moved-bytes.md). 1, which 0.3.0 did not write; 2: error vectors begin in their
# models' stationary state; 3: Gilbert-Elliott channels are drawn by spells, and all that has moved since 0.4.0.
RULES = 3
# A loss may be so many standard deviations from its formula, and a standard deviation so large a share of it.
MOST_DEVIATIONS, LARGEST_SHARE = 6, 0.1
# What is rarer happens in no lab; the distances between such errors are cut.
RAREST = 1e-9


MODELS: Registry[type[ErrorModel]] = Registry("errors", "scenario")


class ErrorModel(Registered, Part, registry=MODELS, is_plain=True):
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

    def check_complete(self) -> None:
        """Raises UnfitError if the keys lack something."""

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
    def gaps(settings: Any, n: int, draws: Draws) -> GapVector:
        """Distances in bits from just before the first bit to the first error, and from each error to the next (each at
        least 1).

        `n` of them, at least 2, or none when no bit is ever wrong. All but the first repeat.
        """
        import numpy as np

        return np.zeros(0, dtype=np.uint64)

    @classmethod
    def drawn(cls, settings: Any, n: int, draws: Draws) -> Mapping[str, GapVector]:
        """What a link of packets is given, by the endings of its files; `n` errors, spells or lost packets."""
        return {".u64": cls.gaps(settings, n, draws)}

    @staticmethod
    def lost(settings: Any, drawn: Mapping[str, GapVector], bits: int) -> tuple[Floats, Floats]:
        """Piece by piece of what was drawn, and as if the pieces had nothing to do with each other: at how many places
        a packet of so many bits may begin that errors hit, and at how many in all.
        """
        import numpy as np

        places = drawn[".u64"][1:].astype(np.float64)
        return np.minimum(places, bits), places

    @classmethod
    def bit_map(cls, settings: Any, n: int, draws: Draws, bits: int) -> bytes:
        """A map of `bits` bits, first bit first, in which 1 is an error: what a serial link repeats of a model that its
        channel does not know.
        """
        return bits_at(cls.gaps(settings, n, draws), bits)


class BitErrorRate(ErrorModel):
    """A model whose mean bit error rate can be said.

    Attributes:
        ber: Bit error rate, probability per bit (independent, clustered).
    """

    ber: Probability = key(0.0, example=1e-6)

    def has_errors(self) -> bool:
        """At a rate above 0."""
        return self.ber != 0


def drawn(errors: Errors) -> Mapping[str, GapVector]:
    """What is drawn of a plan's `errors` for a link of packets, by the endings of its files; what is empty is left out.

    `.u64`: gaps (bits, each at least 1). Gap 0 is the distance from just before the first bit to the first error. All
    others repeat: the last one leads to the error that gap 0 led to. `.spells`: bits or nanoseconds in a good and a bad
    state by turns, which repeat; `.bad.u64`: gaps of the bad state, as `.u64` has those of the good one, each in bits
    of its own state. `.drops`: the numbers of lost packets, ascending from at least 1.
    """
    found = MODELS[errors.model].drawn(errors.settings, max(errors.vector_errors, 2), _draws(errors))
    return {ending: numbers for ending, numbers in found.items() if len(numbers)}


def misfit(errors: Errors, found: Mapping[str, GapVector], bits: int) -> tuple[str, str] | None:
    """What was found, and expected, where what was drawn does not lose as many packets of so many bits as the closed
    form of its model says, or cannot tell.
    """
    expected = errors.settings.hit(bits)
    if not found or expected is None or expected < RAREST:
        return None
    hit, places = MODELS[errors.model].lost(errors.settings, found, bits)
    lost = hit.sum() / places.sum()
    deviation = math.sqrt(((hit - expected * places) ** 2).sum()) / places.sum()
    room = MOST_DEVIATIONS * (deviation + expected / math.sqrt(errors.vector_errors))
    if abs(lost - expected) <= room and deviation <= LARGEST_SHARE * expected:
        return None
    said = f"{errors.vector_errors} draws of the model {errors.model}"
    said += f", by which {100 * lost:.3g} % of packets of {bits // 8} B are lost"
    return said, f"{100 * expected:.3g} %, give or take a tenth of it"


def bit_map(errors: Errors, vector_bits: int) -> bytes | None:
    """The bit map of a serial link that repeats drawn vectors after `vector_bits` (0: never); None where its channel
    draws the errors by itself.
    """
    if errors.settings.CHANNEL is not None:
        return None
    bits = min(vector_bits or LONGEST_MAP_BITS, LONGEST_MAP_BITS)
    return MODELS[errors.model].bit_map(errors.settings, errors.vector_errors, _draws(errors), bits)


def _draws(errors: Errors) -> Draws:
    from scpslab.scenario.draws import Draws

    return Draws(errors.seed)


def bits_at(gaps: GapVector, bits: int) -> bytes:
    """The first `bits` bits of a gap vector as a bit map, filled up to a whole byte."""
    import numpy as np

    # Gaps that lead beyond the map are as good as the shortest that does; their sums would overflow.
    positions = np.cumsum(np.minimum(gaps, np.uint64(bits + 1))) - np.uint64(1)
    wrong = np.zeros(bits, dtype=np.uint8)
    wrong[positions[positions < bits].astype(np.int64)] = 1
    return np.packbits(wrong).tobytes()
