"""The `scps` program at an end of a transfer, as the plan has it, and the rules of transfers that may have one."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from scpslab.core.names import node_and_link
from scpslab.core.problems import Problem
from scpslab.documents.quantities import Size
from scpslab.plan.links import Direction
from scpslab.plan.np import SpEnd
from scpslab.plan.paths import Way, slowest
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.stacks import KERNEL, ScpsEnd
from scpslab.plan.values import AxisValue
from scpslab.plan.workloads import IP_TCP_HEADERS_BYTES, TIMESTAMP_BYTES
from scpslab.scenario.kinds import planned_from
from scpslab.scenario.stacks import NodePlan
from scpslab.scenario.workloads import Setting, Surroundings, Traffic

# What PPP adds to an IP packet: protocol field (compressed), frame check, flag; flag and escape are always escaped, one
# byte each.
PPP_BYTES, PPP_ALWAYS_ESCAPED, OCTETS = 4, 2, 256
TCP_HEADER_BYTES = 20
IP_HEADER_BYTES = IP_TCP_HEADERS_BYTES - TCP_HEADER_BYTES
# Control field, basic addresses, precedence, hop count, checksum (scps-np §1).
NP_HEADER_BYTES = 12
SMALLEST_TCP_MAXSEG = 88  # TCP_MIN_MSS of Linux: a smaller TCP_MAXSEG is refused


def scps_ends(
    workload: Traffic, segment: Size | None, setting: Setting, precedence: int | None = None
) -> tuple[ScpsEnd | None, ScpsEnd | None]:
    """The programs at the sending and the receiving end; who accepts a connection answers at its precedence."""
    sender = _end(workload, workload.from_, workload.to, segment, setting)
    receiver = _end(workload, workload.to, workload.from_, segment, setting)
    if sender is not None and precedence is not None:
        sender = replace(sender, settings={**sender.settings, "precedence": precedence})
    if sender is None or receiver is None:
        return sender, receiver
    return (
        _protected(sender, receiver.ip, workload.sender, setting),
        _protected(receiver, sender.ip, workload.receiver, setting),
    )


def _protected(end: ScpsEnd, peer: str, host: str, setting: Setting) -> ScpsEnd:
    """The program with the SCPS-SP of its host, if that has any."""
    sp = setting.hosts[host].sp
    if sp is None:
        return end
    return replace(end, sp=planned_from(SpEnd, sp, peer=peer, key_seed=setting.key_seed(sp.key_name)))


def same_network(workload: Traffic, around: Surroundings) -> Iterator[Problem]:
    """Hosts that speak different network layers, or none that crosses the routers between them; or SCPS-SP at one end
    only, or another one at each.
    """
    ends = {name: around.hosts[name] for name in (workload.sender, workload.receiver)}
    layers = {name: "ip" if end.np_precedence is None else "np" for name, end in ends.items()}
    if len(set(layers.values())) > 1:
        found = " and ".join(f"network {layer} on {name}" for name, layer in layers.items())
        yield Problem(("to",), found, "one network layer at both ends", "Set network on the hosts.")
    elif around.has_np_router and "ip" in layers.values():
        found = f"no SCPS-NP on {workload.from_} and {workload.to}, which a router of SCPS-NP joins"
        yield Problem(("to",), found, "it", "Add network: np to the hosts.")
    # Keys may differ: that is a mistake to be watched.
    protections = {
        name: f"sp with {end.sp.suite} and {', '.join(end.sp.services)}" if end.sp else "no sp"
        for name, end in ends.items()
    }
    if len(set(protections.values())) > 1:
        found = " and ".join(f"{protection} on {name}" for name, protection in protections.items())
        yield Problem(("to",), found, "the same at both ends", "Set sp on the hosts.")


def fits_mtu(workload: Traffic, segment: Size, around: Surroundings) -> Iterator[Problem]:
    """A segment with its headers, SCPS-NP and SCPS-SP among them, must fit through the way, and the kernel, if it sends
    it, must be able to make it.
    """
    mtu = around.mtu_bytes
    ends = [around.hosts[host] for host in (workload.sender, workload.receiver)]
    options = TIMESTAMP_BYTES if all(end.timestamps for end in ends) else 0
    beneath = max(
        (NP_HEADER_BYTES if end.np_precedence is not None else 0) + (end.sp.overhead_bytes if end.sp else 0)
        for end in ends
    )
    room = mtu - IP_TCP_HEADERS_BYTES - around.further_bytes - options - beneath
    if segment > room:
        expected = f"at most the {room} B that an MTU of {mtu} B leaves"
        yield Problem(("segment",), f'"{segment.text}"', expected, "Correct segment or the parameter mtu.")
    elif (
        segment + options < SMALLEST_TCP_MAXSEG and segment != room and around.hosts[workload.sender].carrier is KERNEL
    ):
        found = f'"{segment.text}", smaller than the kernel allows by itself'
        exact = segment + IP_TCP_HEADERS_BYTES + options
        yield Problem(("segment",), found, "an MTU that forces it", f"Set the parameter mtu to {exact} B.")


def _end(workload: Traffic, end: str, other: str, segment: Size | None, setting: Setting) -> ScpsEnd | None:
    """The program at one end: its address, device, settings and seed; None where the kernel carries it."""
    host = node_and_link(end)[0]
    node = setting.hosts[host]
    if node.scps is None:
        return None
    found = setting.way(end, other)
    settings = {**node.scps, "mtu": min(hop.mtu_bytes for hop in found)}
    if segment is not None:
        settings["segment"] = segment
    if node.paced_by_slowest_hop and (
        rate := rate_that_fits(settings, found, header_bytes(node), timestamps=node.timestamps)
    ):
        settings["rate"] = str(rate)
    ip, device = setting.take_scps(host)
    np = None if node.np_precedence is None else setting.np_end(host, node.np_precedence)
    return ScpsEnd(ip=ip, device=device, settings=settings, seed=setting.seed("scps", workload.name, host), np=np)


def header_bytes(node: NodePlan) -> int:
    """What a host's packets have before the transport's header and behind its data: network layer and SCPS-SP."""
    network = IP_HEADER_BYTES if node.np_precedence is None else NP_HEADER_BYTES
    return network + (node.sp.overhead_bytes if node.sp else 0)


def rate_that_fits(
    settings: Mapping[str, AxisValue], found: Way, network_bytes: int = IP_HEADER_BYTES, *, timestamps: bool
) -> int | None:
    """Bits per second of packets, `network_bytes` included, with which full segments just fill the slowest hop of a
    way; framing is extra.
    """
    hop = slowest(found)
    if hop is None or hop.direction.rate_bps is None:
        return None
    headers = network_bytes + TCP_HEADER_BYTES + (TIMESTAMP_BYTES if timestamps else 0)
    packet = int(settings["segment"]) + headers if "segment" in settings else int(settings["mtu"])
    if isinstance(hop.link, SerialLink):
        escaped = PPP_ALWAYS_ESCAPED + (hop.link.ppp.asyncmap.bit_count() if hop.link.ppp else 0)
        # Frames of SCPS-NP have two flags and the frame check, which is as much as PPP adds.
        on_the_line = packet + PPP_BYTES + -(-packet * escaped // OCTETS)
        return hop.direction.rate_bps * 8 * packet // (hop.link.bits_per_byte * on_the_line)
    framing = hop.direction.overhead_bytes if isinstance(hop.direction, Direction) else 0
    return hop.direction.rate_bps * packet // (packet + framing)
