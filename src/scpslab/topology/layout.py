"""From a described network to the plan's nodes and links: addresses, MACs and interface names, always the same for the same network."""

from __future__ import annotations

from typing import Any

from scpslab.topology.description import Direction, Link, Network, Serial

LONGEST_INTERFACE_NAME = 15
# A host has at most one serial link, and pppd begins to count at 0.
PPP_INTERFACE = "ppp0"
NO_ROUTE_OPTIONS: dict[str, int | None] = {"initcwnd": None, "initrwnd": None, "advmss": None, "rto_min_ms": None, "quickack": None}


def layout(network: Network) -> dict[str, Any]:
    """The plan's `topology`, `nodes`, `links` and `serial_links` (docs/plan-format.md) with no errors, kernel settings or route options yet."""
    macs = iter(range(1, 1 << 16))
    return {
        "topology": network.name,
        "nodes": [_node(network, node.name) for node in network.nodes],
        "links": [_link(link, macs) for link in network.links if link.serial is None],
        "serial_links": [_serial_link(link, link.serial) for link in network.links if link.serial is not None],
    }


def _node(network: Network, name: str) -> dict[str, Any]:
    node = network.node(name)
    if node.kind == "switch":
        return {"name": name, "kind": "switch", "mirror_to": node.mirror_to}
    routes = [{"to": to, "via": via, **NO_ROUTE_OPTIONS} for owner, to, via in network.routes if owner == name]
    return {"name": name, "kind": node.kind, "stack": "kernel", "sysctls": {}, "routes": routes}


def _link(link: Link, macs: Any) -> dict[str, Any]:
    far = (link.name, link.name) if link.via else (link.b, link.a)
    ends = [
        {"node": node, "interface": _interface(node, other), "mac": _mac(next(macs)), "ip": ip}
        for node, other, ip in ((link.a, far[0], link.a_ip), (link.b, far[1], link.b_ip))
    ]
    return {
        "name": link.name,
        "via": link.via,
        "mtu_bytes": link.mtu_bytes,
        "ends": ends,
        "relay_interfaces": [_interface(link.via, link.a), _interface(link.via, link.b)] if link.via else None,
        "directions": [_direction(link.forward, link.a, link.b), _direction(link.reverse, link.b, link.a)],
    }


def _serial_link(link: Link, serial: Serial) -> dict[str, Any]:
    ends = ((link.a, link.a_ip), (link.b, link.b_ip))
    directions = ((link.forward, link.a, link.b), (link.reverse, link.b, link.a))
    return {
        "name": link.name,
        "bits_per_byte": serial.bits_per_byte,
        "buffer_bytes": serial.buffer_bytes,
        "vector_bits": serial.vector_bits,
        "ppp": {"mru_bytes": serial.mru_bytes, "asyncmap": serial.asyncmap, "header_compression": serial.header_compression},
        "ends": [{"node": node, "interface": PPP_INTERFACE, "ip": ip, "route": dict(NO_ROUTE_OPTIONS)} for node, ip in ends],
        "directions": [
            {"name": direction.name, "from": start, "to": end, "rate_bps": direction.rate_bps, "delay_ns": direction.delay_ns, "errors": None}
            for direction, start, end in directions
        ],
    }


def _interface(node: str, other: str) -> str:
    name = f"{node}-{other}"
    if len(name) > LONGEST_INTERFACE_NAME:
        raise ValueError(f"interface {name}: found {len(name)} characters; the kernel allows {LONGEST_INTERFACE_NAME}. Use shorter node names.")
    return name


def _mac(number: int) -> str:
    return f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"


def _direction(direction: Direction, start: str, end: str) -> dict[str, Any]:
    queue = None
    if direction.rate_bps is not None:
        given = direction.queue
        queue = {
            "discipline": given.discipline if given else "drop-tail",
            "limit_bytes": given.limit_bytes if given else None,
            "limit_packets": given.limit_packets if given else None,
            "red_min_bytes": None,
            "red_max_bytes": None,
            "red_probability": None,
            "codel_target_ns": None,
            "codel_interval_ns": None,
            "ecn": given.ecn if given else False,
        }
    return {
        "name": direction.name,
        "from": start,
        "to": end,
        "rate_bps": direction.rate_bps,
        "overhead_bytes": direction.overhead_bytes,
        "queue": queue,
        "delay_ns": direction.delay_ns,
        "delay_table": None,
        "disorder": None,
        "errors": None,
    }
