"""RED (Floyd and Jacobson 1993): packets are dropped at random, the more the longer the average queue."""

from __future__ import annotations

from collections.abc import Iterator

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Probability, Size
from scpslab.plan.disciplines import Queue
from scpslab.scenario.disciplines.kind import Discipline, Problem

from scpslab.kinds.disciplines.red.plan import AVERAGE_BITS, AVERAGE_PACKET_BYTES, SLOPE_LIMIT, is_possible
from scpslab.kinds.disciplines.red.plan import Red as Planned


class Keys(Part):
    """What a scenario says of RED."""

    red_min: Size | None = key(None, says="red: average queue at which dropping begins. Default: a quarter of the limit.", example="33 kB")
    red_max: Size | None = key(None, says="red: average queue at which every packet is dropped. Default: half of the limit.", example="66 kB")
    red_probability: Probability | None = key(None, says="red: probability of dropping just below red_max. Default: 0.1.", example=0.1)


class Red(Discipline):
    """Drops, or marks, between two thresholds."""

    keys = Keys
    planned = Planned
    marks = True

    def problems(self, given: Keys, room_bytes: int | None) -> Iterator[Problem]:
        """Thresholds that do not ascend to the limit, or that tc refuses, and probabilities too small for tc."""
        if room_bytes is None and (given.red_min is None or given.red_max is None):
            return
        least, most = thresholds(given, room_bytes or 0)
        found = f"found red_min {least} B, red_max {most} B"
        if not least < most <= (room_bytes or most):
            yield (), f"{found} and a limit of {room_bytes} B; expected them to ascend. Correct them."
        elif not is_possible(least, most):
            yield (), f"{found}; expected {_possible(least)}. The kernel's RED has no weight for these: correct them, or the limit."
        elif given.red_probability and given.red_probability <= (most - least) * SLOPE_LIMIT:
            smallest = f"{(most - least) * SLOPE_LIMIT:.2g}"
            yield ("red_probability",), f"found {given.red_probability:g} over {most - least} B; expected 0, or more than {smallest}. Correct the value."

    def settings(self, given: Keys, queue: Queue) -> Planned:
        """Floyd's advice for RED: from a quarter to a half of the buffer, one packet in ten at the upper end."""
        least, most = thresholds(given, queue.room_bytes)
        return Planned(min_bytes=least, max_bytes=most, probability=0.1 if given.red_probability is None else given.red_probability)


def thresholds(given: Keys, room_bytes: int) -> tuple[int, int]:
    """The two thresholds of a queue with room for so many bytes."""
    return room_bytes // 4 if given.red_min is None else given.red_min, room_bytes // 2 if given.red_max is None else given.red_max


def _possible(least: int) -> str:
    """The thresholds that there are beside one, in words."""
    if least <= AVERAGE_PACKET_BYTES:
        return f"a red_min of more than {AVERAGE_PACKET_BYTES} B"
    possible = [most for most in _candidates(least) if is_possible(least, most)]
    if not possible:
        return "smaller thresholds"
    return f"a red_max of {possible[0]} B to about {possible[-1]} B beside this red_min"


def _candidates(least: int) -> list[int]:
    """Upper thresholds, ascending: every one near the lower threshold, then in steps of a hundredth."""
    near = list(range(least + 1, least + 4 * AVERAGE_PACKET_BYTES))
    while near[-1] < 2**AVERAGE_BITS:
        near.append(near[-1] + near[-1] // 100)
    return near


KIND = Red()
