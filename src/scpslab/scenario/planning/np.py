"""What nodes that speak SCPS-NP know: the NP addresses of all programs and routers, and for each the node that is next
on the way.

Every program on such a host has an NP address of its own, as it has an IPv4 address of its own (network.py): host
and program, both in two octets. A way is that of the fewest links; over LANs and IP routers the next NP node is reached
in IP, over a serial line it is the other end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from scpslab.core.seeds import stream
from scpslab.plan.network import NetworkPlan
from scpslab.plan.np import LAN, SERIAL_HOP, NpEnd, NpHop, NpHost, NpInterface, NpQueue
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.ways import way
from scpslab.scenario.model import RouterSettings
from scpslab.scenario.planning.network import ADDRESS

from scpslab.kinds.services.np_router.plan import NpRouterService

ROUTER_PROGRAM = 1
# A router has one device for all that goes over IP; its datagrams pass ten routers (scps-np §8).
DEVICE, HOPS = "np0", 10
SEED_DIGITS = 12


def np_address(host: int, program: int) -> str:
    """The NP address of a program: even, as an end system's is (scps-np §1.6)."""
    return f"{host << 8 | program << 1:04x}"


@dataclass(frozen=True)
class NpNetwork:
    """The NP nodes of a network: `numbers` of those with addresses, how many `programs` each has, and the routers."""

    network: NetworkPlan
    numbers: Mapping[str, int]
    programs: Mapping[str, int]
    routers: tuple[str, ...]

    def hosts(self) -> tuple[NpHost, ...]:
        """Everybody's addresses: the same table on every node."""
        return tuple(
            NpHost(
                ip=ADDRESS.format(host=self.numbers[name], program=program), np=np_address(self.numbers[name], program)
            )
            for name, count in self.programs.items()
            for program in range(1, count + 1)
        )

    def end(self, node: str, default_precedence: int) -> NpEnd:
        """What a program on a host knows."""
        hops = self._next_hops(node)
        return NpEnd(
            hosts=self.hosts(),
            next_hops=tuple(hop for hop in hops if hop.via != self._ip_of(hop.to)),
            default_precedence=default_precedence,
            believed=tuple(self.router_ip(router) for router in self.routers),
        )

    def router_ip(self, router: str) -> str:
        """The address of a router's program."""
        return ADDRESS.format(host=self.numbers[router], program=ROUTER_PROGRAM)

    def service(self, router: str, settings: RouterSettings, seed: int, repeat: int) -> NpRouterService:
        """The program of a router, with its tables and interfaces."""
        hops = self._next_hops(router)
        queue = NpQueue(limit=settings.queue_limit, purge=settings.queue_purge, rule=settings.discard)
        mtus = [link.mtu_bytes for link in self.network.links if router in (link.ends[0].node, link.ends[1].node)]
        neighbours = tuple(dict.fromkeys(hop.via for hop in hops if hop.via != SERIAL_HOP))
        lan = (
            NpInterface(
                name=LAN,
                line=None,
                neighbours=neighbours,
                mtu_bytes=min(mtus),
                rate_bps=None,
                bits_per_byte=8,
                queue=queue,
            )
            if neighbours
            else None
        )
        lines = [
            self._line(link, router, queue)
            for link in self.network.serial_links
            if router in (link.ends[0].node, link.ends[1].node)
        ]
        return NpRouterService(
            name=router,
            node=router,
            ip=self.router_ip(router),
            device=DEVICE,
            seed=int(stream(seed, "scps-router", router, repeat)[:SEED_DIGITS], 16),
            default_precedence=settings.default_precedence,
            hop_count=HOPS,
            hosts=self.hosts(),
            next_hops=hops,
            interfaces=tuple(
                replace(interface, sp=self._rule(settings, interface.name))
                for interface in (*((lan,) if lan else ()), *lines)
            ),
        )

    @staticmethod
    def _rule(settings: RouterSettings, interface: str) -> Literal["required", "none"] | None:
        rule = settings.sp.get(interface, "accepted")
        return None if rule == "accepted" else rule

    @staticmethod
    def _line(link: SerialLink, node: str, queue: NpQueue) -> NpInterface:
        direction = next(direction for direction in link.directions if direction.from_ == node)
        return NpInterface(
            name=link.name,
            line=link.name,
            neighbours=(SERIAL_HOP,),
            mtu_bytes=link.mtu_bytes,
            rate_bps=direction.rate_bps,
            bits_per_byte=link.bits_per_byte,
            queue=queue,
        )

    def _next_hops(self, node: str) -> tuple[NpHop, ...]:
        """The next NP node to every program elsewhere that can be reached."""
        found = []
        for name, count in self.programs.items():
            for program in range(1, count + 1) if name != node else ():
                ip = ADDRESS.format(host=self.numbers[name], program=program)
                if (via := self._via(node, name, ip)) is not None:
                    found.append(NpHop(to=np_address(self.numbers[name], program), via=via))
        return tuple(found)

    def _via(self, node: str, other: str, ip: str) -> str | None:
        """The link address of the first NP node on the way to a program of `other`, which has the address `ip`."""
        for hop in way(self.network.all_links, node, other):
            reached = hop.direction.to
            if isinstance(hop.link, SerialLink):
                return SERIAL_HOP
            if reached == other:
                return ip
            if reached in self.routers:
                return self.router_ip(reached)
        return None

    def _ip_of(self, np: str) -> str:
        return next(host.ip for host in self.hosts() if host.np == np)
