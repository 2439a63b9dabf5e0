"""What a plan needs of an engine, and the files every engine gives the lab program."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from scpslab.errormodels import bit_map, gap_vector
from scpslab.names import file_name

# Real time has failed where more than this share of the lab's clock's ticks comes later than this.
LATENESS = {"tick_ns": 10_000_000, "late_ns": 5_000_000, "late_share": 0.01}


@dataclass(frozen=True)
class Needs:
    """What a plan needs besides the kernel's TCP on nodes that are processes: the `scps` program, Docker."""

    stack: bool
    docker: bool

    @classmethod
    def of(cls, plan: dict[str, Any]) -> Self:
        """The needs of a plan. The `scps` program has a part as a stack, as the channel of a serial link, or as the file protocol over any stack."""
        speaks = any(node.get("stack") == "scps" for node in plan["nodes"]) or any(workload["kind"] == "fp" for workload in plan.get("workloads", ()))
        return cls(bool(plan["serial_links"]) or speaks, plan.get("containers") == "docker")


def own_images(plan: dict[str, Any]) -> list[str]:
    """Names of the images that are not the project's."""
    return sorted({node["container"]["image"] for node in plan["nodes"] if node.get("stack") == "image" and "container" in node})


def plan_text(plan: dict[str, Any]) -> str:
    """The plan as its file has it."""
    return json.dumps(plan, indent=1) + "\n"


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


def on_the_wall_clock(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with what holds only where time is real: how late the lab may be."""
    return {**plan, "limits": {**LATENESS, **plan["limits"]}}
