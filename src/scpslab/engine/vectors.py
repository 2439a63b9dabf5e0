"""The files of bit errors that a lab is given: gap vectors of links, bit maps of serial links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scpslab.errormodels import bit_map, gap_vector
from scpslab.names import file_name


def write_vectors(plan: dict[str, Any], folder: Path) -> None:
    """Writes the gap vector of every direction that has one: <link>-<direction>.u64, little-endian.

    Serial links draw their models themselves; stored vectors become bit maps for them: <link>-<direction>.bits.
    """
    for link in plan["serial_links"]:
        for direction in link["directions"]:
            if direction["errors"] and direction["errors"]["model"] == "vector-file":
                (folder / file_name(link["name"], direction["name"], suffix=".bits")).write_bytes(bit_map(direction["errors"]["settings"]))
    for link in plan["links"]:
        for direction in link["directions"]:
            gaps = gap_vector(direction["errors"])
            if len(gaps):
                (folder / file_name(link["name"], direction["name"], suffix=".u64")).write_bytes(gaps.astype("<u8").tobytes())
