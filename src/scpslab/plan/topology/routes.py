"""Routes: from the words of topologies and scenarios (nodes, links, addresses) to prefixes and next hops."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network

from scpslab.core.names import node_and_link
from scpslab.plan.places import listed
from scpslab.plan.topology.description import Network
from scpslab.plan.topology.interfaces import Address, addresses

DEFAULT = "default"
DESTINATIONS = "a node, NODE.LINK, an IPv4 prefix, or default"


class WordError(ValueError):
    """A word that names no place of a network: what was found, and what it could have been."""

    def __init__(self, found: str, choices: Sequence[str]) -> None:
        super().__init__(f"found {found}; expected one of {listed(choices)}")
        self.found, self.choices = found, choices


class RouteError(ValueError):
    """A route that cannot be: `key` is the part that does not fit (node, to, via)."""

    def __init__(self, route: tuple[str, str, str], key: str, word: WordError) -> None:
        node, to, via = route
        super().__init__(f"route of {node} to {to} via {via}: {word}. Correct it.")
        self.route, self.key, self.word = route, key, word


def routes(network: Network) -> dict[tuple[str, str], str]:
    """The next hop (an address) of each node and prefix. Of several routes with one node and prefix the last one holds.

    Raises:
        RouteError: a route whose words name nothing.
    """
    known = addresses(network)
    found: dict[tuple[str, str], str] = {}
    for node, to, via in network.routes:
        found |= {(node, prefix): by for prefix, by in _route(network, known, (node, to, via))}
    return found


def address(known: Sequence[Address], word: str) -> Address:
    """The address that `NODE` (its first) or `NODE.LINK` means; an interface's name does as well as its link's.

    Raises:
        WordError: there is none.
    """
    node, link = node_and_link(word)
    own = [one for one in known if one.node == node]
    found = [one for one in own if not link or link in (one.link, one.interface)]
    if not found:
        raise WordError(f'"{word}"', [one.name for one in own] or list(dict.fromkeys(one.node for one in known)))
    return found[0]


def _route(network: Network, known: Sequence[Address], route: tuple[str, str, str]) -> list[tuple[str, str]]:
    node, to, via = route
    speaking = [one.name for one in network.nodes if one.kind != "switch"]
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
    return [(prefix, by) for prefix in prefixes if prefix != f"{by}/32"]


def _destination(known: Sequence[Address], node: str, to: str) -> list[str]:
    if to == DEFAULT:
        return [to]
    if to[:1].isdigit():
        try:
            return [str(IPv4Network(to))]
        except ValueError as error:
            raise WordError(f'"{to}" ({error})', [DESTINATIONS]) from error
    others = [one for one in known if one.node != node]
    names = list(dict.fromkeys(one.node for one in others))
    if to in names:
        return [f"{one.ip.ip}/32" for one in others if one.node == to]
    if node_and_link(to)[1]:
        return [f"{address(others, to).ip.ip}/32"]
    raise WordError(f'"{to}"', [*names, DEFAULT])


def _next_hop(network: Network, known: Sequence[Address], node: str, via: str) -> IPv4Address:
    """The address of a neighbour: named by itself, by the link to it, by its node, or by both."""
    subnets = [one.ip.network for one in known if one.node == node]
    near = [one for one in known if one.node != node and any(one.ip.ip in subnet for subnet in subnets)]
    if via[:1].isdigit():
        found = [one for one in near if str(one.ip.ip) == via]
        return _only(f'"{via}", which no neighbour of {node} has', found, [str(one.ip.ip) for one in near])
    links = {link.name: link for link in network.links if node in (link.a, link.b)}
    if via in links:
        other = links[via].b if links[via].a == node else links[via].a
        found = [one for one in near if one.node == other and one.link == via]
        return _only(f'"{via}", which joins {node} to no single neighbour', found, [one.name for one in near])
    neighbour, link = node_and_link(via)
    found = [one for one in near if one.node == neighbour and link in ("", one.link, one.interface)]
    if len(found) > 1:
        return _only(f'"{via}", a neighbour on several links', [], [one.name for one in found])
    return _only(
        f'"{via}", which is no neighbour of {node} and no link of it', found, [*links, *(one.name for one in near)]
    )


def _only(what: str, found: Sequence[Address], choices: Sequence[str]) -> IPv4Address:
    if not found:
        raise WordError(what, choices)
    return found[0].ip.ip
