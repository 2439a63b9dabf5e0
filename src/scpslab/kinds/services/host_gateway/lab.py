"""`scps gateway` on a host, for the host's own unmodified programs: both sides are TUN devices, and packets keep the
host's addresses on either.

Rules of policy routing tell the sides apart by the interface where a packet comes from (docs/decisions/0105):

1. TCP that a link brings for the host goes to the gateway, before it counts as the host's own;
2. what is the host's own is delivered: what the gateway has written for the host's programs;
3. TCP that the host's programs send elsewhere goes to the gateway; what the gateway has written for others takes the
host's routes.
"""

from scpslab.core.strict_json import JsonObject
from scpslab.lab.netlink import TABLE_LOCAL, Netlink, inside

from scpslab.kinds.services.gateway.lab import LIMITS, Gateway
from scpslab.kinds.services.host_gateway.plan import HostGatewayService

# Numbers as `scps gateway --check` gives them to a machine of one's own.
FROM_LINKS, LOCAL, FROM_PROGRAMS = 100, 200, 300
LAN_TABLE, WAN_TABLE = 7168, 7169
LOOPBACK = "lo"
TCP, SCPS_COMPRESSED = 6, 105
# The kernel is the peer: there is no delay to fill, and what lies between the gateway and a program is in no account of
# SCPS-TP.
LAN_BUFFER_BYTES = 1 << 16
# The connection of a program and that of SCPS-TP have the same addresses and ports: a packet of the link must not be
# taken for one of the program's.
NO_EARLY_DEMUX = {"net.ipv4.tcp_early_demux": "0"}


class HostGateway(Gateway, kind="host-gateway"):
    """One gateway of the plan."""

    plan: HostGatewayService

    def settings(self) -> JsonObject:
        """Those of the host's SCPS-TP on the side of the links. Links judge packets one by one, so none is joined."""
        carriers: list[JsonObject] = [
            {"kind": "tun", "device": device, "offload": False}
            for device in (self.plan.lan_device, self.plan.wan_device)
        ]
        transport: JsonObject = {"buffer": LAN_BUFFER_BYTES, "mtu": self.plan.settings.get("mtu")}
        return {
            "lan": {"kind": "tcp", "carrier": carriers[0], "transport": transport},
            "wan": {"kind": "scps", "carrier": carriers[1], "transport": {**self.plan.settings}},
            "limits": LIMITS,
        }

    def wait(self) -> None:
        """Waits until it serves, and leads connections to it."""
        super().wait()
        plan = self.plan
        own = [end for link in self.network.plan.all_links for end in link.ends if end.node == self.node]
        ends = [end for end in own if end.ip is not None and end.interface is not None]
        # The gateway's packets have the host's own address, and come from a device.
        settings = {f"net.ipv4.conf.{plan.wan_device}.accept_local": "1"}
        self.network.node(self.node).sysctls(NO_EARLY_DEMUX | settings)
        with inside(self.network.pid(self.node)), Netlink() as here:
            for device, table in ((plan.lan_device, LAN_TABLE), (plan.wan_device, WAN_TABLE)):
                here.device_route(device, table)
            for end in ends:
                ip = str(end.ip).split("/")[0]
                for protocol in (TCP, SCPS_COMPRESSED):
                    here.rule(FROM_LINKS, WAN_TABLE, iif=end.interface, to=ip, protocol=protocol)
                here.rule(FROM_PROGRAMS, LAN_TABLE, iif=LOOPBACK, source=ip, protocol=TCP)
            here.rule(LOCAL, TABLE_LOCAL)
            here.delete_rule(0, TABLE_LOCAL)
