"""What a plan needs of an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self


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
