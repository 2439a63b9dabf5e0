"""The programs of routers of SCPS-NP: each node of that kind has one, which the lab starts.

`routers` of a scenario has its settings.
"""

from collections.abc import Iterator, Mapping

from scpslab.plan.np import LAN, SERIAL_HOP, NpInterface, NpQueue
from scpslab.scenario.services import Around, Service, Site

from scpslab.kinds.services.np_router.plan import NpRouterService

# A router has one device for all that goes over IP; its datagrams pass ten routers (scps-np §8).
DEVICE, HOPS = "np0", 10


class NpRouter(Service, kind="np-router"):
    """Scenarios do not name it."""

    @classmethod
    def of_lab(cls, site: Site) -> Iterator[NpRouterService]:
        """One for each router, with its tables and interfaces."""
        for router in site.np.routers:
            yield NpRouterService(
                name=router,
                node=router,
                ip=site.np.router_ip(router),
                device=DEVICE,
                seed=site.setting.seed("scps-router", router),
                default_precedence=site.model.router(router).default_precedence,
                hop_count=HOPS,
                hosts=site.np.hosts(),
                next_hops=site.np.next_hops(router),
                interfaces=tuple(_interfaces(site, router)),
            )

    @classmethod
    def own(cls, model: Around, nodes: Mapping[str, str]) -> Mapping[str, str]:
        """One on each router, whose name it has."""
        return {name: name for name, kind in nodes.items() if kind == "scps-router"}


def _interfaces(site: Site, router: str) -> Iterator[NpInterface]:
    """Its LAN, if there are neighbours, then its serial lines."""
    settings, network = site.model.router(router), site.np.network
    queue = NpQueue(limit=settings.queue_limit, purge=settings.queue_purge, rule=settings.discard)
    sp = {name: rule for name, rule in settings.sp.items() if rule != "accepted"}
    neighbours = tuple(dict.fromkeys(hop.via for hop in site.np.next_hops(router) if hop.via != SERIAL_HOP))
    if neighbours:
        yield NpInterface(
            name=LAN,
            line=None,
            neighbours=neighbours,
            mtu_bytes=min(link.mtu_bytes for link in network.links if router in {end.node for end in link.ends}),
            rate_bps=None,
            bits_per_byte=8,
            queue=queue,
            sp=sp.get(LAN),
        )
    for link in network.serial_links:
        for direction in link.directions:
            if direction.from_ == router:
                yield NpInterface(
                    name=link.name,
                    line=link.name,
                    neighbours=(SERIAL_HOP,),
                    mtu_bytes=link.mtu_bytes,
                    rate_bps=direction.rate_bps,
                    bits_per_byte=link.bits_per_byte,
                    queue=queue,
                    sp=sp.get(link.name),
                )
