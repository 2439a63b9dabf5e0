"""The plan as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scpslab.plan.cell import CellPlan
from scpslab.plan.network import NetworkPlan

FORMAT: Literal[2] = 2


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything a cell needs (docs/plan-format.md): a network, and the cell on it."""

    format_: Literal[2] = FORMAT
    network: NetworkPlan
    cell: CellPlan
