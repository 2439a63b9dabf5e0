"""Makes topology files usable with Mininet's own `mn --custom FILE --topo NAME[,parameter=value…]`, inside the lab."""

import re
from collections.abc import Callable
from typing import Any

from scpslab.plan.topology import Parameters
from scpslab.plan.topology.network import Network

MISSING_SPACE = re.compile(r"^([\d.]+)([A-Za-z/]+)$")


def topo(parameters: Parameters, describe: Callable[[dict[str, int | None]], Network]) -> Callable[..., Any]:
    """A constructor for Mininet's `topos`. `mn` cannot pass spaces, so "9600bit/s" is read as "9600 bit/s"."""

    def build(**given: Any) -> Any:
        # Mininet is there only where a lab is: planning reads the same file without it.
        from scpslab.lab.network import PlanTopo  # noqa: PLC0415
        from scpslab.lab.wiring import indexed  # noqa: PLC0415

        values = {name: MISSING_SPACE.sub(r"\1 \2", str(value)) for name, value in given.items()}
        network = describe(parameters.read(values)).plan()
        return PlanTopo(network, indexed(network), standalone=True)

    return build
