"""What nodes that speak SCPS-NP know of each other, and the addresses of `scps` programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scpslab.plan.network import NetworkPlan
from scpslab.plan.np import SERIAL_HOP, NpEnd, NpHop, NpHost
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.ways import way

ADDRESS = "198.18.{host}.{program}"
ROUTER_PROGRAM = 1


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
        hosts = self.hosts()
        ips = {host.np: host.ip for host in hosts}
        return NpEnd(
            hosts=hosts,
            next_hops=tuple(hop for hop in self.next_hops(node) if hop.via != ips[hop.to]),
            default_precedence=default_precedence,
            believed=tuple(self.router_ip(router) for router in self.routers),
        )

    def router_ip(self, router: str) -> str:
        """The address of a router's program."""
        return ADDRESS.format(host=self.numbers[router], program=ROUTER_PROGRAM)

    def next_hops(self, node: str) -> tuple[NpHop, ...]:
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
