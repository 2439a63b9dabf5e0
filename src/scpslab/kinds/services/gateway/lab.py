"""`scps gateway` on a router: connections of unmodified programs over SCPS-TP. Its account becomes
records/<name>.jsonl.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from scpslab.core.names import file_name
from scpslab.core.strict_json import JsonObject
from scpslab.lab.loop import Loop
from scpslab.lab.records import Records
from scpslab.lab.services import Talking

from scpslab.kinds.services.gateway.plan import GatewayService
from scpslab.kinds.services.host_gateway.plan import HostGatewayService

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork

MILLISECOND_NS = 1_000_000
UDP_PORT = 7168
LIMITS: JsonObject = {"connections": 4096, "buffered_bytes": 1 << 40}


class Gateway(Talking, kind="gateway"):
    """One gateway of the plan."""

    what = "scps gateway"
    plan: GatewayService | HostGatewayService

    def __init__(self, plan: GatewayService | HostGatewayService, network: LabNetwork, loop: Loop) -> None:
        super().__init__(plan, network, loop)
        self.start_limit_ns = plan.timeout_ns

    def prepare(self) -> None:
        """Writes its settings."""
        self.network.inside(self.node, self._file("json")).write_text(json.dumps(self.settings(), indent=1) + "\n")

    def settings(self) -> JsonObject:
        """The file of settings that `scps gateway` reads (docs/gateway-reference.md)."""
        assert isinstance(self.plan, GatewayService)  # host_gateway.py has the others
        return settings(self.plan)

    def argv(self) -> list[str]:
        """The gateway, with its settings."""
        argv = [self.network.node(self.node).program("scps"), "gateway", self._file("json")]
        return [*argv, "--seed", str(self.plan.seed), "--counters", self._file("jsonl")]

    def write_records(self, folder: Path) -> None:
        """Writes the account of its connections; the processor's time is not an experiment's."""
        path = self.network.inside(self.node, self._file("jsonl"))
        written = Records(folder / file_name(self.name, suffix=".jsonl"))
        for line in path.read_text().splitlines() if path.exists() else ():
            fields = json.loads(line)
            fields.pop("cpu_s", None)
            written.write(**fields)
        written.close()

    def _file(self, suffix: str) -> str:
        return f"/tmp/scps-gateway-{self.name}.{suffix}"


def settings(plan: GatewayService) -> JsonObject:
    """Those of a gateway between two networks."""
    transport: JsonObject = {
        "rate": "none" if plan.rate_bps is None else f"{plan.rate_bps} bit/s",
        "rtt_ms": -(-plan.rtt_ns // MILLISECOND_NS),
        "mtu": plan.mtu_bytes,
        "congestion": plan.congestion_control,
        "loss": plan.loss_response,
    }
    lan: JsonObject = {}
    if plan.buffer_bytes is not None:
        transport["buffer"] = lan["buffer"] = plan.buffer_bytes
    # Links judge packets one by one, so none is joined.
    tun: JsonObject = {"kind": "tun", "device": plan.device, "routes": list(plan.far), "offload": False}
    udp: JsonObject = {
        "kind": "udp",
        "local": f"0.0.0.0:{UDP_PORT}",
        "remote": f"{plan.peer}:{UDP_PORT}",
        "offload": False,
    }
    return {
        "set_up": plan.set_up,
        "lan": {"kind": "tcp", "carrier": tun, "transport": lan},
        "wan": {"kind": "scps", "carrier": udp, "transport": transport},
        "limits": LIMITS,
    }
