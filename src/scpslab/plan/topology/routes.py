"""The addresses of a network, and its routes: from the words of topologies and scenarios (nodes, links, addresses) to
prefixes and next hops.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network

from scpslab.core.addresses import alone, in_ipv6
from scpslab.core.names import node_and_link, shown
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import Address as Ip
from scpslab.plan.paths import Interface, parsed
from scpslab.plan.places import listed
from scpslab.plan.routes import NO_OPTIONS, Route

DEFAULT = "default"
DESTINATIONS = "a node, NODE.LINK, an IPv4 prefix, or default"
# A node, where its packets go, and by whom.
Words = tuple[str, str, str]


class WordError(ValueError):
    """A word that names no place of a network: what was found, and what it could have been."""

    def __init__(self, found: str, choices: Sequence[str]) -> None:
        super().__init__(f"found {found}; expected one of {listed(choices)}")
        self.found, self.choices = found, choices


class RouteError(ValueError):
    """A route that cannot be: `key` is the part that does not fit (node, to, via)."""

    def __init__(self, words: Words, key: str, error: WordError) -> None:
        node, to, via = words
        self.route = f"route of {node} to {to} via {via}"
        super().__init__(f"{self.route}: {error}. Correct it.")
        self.words, self.key, self.error = words, key, error


@dataclass(frozen=True)
class Address:
    """An address of a node: the link and the interface that has it, and the node at the link's other end."""

    node: str
    link: str
    interface: str
    other: str
    ip: Interface

    @property
    def name(self) -> str:
        """`NODE.LINK`, as people write it."""
        return f"{self.node}.{self.link}"


def addresses(network: NetworkPlan) -> list[Address]:
    """Every address of a network: first those of packet links, in the order of the links.

    Raises:
        ValueError: a text that is no address.
    """
    return [
        Address(end.node, link.name, end.interface or "", other.node, _address(link.name, end.ip))
        for link in network.all_links
        for end, other in (link.ends, link.ends[::-1])
        if end.ip
    ]


def _address(link: str, ip: str) -> Interface:
    try:
        return parsed(ip)
    except ValueError as error:
        found = f"link {link}: found the address {shown(ip)}"
        raise ValueError(f"{found}; expected one with its prefix, such as 10.1.0.1/24. Correct it.") from error


def address(known: Sequence[Address], word: str) -> Address:
    """The address that `NODE` (its first) or `NODE.LINK` means; an interface's name does as well as its link's.

    Raises:
        WordError: there is none.
    """
    node, link = node_and_link(word)
    own = [one for one in known if one.node == node]
    meant = [one for one in own if not link or link in (one.link, one.interface)]
    if not meant:
        raise WordError(f'"{word}"', [one.name for one in own] or list(dict.fromkeys(one.node for one in known)))
    return meant[0]


def routed(network: NetworkPlan, words: Iterable[Words]) -> NetworkPlan:
    """The network with these routes after its own. Of several routes with one node and prefix the last one holds.

    Raises:
        RouteError: a route whose words name nothing.
    """
    known = addresses(network)
    added: dict[str, dict[str, Route]] = {}
    for route in words:
        for prefix, via in _route(network, known, route):
            added.setdefault(route[0], {})[prefix] = Route(to=prefix, via=via, **NO_OPTIONS)
    nodes = tuple(
        node
        if isinstance(node, Switch) or node.name not in added
        else replace(node, routes=tuple(({route.to: route for route in node.routes} | added[node.name]).values()))
        for node in network.nodes
    )
    return replace(network, nodes=nodes)


def _route(network: NetworkPlan, known: Sequence[Address], route: Words) -> list[tuple[str, str]]:
    node, to, via = route
    speaking = [one.name for one in network.speaking]
    if node not in speaking:
        raise RouteError(route, "node", WordError(f'"{node}"', speaking))
    try:
        by = str(_next_hop(network, known, node, via))
    except WordError as error:
        raise RouteError(route, "via", error) from error
    try:
        prefixes = _destination(known, node, to)
    except WordError as error:
        raise RouteError(route, "to", error) from error
    # A neighbour is no way to itself.
    return [(prefix, by) for prefix in prefixes if prefix != alone(by)]


def _destination(known: Sequence[Address], node: str, to: str) -> list[str]:
    if to == DEFAULT:
        return [to]
    if to[:1].isdigit():
        try:
            prefix = str(IPv4Network(to))
        except ValueError as error:
            raise WordError(f'"{to}" ({error})', [DESTINATIONS]) from error
        return [in_ipv6(prefix) if _is_ipv6(known) else prefix]
    others = [one for one in known if one.node != node]
    names = list(dict.fromkeys(one.node for one in others))
    if to in names:
        return [alone(one.ip.ip) for one in others if one.node == to]
    if node_and_link(to)[1]:
        return [alone(address(others, to).ip.ip)]
    raise WordError(f'"{to}"', [*names, DEFAULT])


def _is_ipv6(known: Sequence[Address]) -> bool:
    """Whether addresses, which people write as those of IPv4, are those of IPv6 (core/addresses.py)."""
    return any(one.ip.version == 6 for one in known)


def _next_hop(network: NetworkPlan, known: Sequence[Address], node: str, via: str) -> Ip:
    """The address of a neighbour: named by itself, by the link to it, by its node, or by both."""
    subnets = [one.ip.network for one in known if one.node == node]
    near = [one for one in known if one.node != node and any(one.ip in subnet for subnet in subnets)]
    if via[:1].isdigit():
        wanted = in_ipv6(via) if _is_ipv6(known) else via
        meant = [one for one in near if str(one.ip.ip) == wanted]
        return _only(f'"{via}", which no neighbour of {node} has', meant, [str(one.ip.ip) for one in near])
    ends = {link.name: [end.node for end in link.ends] for link in network.all_links}
    links = [name for name, nodes in ends.items() if node in nodes]
    if via in links:
        meant = [one for one in near if one.node in ends[via] and one.link == via]
        return _only(f'"{via}", which joins {node} to no single neighbour', meant, [one.name for one in near])
    neighbour, link = node_and_link(via)
    meant = [one for one in near if one.node == neighbour and link in ("", one.link, one.interface)]
    if len(meant) > 1:
        return _only(f'"{via}", a neighbour on several links', [], [one.name for one in meant])
    return _only(
        f'"{via}", which is no neighbour of {node} and no link of it', meant, [*links, *(one.name for one in near)]
    )


def _only(what: str, meant: Sequence[Address], choices: Sequence[str]) -> Ip:
    if not meant:
        raise WordError(what, choices)
    return meant[0].ip.ip
