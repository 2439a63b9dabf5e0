"""The network that a Mininet script describes as a plan: a stranger's words, checked as a plan from outside is."""

from dataclasses import replace
from pathlib import Path

from scpslab import plan as plans
from scpslab.core.errors import ScenarioError
from scpslab.core.seeds import stream
from scpslab.plan import Plan, links
from scpslab.plan.cell import CellPlan, Impairment, Limits, Prompt
from scpslab.plan.disciplines import Queue
from scpslab.plan.mininet import SCRIPTS, UNLIMITED_BPS, Described, DescribedEnd, MininetScript, closing_link
from scpslab.plan.topology import Network
from scpslab.scenario.model import Errors
from scpslab.scenario.packs import planned

# What the kernel's shapers count of a packet besides its IP length, in Mininet: the Ethernet header.
ETHERNET_BYTES = 14
# A host that only hears what the script says of its network.
EMPTY = Described.read({"nodes": [{"name": "mn", "kind": "host"}], "links": [], "notes": []})
MEMORY_MIB, MEMORY_OF_A_LINK_MIB = 512, 4
# Of a link whose numbers change there is every stage from the beginning, with room in the queue and a loss that nobody
# meets.
ROOM_PACKETS, NO_LOSS = 8191, 1e-9


def plan_of(
    described: Described,
    script: MininetScript,
    seed: int,
    wall_s: int,
    shell: Prompt | None = None,
    packages: tuple[str, ...] = (),
) -> Plan:
    """The plan of a script's network, on which the script runs. `packages`: what the guest has besides its image.

    Raises:
        ScenarioError: a network that cannot be; the message says why.
    """
    try:
        _no_loop(described)
        network = _network(described).plan(memory_mib=MEMORY_MIB + MEMORY_OF_A_LINK_MIB * len(described.links))
        both = tuple(_link(link, described, number, seed) for number, link in enumerate(network.links))
        cell = CellPlan(
            id="mn",
            scenario="mn",
            axes={},
            repeat=1,
            kernel_seed=stream(seed, "mn", "kernel"),
            limits=Limits(virtual_s=10**6, wall_s=wall_s),
            impairments=tuple(impairment for _, impairments in both for impairment in impairments),
            mininet=script,
            shell=shell,
        )
        network = replace(network, links=tuple(link for link, _ in both), pack=planned(packages, None, Path()))
        return plans.read(plans.write(Plan(network=network, cell=cell)))
    except ValueError as error:
        raise ScenarioError(f"{script.file}: {error}") from error


def _network(described: Described) -> Network:
    """Nodes and links, and for each link with a delay the switch that holds it."""
    network = Network(SCRIPTS)
    for node in described.nodes:
        {"host": network.host, "router": network.router, "switch": network.switch}[node.kind](node.name)
    for number, link in enumerate(described.links):
        first, second = link.ends
        via = None
        if link.changes or any(end.delay_ns or end.jitter_ns for end in link.ends):
            via = f"x{number}"
            while any(via == node.name for node in network.nodes):
                via += "x"
            network.switch(via)
        # Names of interfaces are the script's own: the links get theirs when they have been joined.
        network.link(
            first.node,
            second.node,
            name=f"l{number}",
            a_ip=first.ip,
            b_ip=second.ip,
            forward=_direction(first, second.node, link.changes),
            reverse=_direction(second, first.node, link.changes),
            via=via,
        )
    return network


def _direction(said: DescribedEnd, to: str, changes: bool) -> links.Direction:
    rate_bps = said.rate_bps or (UNLIMITED_BPS if changes else None)
    queue = Queue(limit_packets=max(said.limit_packets, ROOM_PACKETS) if changes else said.limit_packets)
    direction = links.Direction(
        f"to-{to}",
        rate_bps,
        ETHERNET_BYTES,
        queue if rate_bps else None,
        said.delay_ns,
        jitter_ns=0 if changes else said.jitter_ns,
    )
    for problem in direction.problems():
        raise ValueError(f"{said.interface}: {problem}")
    return direction


def _link(laid: links.Link, described: Described, number: int, seed: int) -> tuple[links.Link, list[Impairment]]:
    """A link with the names and addresses that the script says, and its losses and jitter."""
    own = described.links[number].ends
    earlier = sum({end.node for end in link.ends} == {end.node for end in own} for link in described.links[:number])
    name = "-".join(end.node for end in own) + (f".{earlier + 1}" if earlier else "")
    first, second = (
        replace(end, interface=said.interface, mac=said.mac or end.mac)
        for end, said in zip(laid.ends, own, strict=True)
    )
    impairments = []
    changes = described.links[number].changes
    for direction, said in zip(laid.directions, own, strict=True):
        drawn = stream(seed, "mn", number, direction.to)
        loss = said.loss or (NO_LOSS if changes else 0)
        jitters = said.jitter_ns and not changes
        if loss or jitters:
            lost = Errors.model_validate({"model": "packet", "loss": loss}).plan(Path(), drawn)
            errors, its_seed = lost if loss else None, drawn if jitters else None
            impairments.append(Impairment(link=name, direction=direction.name, errors=errors, seed=its_seed))
    return replace(laid, name=name, ends=(first, second)), impairments


def _no_loop(described: Described) -> None:
    """Bridges that learn, without a spanning tree, send a packet round a loop for ever; others stop it.

    Raises:
        ValueError: there is a loop.
    """
    bridges = [node.name for node in described.nodes if node.kind == "switch" and not node.may_loop]
    if ends := closing_link([[end.node for end in link.ends] for link in described.links], bridges):
        raise ValueError(
            f"link {'-'.join(ends)}: found a loop of switches; expected a tree, or bridges with stp=True, "
            "controller=None or a RemoteController. Leave a link out, or put a router into the loop."
        )
