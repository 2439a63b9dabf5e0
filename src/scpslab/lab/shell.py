"""Prompts for people: Mininet's on the plan's network, or the guest's own shell, from which `mn --custom` can be typed."""

from __future__ import annotations

import os
import subprocess
from typing import Any

from mininet.cli import CLI

from scpslab.lab.cell import Cell
from scpslab.lab.place import PROGRAMS

TOPOLOGIES = str(PROGRAMS / "topologies")


class LabCLI(CLI):  # type: ignore[misc]  # Mininet has no types
    """Mininet's own prompt under our name."""

    prompt = "scpslab> "


def interact(cell: Cell) -> dict[str, Any]:
    """Talks to the person at the console until they leave."""
    if cell.plan["cell"]["shell"] == "bash":
        _bash(cell.plan["topology"])
    else:
        _mininet(cell)
    return {"status": "completed", "reason": "", "epoch_realtime_ns": None, "virtual_s": None}


def _mininet(cell: Cell) -> None:
    cell.set_up()
    hosts = [node["name"] for node in cell.plan["nodes"] if node["kind"] != "switch"]
    print(f"The network {cell.plan['topology']} is up. Nodes: {', '.join(hosts)}.")
    print(f"Type a node and a command ({hosts[0]} ip addr), help, or exit.")
    LabCLI(cell.network.mininet)


def _bash(topology: str) -> None:
    print(f"A shell in the guest. For example: mn --custom {TOPOLOGIES}/{topology}.py --topo {topology}")
    subprocess.run(["bash", "--norc", "-i"], cwd=TOPOLOGIES, env=os.environ | {"PYTHONPATH": str(PROGRAMS), "PS1": "lab# "}, check=False)
