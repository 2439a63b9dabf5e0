"""The gateways (`scps gateway`) of hosts of stack `scps`, which the lab has of its own: where unmodified programs run,
workloads or commands.

Each is told what `scps send` on its host would be, for all that the host talks to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from scpslab.core.names import node_and_link
from scpslab.plan.paths import NoPathError
from scpslab.plan.values import AxisValue
from scpslab.plan.ways import Way
from scpslab.scenario.gateways import gateway_hosts, peers
from scpslab.scenario.scps_ends import header_bytes, rate_that_fits
from scpslab.scenario.services import Service, Site
from scpslab.scenario.workloads import Setting

from scpslab.kinds.services.host_gateway.plan import HostGatewayService

if TYPE_CHECKING:
    from scpslab.scenario.model import ScenarioFile

NAME = "gateway-{host}"
LAN, WAN = "gw-lan", "gw-wan"
PATIENCE_NS = 30 * 10**9
# What `scps send` takes without being told, and `scps gateway` asks for (crates/scps-tp/src/config.rs).
RATE_BPS = 2_000_000


class HostGateway(Service):
    """Scenarios do not name it."""

    @classmethod
    def of_lab(cls, site: Site) -> Iterator[HostGatewayService]:
        """One for each host that needs it."""
        for host in gateway_hosts(site.cell.model, list(site.setting.hosts)):
            yield HostGatewayService(
                name=NAME.format(host=host),
                node=host,
                lan_device=LAN,
                wan_device=WAN,
                settings=_settings(site, host),
                seed=site.setting.seed("gateway", host),
                patience_ns=PATIENCE_NS,
            )

    @classmethod
    def own_names(cls, model: ScenarioFile, nodes: Mapping[str, str]) -> Iterator[str]:
        """One a host that needs it."""
        for host in gateway_hosts(model, [name for name, kind in nodes.items() if kind == "host"]):
            yield NAME.format(host=host)


def _settings(site: Site, host: str) -> dict[str, AxisValue]:
    """Those of the host.

    Its packets fit through every path, and without congestion control their rate is that of the slowest.
    """
    setting = site.setting
    node = setting.hosts[host]
    assert node.scps is not None  # the host's stack is `scps`
    found = list(_ways(host, peers(site.cell.model, host), setting))
    settings: dict[str, AxisValue] = {**node.scps}
    if mtus := [hop.mtu_bytes for way in found for hop in way]:
        settings["mtu"] = min(mtus)
    if node.paced_by_slowest_hop and "mtu" in settings:
        rates = [
            rate
            for way in found
            if (rate := rate_that_fits(settings, way, header_bytes(node), timestamps=node.timestamps))
        ]
        if rates:
            settings["rate"] = str(min(rates))
    settings.setdefault("rate", str(RATE_BPS))
    return settings


def _ways(host: str, others: set[str] | None, setting: Setting) -> Iterator[Way]:
    """The ways to the ends that are named, or to all of other hosts."""
    for end in setting.addresses:
        other = node_and_link(end)[0]
        if other == host or other not in setting.hosts or (others is not None and end not in others):
            continue
        try:
            yield setting.way(host, end)
        except NoPathError:
            continue


KIND = HostGateway
