"""The files of bit errors in a lab's input: gap vectors of links, bit maps of serial links."""

from __future__ import annotations

from pathlib import Path

from scpslab.errormodels import bit_map, gap_vector
from scpslab.names import file_name
from scpslab.plan import Plan
from scpslab.plan.error_models import VectorFile


def write_vectors(plan: Plan, folder: Path) -> None:
    """Writes the gap vector of every direction that has one, to <link>-<direction>.u64 in little-endian order.

    Serial links draw the errors of models themselves; for stored vectors they get bit maps, <link>-<direction>.bits.
    """
    for serial in plan.serial_links:
        for line in serial.directions:
            if line.errors and isinstance(line.errors.settings, VectorFile):
                (folder / file_name(serial.name, line.name, suffix=".bits")).write_bytes(bit_map(line.errors.settings))
    for link in plan.links:
        for direction in link.directions:
            gaps = gap_vector(direction.errors)
            if len(gaps):
                (folder / file_name(link.name, direction.name, suffix=".u64")).write_bytes(gaps.astype("<u8").tobytes())
