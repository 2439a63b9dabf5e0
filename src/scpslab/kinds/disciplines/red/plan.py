"""RED's settings."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scpslab.plan.disciplines.base import QueueSettings
from scpslab.plan.values import Probability, Size

# What tc takes for a packet when it makes the weight of the average from the thresholds.
AVERAGE_PACKET_BYTES = 1000
# tc states the probability for each byte between the thresholds, and nothing up to this.
SLOPE_LIMIT = 2.0**-31
# The kernel keeps the average shifted by the exponent of its weight in so many bits.
AVERAGE_BITS = 31


@dataclass(frozen=True, kw_only=True)
class Red(QueueSettings):
    """The average queue at which dropping begins, that at which every packet is dropped, and the probability just below it."""

    min_bytes: Size
    max_bytes: Size
    probability: Probability


def burst_packets(least_bytes: int, most_bytes: int) -> int:
    """How many packets at once RED lets pass: as tc-red(8) advises, (min + min + max) / (3 * avpkt)."""
    return max(1, (2 * least_bytes + most_bytes) // (3 * AVERAGE_PACKET_BYTES))


def is_possible(least_bytes: int, most_bytes: int) -> bool:
    """Whether tc and the kernel have a weight for these thresholds: tc looks for one that lets the burst pass, the kernel has bits for the average."""
    burst = burst_packets(least_bytes, most_bytes)
    wanted = burst + 1 - least_bytes / AVERAGE_PACKET_BYTES
    if wanted < 1:
        return False
    for exponent in range(1, 32):
        weight = 2.0**-exponent
        if wanted <= -math.expm1(burst * math.log1p(-weight)) / weight:
            return max(least_bytes, most_bytes).bit_length() + exponent <= AVERAGE_BITS
    return False


KIND = Red
