"""The files of bit errors in a lab's input: gap vectors of links, bit maps of serial links."""

from __future__ import annotations

from pathlib import Path

from scpslab.core.names import file_name
from scpslab.plan import Plan
from scpslab.scenario.vectors import bit_map, gap_vector, lost_packets


def write_vectors(plan: Plan, folder: Path) -> None:
    """Writes the gap vector of every direction that has one, to <link>-<direction>.u64 in little-endian order, and lost
    packets to <link>-<direction>.drops.

    Serial links draw the errors of the models that their channel knows; for the others they get bit maps,
    <link>-<direction>.bits.
    """
    for serial in plan.network.serial_links:
        for line in serial.directions:
            errors = plan.cell.errors(serial.name, line.name)
            bits = bit_map(errors, serial.vector_bits) if errors else None
            if bits is not None:
                (folder / file_name(serial.name, line.name, suffix=".bits")).write_bytes(bits)
    for link in plan.network.links:
        for direction in link.directions:
            errors = plan.cell.errors(link.name, direction.name)
            for numbers, suffix in ((gap_vector(errors), ".u64"), (lost_packets(errors), ".drops")):
                if len(numbers):
                    (folder / file_name(link.name, direction.name, suffix=suffix)).write_bytes(
                        numbers.astype("<u8").tobytes()
                    )
