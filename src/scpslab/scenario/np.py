"""What nodes that speak SCPS-NP know of each other, and the addresses of `scps` programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scpslab.plan.network import NetworkPlan
from scpslab.plan.np import SERIAL_HOP, NpEnd, NpHop, NpHost
from scpslab.plan.paths import way
from scpslab.plan.serial_links import SerialLink

ADDRESS = "198.18.{host}.{program}"
ROUTER_PROGRAM = 1
# An NP address has eight bits for the host, and seven for a program of it.
MOST_HOSTS, MOST_PROGRAMS = 255, 127


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
        return tuple(host for _, host in self._programs())

    def _programs(self) -> Iterator[tuple[str, NpHost]]:
        """Every program's node and addresses."""
        for name, count in self.programs.items():
            for program in range(1, count + 1):
                ip = ADDRESS.format(host=self.numbers[name], program=program)
                yield name, NpHost(ip=ip, np=np_address(self.numbers[name], program))

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
        elsewhere = ((name, host) for name, host in self._programs() if name != node)
        hops = ((host.np, self._via(node, name, host.ip)) for name, host in elsewhere)
        return tuple(NpHop(to=to, via=via) for to, via in hops if via is not None)

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
