"""The gateways (`scps gateway`) of hosts of stack `scps`, which the lab has of its own: where unmodified programs run,
workloads or commands.

Each is told what `scps send` on its host would be, for all that the host talks to.
"""

from collections.abc import Iterator, Mapping

from scpslab.core.names import node_and_link
from scpslab.plan.paths import NoPathError, Way
from scpslab.plan.values import AxisValue
from scpslab.scenario.scps_ends import header_bytes, rate_that_fits
from scpslab.scenario.services import Around, Service, Site
from scpslab.scenario.workloads import Setting

from scpslab.kinds.services.host_gateway.plan import HostGatewayService

NAME = "gateway-{host}"
LAN, WAN = "gw-lan", "gw-wan"
TIMEOUT_NS = 30 * 10**9
# What `scps send` takes without being told, and `scps gateway` asks for (crates/scps-tp/src/config.rs).
RATE_BPS = 2_000_000


class HostGateway(Service, kind="host-gateway"):
    """Scenarios do not name it."""

    @classmethod
    def of_lab(cls, site: Site) -> Iterator[HostGatewayService]:
        """One for each host that needs it."""
        hosts = dict.fromkeys(site.setting.hosts, "host")
        for name, host in cls.own(site.model, hosts).items():
            yield HostGatewayService(
                name=name,
                node=host,
                lan_device=LAN,
                wan_device=WAN,
                settings=_settings(site, host),
                seed=site.setting.seed("gateway", host),
                timeout_ns=TIMEOUT_NS,
            )

    @classmethod
    def own(cls, model: Around, nodes: Mapping[str, str]) -> Mapping[str, str]:
        """One on each host where unmodified programs run: workloads, and commands of events and services.

        What commands do nobody knows, so one is enough; a host that cannot have a gateway has its kernel's TCP for
        them.
        """
        busy = _commanded(model) | {node_and_link(end)[0] for ends in _unmodified(model) for end in ends}
        hosts = (name for name, kind in nodes.items() if kind == "host" and name in busy)
        return {NAME.format(host=host): host for host in hosts if _can_have_one(model, host)}


def _settings(site: Site, host: str) -> dict[str, AxisValue]:
    """Those of the host.

    Its packets fit through every path, and without congestion control their rate is that of the slowest.
    """
    setting = site.setting
    node = setting.hosts[host]
    assert node.scps is not None  # the host's stack is `scps`
    found = list(_ways(host, _peers(site.model, host), setting))
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


def _peers(model: Around, host: str) -> set[str] | None:
    """The other ends of the workloads that need the gateway of `host`, as the scenario writes them; None if it may be
    any, because commands run there.
    """
    if host in _commanded(model):
        return None
    pairs = [pair for first, second in _unmodified(model) for pair in ((first, second), (second, first))]
    return {other for own, other in pairs if node_and_link(own)[0] == host}


def _commanded(model: Around) -> set[str]:
    nodes = (getattr(event, "node", None) for event in model.events or ())
    return {node for node in nodes if node is not None} | {
        service.node for service in model.services if service.runs_commands
    }


def _unmodified(model: Around) -> Iterator[tuple[str, str]]:
    for workload in model.workloads:
        if workload.is_unmodified:
            yield workload.from_, workload.to


def _can_have_one(model: Around, host: str) -> bool:
    part = model.host(host)
    return part.carrier.runs_scps and not part.plan().no_gateway
