"""RED's settings."""

import math
from typing import ClassVar

from scpslab.core.problems import Problem
from scpslab.plan.disciplines import QueueSettings
from scpslab.plan.values import Probability, Size

# What tc takes for a packet when it makes the weight of the average from the thresholds.
AVERAGE_PACKET_BYTES = 1000
# tc states the probability for each byte between the thresholds, and nothing up to this.
SLOPE_LIMIT = 2.0**-31
# The kernel keeps the average shifted by the exponent of its weight in so many bits.
AVERAGE_BITS = 31


class Red(QueueSettings, kind="red"):
    """The average queue at which dropping begins, that at which every packet is dropped, and the probability just below
    it.
    """

    MARKS: ClassVar[bool] = True
    DRAWS: ClassVar[bool] = True

    min_bytes: Size
    max_bytes: Size
    probability: Probability

    def misfit(self, room_bytes: int) -> Problem | None:
        """Thresholds that do not ascend to the limit, or that tc refuses, and probabilities too small for tc."""
        least, most, probability = self.min_bytes, self.max_bytes, self.probability
        found = f"red_min {least} B, red_max {most} B"
        smallest = (most - least) * SLOPE_LIMIT
        if not least < most <= room_bytes:
            return Problem((), f"{found} and a limit of {room_bytes} B", "them to ascend", "Correct them.")
        if not is_possible(least, most):
            advice = "The kernel's RED has no weight for these: correct them, or the limit."
            return Problem((), found, _possible(least), advice)
        if 0 < probability <= smallest:
            found = f"{probability:g} over {most - least} B"
            return Problem(("probability",), found, f"0, or more than {smallest:.2g}", "Correct the value.")
        return None


def burst_packets(least_bytes: int, most_bytes: int) -> int:
    """How many packets at once RED lets pass: as tc-red(8) advises, (min + min + max) / (3 * avpkt)."""
    return max(1, (2 * least_bytes + most_bytes) // (3 * AVERAGE_PACKET_BYTES))


def is_possible(least_bytes: int, most_bytes: int) -> bool:
    """Whether tc and the kernel have a weight for these thresholds: tc looks for one that lets the burst pass, the
    kernel has bits for the average.
    """
    burst = burst_packets(least_bytes, most_bytes)
    wanted = burst + 1 - least_bytes / AVERAGE_PACKET_BYTES
    if wanted < 1:
        return False
    for exponent in range(1, 32):
        weight = 2.0**-exponent
        if wanted <= -math.expm1(burst * math.log1p(-weight)) / weight:
            return max(least_bytes, most_bytes).bit_length() + exponent <= AVERAGE_BITS
    return False


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
