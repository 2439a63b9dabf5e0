"""Stacks as plans know them, and the `scps` program at the end of a transfer."""

from dataclasses import dataclass
from typing import Annotated

from scpslab.core.kinds import Registry
from scpslab.plan.np import NpEnd, SpEnd
from scpslab.plan.schema import OneOf, Part
from scpslab.plan.values import AxisValue, Interface, Ip, WholeSeed, Word


@dataclass(frozen=True)
class Carrier:
    """What carries TCP on a host: whether the `scps` program does, and whether the host is an image of somebody
    else's.
    """

    runs_scps: bool = False
    is_own_image: bool = False


KERNEL = Carrier()
# A `scps` program at each end of a transfer, with an address of its own (ScpsEnd).
SCPS = Carrier(runs_scps=True)
IMAGE = Carrier(is_own_image=True)
STACKS: Registry[Carrier] = Registry("stacks", "plan")
for _name, _carrier in (("kernel", KERNEL), ("scps", SCPS), ("image", IMAGE)):
    STACKS.register(_name, _carrier)

Stack = Annotated[str, OneOf(STACKS)]


class ScpsEnd(Part):
    """A `scps` program: its address and TUN device, its settings file (`scps send --config`), its seed.

    `np`: what it knows where it speaks SCPS-NP; `sp`: how it protects its segments where it does.
    """

    ip: Ip
    device: Interface
    settings: dict[Word, AxisValue]
    seed: WholeSeed
    np: NpEnd | None = None
    sp: SpEnd | None = None
