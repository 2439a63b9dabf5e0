"""The network that a Mininet script describes as a plan: a stranger's words, checked as a plan from outside is."""

from __future__ import annotations

from dataclasses import replace

from scpslab import plan as plans
from scpslab.core.errors import ScenarioError
from scpslab.core.seeds import stream
from scpslab.plan import Plan, links
from scpslab.plan.cell import CellKey, Limits, Prompt
from scpslab.plan.disciplines import without_settings
from scpslab.plan.error_models import Errors
from scpslab.plan.mininet import Described, DescribedEnd, MininetScript
from scpslab.plan.topology import Network
from scpslab.plan.topology.layout import layout
from scpslab.scenario.link_rules import too_long
from scpslab.scenario.planning.links import VECTOR_ERRORS

from scpslab.kinds.errors.packet_loss.plan import PacketLoss

# What the kernel's shapers count of a packet besides its IP length, in Mininet: the Ethernet header.
ETHERNET_BYTES = 14
# A host that only hears what the script says of its network.
EMPTY = Described.read({"nodes": [{"name": "mn", "kind": "host", "gateway": None}], "links": [], "notes": []})
MEMORY_MIB, MEMORY_OF_A_LINK_MIB = 512, 4


def plan_of(described: Described, script: MininetScript, seed: int, wall_s: int, shell: Prompt | None = None) -> Plan:
    """The plan of a script's network, on which the script runs.

    Raises:
        ScenarioError: a network that cannot be; the message says why.
    """
    key = CellKey(id="mn", scenario="mn", axes={}, repeat=1, kernel_seed=stream(seed, "mn", "kernel"), shell=shell)
    limits = Limits(virtual_s=10**6, wall_s=wall_s, memory_mib=MEMORY_MIB + MEMORY_OF_A_LINK_MIB * len(described.links))
    try:
        _no_loop(described)
        laid_out = layout(_network(described))
        shaped = tuple(_link(link, described, number, seed) for number, link in enumerate(laid_out.links))
        plan = replace(laid_out, links=shaped).plan(key, limits)
        return plans.read(plans.write(replace(plan, mininet=script)))
    except ValueError as error:
        raise ScenarioError(f"{script.file}: {error}") from error


def _network(described: Described) -> Network:
    """Nodes and links, and for each link with a delay the switch that holds it."""
    network = Network("mn")
    for node in described.nodes:
        {"host": network.host, "router": network.router, "switch": network.switch}[node.kind](node.name)
        if node.gateway:
            network.route(node.name, "default", node.gateway)
    for number, link in enumerate(described.links):
        first, second = link.ends
        via = None
        if any(end.delay_ns or end.jitter_ns for end in link.ends):
            via = f"x{number}"
            while any(via == node.name for node in network.nodes):
                via += "x"
            network.switch(via)
        network.link(first.node, second.node, name=f"l{number}", a_ip=first.ip, b_ip=second.ip, via=via)
    return network


def _link(laid: links.Link, described: Described, number: int, seed: int) -> links.Link:
    """A link with the names, addresses, rates and losses that the script says."""
    own = described.links[number].ends
    earlier = sum({end.node for end in link.ends} == {end.node for end in own} for link in described.links[:number])
    ends = [replace(end, interface=said.interface, mac=said.mac or end.mac) for end, said in zip(laid.ends, own, strict=True)]
    there, back = (_direction(*both, stream(seed, "mn", number, both[0].to)) for both in zip(laid.directions, own, strict=True))
    name = "-".join(end.node for end in own) + (f".{earlier + 1}" if earlier else "")
    return replace(laid, name=name, ends=(ends[0], ends[1]), directions=(there, back))


def _direction(laid: links.Direction, said: DescribedEnd, seed: str) -> links.Direction:
    text = too_long(said.delay_ns)
    if said.jitter_ns > said.delay_ns:
        text = f"found jitter of {said.jitter_ns} ns on a delay of {said.delay_ns} ns; expected at most the delay"
    if text:
        raise ValueError(f"{said.interface}: {text}")
    return replace(
        laid,
        name=f"to-{laid.to}",
        rate_bps=said.rate_bps,
        overhead_bytes=ETHERNET_BYTES,
        queue=without_settings(limit_packets=said.limit_packets) if said.rate_bps else None,
        delay_ns=said.delay_ns,
        disorder=links.Disorder(jitter_ns=said.jitter_ns, duplicate=0.0, seed=seed) if said.jitter_ns else None,
        errors=_errors(said.loss, seed) if said.loss else None,
    )


def _errors(loss: float, seed: str) -> Errors:
    return Errors(
        model="packet-loss",
        action="drop",
        settings=PacketLoss(loss=loss),
        seed=seed,
        vector_errors=VECTOR_ERRORS,
        drop_packets=(),
        drop_min_bytes=0,
        outages=(),
    )


def _no_loop(described: Described) -> None:
    """Bridges that learn, without a spanning tree, send a packet round a loop for ever.

    Raises:
        ValueError: there is a loop.
    """
    group = {node.name: node.name for node in described.nodes if node.kind == "switch"}
    for link in described.links:
        first, second = (group.get(end.node) for end in link.ends)
        if first is not None and second is not None:
            if first == second:
                raise ValueError(
                    f"link {'-'.join(end.node for end in link.ends)}: found a loop of switches; expected a tree, because the bridges here "
                    "have no spanning tree protocol. Leave a link out, or put a router into the loop."
                )
            group = {name: first if one == second else one for name, one in group.items()}
