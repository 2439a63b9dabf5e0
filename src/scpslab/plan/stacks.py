"""What carries transport on a host, and the `scps` program at the end of a transfer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from scpslab.plan.schema import Text
from scpslab.plan.values import AxisValue, Interface, Ip, WholeSeed, Word

STACKS = ["kernel", "scps", "image"]
Stack = Annotated[str, Text(f"one of {', '.join(STACKS)}", STACKS.__contains__)]


@dataclass(frozen=True, kw_only=True)
class ScpsEnd:
    """A `scps` program: its address and TUN device, its settings file (`scps send --config`), its seed."""

    ip: Ip
    device: Interface
    settings: dict[Word, AxisValue]
    seed: WholeSeed
