"""`scps gateway` on a router: connections of unmodified programs over SCPS-TP. Its account becomes
records/<name>.jsonl.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from scpslab.core.strict_json import JsonObject
from scpslab.lab.loop import Loop
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
        """Writes its settings, and a file for its states, which it notes whether anybody wants them or not."""
        self._in_node("json").write_text(json.dumps(self.settings(), indent=1) + "\n")
        self._in_node("rows").touch()

    def settings(self) -> JsonObject:
        """The file of settings that `scps gateway` reads (docs/gateway-reference.md)."""
        assert isinstance(self.plan, GatewayService)  # host_gateway.py has the others
        return settings(self.plan)

    def argv(self) -> list[str]:
        """The gateway, with its settings."""
        argv = [self.network.node(self.node).program("scps"), "gateway", self._file("json")]
        argv += ["--seed", str(self.plan.seed), "--counters", self._file("jsonl")]
        return [*argv, "--states", self._file("rows")]

    def write_records(self, folder: Path) -> None:
        """Writes the account of its connections; the processor's time is not an experiment's."""
        path = self._in_node("jsonl")
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self.write_lines(folder, ({name: line[name] for name in line if name != "cpu_s"} for line in lines))

    def states(self) -> bytes:
        """What it has written of its connections over the link, also if it was killed."""
        return self._in_node("rows").read_bytes()

    def _file(self, suffix: str) -> str:
        return f"/tmp/scps-gateway-{self.name}.{suffix}"

    def _in_node(self, suffix: str) -> Path:
        return self.network.inside(self.node, self._file(suffix))


def settings(plan: GatewayService) -> JsonObject:
    """Those of a gateway between two networks."""
    transport: JsonObject = {
        "rate": "none" if plan.rate_bps is None else f"{plan.rate_bps} bit/s",
        "rtt_ms": -(-plan.rtt_ns // MILLISECOND_NS),
        "mtu": plan.mtu_bytes,
        "congestion": plan.congestion_control,
        "loss": plan.loss_response,
        **(plan.careful_resume or {}),
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
