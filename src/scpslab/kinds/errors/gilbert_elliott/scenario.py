"""The Gilbert–Elliott channel (Gilbert 1960, Elliott 1963): a good and a bad state with a bit error rate each.

Its spells in each state are drawn, and for each state the errors among the bits that it sees: as many numbers, however
long the spells are, and however many errors there are in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from scpslab.core.problems import UnfitError
from scpslab.documents.parts import key
from scpslab.documents.quantities import PositiveDuration, Probability
from scpslab.scenario.errors import ErrorModel
from scpslab.scenario.kinds import planned_from

from scpslab.kinds.errors.gilbert_elliott.plan import GilbertElliott

if TYPE_CHECKING:
    from pathlib import Path

    from scpslab.scenario.draws import Draws, Floats, GapVector

# Places at which it is tried whether errors hit a packet.
STARTS = 1 << 16


class GilbertElliottModel(ErrorModel, kind="gilbert-elliott"):
    """A good and a bad state.

    Attributes:
        clock: gilbert-elliott: what its states last for: bits that are sent, or time (fades that pass while nobody
            sends).
        good_to_bad_per_bit: gilbert-elliott: probability per bit of a transition from the good to the bad state.
        bad_to_good_per_bit: gilbert-elliott: probability per bit of a transition from the bad to the good state.
        mean_good: gilbert-elliott with clock time: how long the good state lasts on average.
        mean_bad: gilbert-elliott with clock time: how long the bad state lasts on average.
        ber_good: gilbert-elliott: bit error rate in the good state.
        ber_bad: gilbert-elliott: bit error rate in the bad state.
    """

    clock: Literal["bits", "time"] = key("bits", example="time")
    good_to_bad_per_bit: Probability = key(0.0, example=1e-6)
    bad_to_good_per_bit: Probability = key(0.0, example=1e-3)
    mean_good: PositiveDuration | None = key(None, example="10 s")
    mean_bad: PositiveDuration | None = key(None, example="500 ms")
    ber_good: Probability = key(0.0, example=0.0)
    ber_bad: Probability = key(0.0, example=1e-2)

    def said(self) -> dict[str, Any]:
        """What is drawn from; keys of time only where it is the clock."""
        in_time = ("clock", "mean_good", "mean_bad")
        return {name: value for name, value in super().said().items() if self.clock == "time" or name not in in_time}

    def check_complete(self) -> None:
        """Refuses a state that is never reached, or never left."""
        if self.clock == "time":
            if not (self.mean_good and self.mean_bad):
                raise UnfitError("the clock time without durations", "mean_good and mean_bad")
        elif not (self.good_to_bad_per_bit and self.bad_to_good_per_bit):
            found = "the model gilbert-elliott without transitions"
            raise UnfitError(found, "good_to_bad_per_bit and bad_to_good_per_bit above 0")

    def plan(self, name: str, folder: Path) -> GilbertElliott:
        """Its part of the plan: transitions per bit, or per nanosecond."""
        if self.mean_good is None or self.mean_bad is None or self.clock == "bits":
            return planned_from(GilbertElliott, self, clock=None)
        leave = {"good_to_bad_per_bit": 1 / self.mean_good, "bad_to_good_per_bit": 1 / self.mean_bad}
        return planned_from(GilbertElliott, self, clock="time", **leave)

    @staticmethod
    def drawn(settings: GilbertElliott, n: int, draws: Draws) -> Mapping[str, GapVector]:
        """The lengths of `n` spells, good and bad by turns, in bits or nanoseconds; and the gaps of either state, in
        bits of its own. They begin in the bad state as often as the channel is there.
        """
        import numpy as np

        if not settings.ber_good and not settings.ber_bad:
            return {}
        leave = settings.good_to_bad_per_bit, settings.bad_to_good_per_bit
        begins_bad = draws.uniform(1)[0] <= leave[0] / sum(leave)
        spells = np.empty(n // 2 * 2, dtype=np.uint64)
        for state in (0, 1):
            spells[state::2] = draws.geometric(leave[state], n // 2)
        spells[0] *= not begins_bad
        gaps = [draws.geometric(ber, n) if ber else spells[:0] for ber in (settings.ber_good, settings.ber_bad)]
        return {".spells": spells, ".u64": gaps[0], ".bad.u64": gaps[1]}

    @staticmethod
    def lost(settings: GilbertElliott, drawn: Mapping[str, GapVector], bits: int) -> tuple[Floats, Floats]:
        """Spell by spell of the bad state, with the good one before it: in every one some places are tried where a
        packet meets it, and elsewhere it meets only the good state.
        """
        import numpy as np

        width = 1 if settings.in_time else bits
        ends = np.cumsum(drawn[".spells"].astype(np.float64))
        begins, ends = ends[::2], ends[1::2]
        first = np.maximum(begins - width + 1, np.concatenate(([-np.inf], ends[:-1])))
        touching = np.maximum(ends - first, 0)
        at = np.cumsum(touching) - touching
        step = touching.sum() / STARTS
        tried = (np.arange(STARTS) + 0.5) * step
        spell = np.searchsorted(at, tried, side="right") - 1
        start = first[spell] + np.floor(tried - at[spell])
        sums = np.concatenate(([0.0], np.cumsum(ends - begins)))
        stops = start + width

        def bad_until(place: Any) -> Any:
            begun = np.maximum(np.searchsorted(begins, place, side="right") - 1, 0)
            return sums[begun] + np.clip(place - begins[begun], 0, ends[begun] - begins[begun])

        bad = (bad_until(stops) - bad_until(start)) / width * bits
        gaps = (drawn.get(ending, np.zeros(0)) for ending in (".u64", ".bad.u64"))
        rates = [len(one) / max(one.sum(dtype=np.float64), 1.0) for one in gaps]
        right = [np.log1p(-min(rate, 1 - 1e-16)) for rate in rates]
        hit = -np.expm1((bits - bad) * right[0] + bad * right[1])
        places = np.diff(ends, prepend=0)
        touched = np.bincount(spell, hit, len(ends)) * step
        return touched - (places - touching) * np.expm1(bits * right[0]), places
