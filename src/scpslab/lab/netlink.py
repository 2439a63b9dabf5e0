"""Links, addresses, neighbours and routes by rtnetlink: what `ip` does, without starting a process for each.

A lab has dozens of these steps; a process costs 13 ms of a cell's start in the guest, a message 0.1 ms.
A socket that is opened in another network namespace stays there.
Sources: rtnetlink(7), linux/rtnetlink.h, linux/if_link.h, linux/veth.h.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from scpslab.plan.routes import RouteOptions

RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_NEWROUTE, RTM_DELROUTE, RTM_NEWNEIGH = 16, 17, 20, 24, 25, 28
RTM_NEWRULE, RTM_DELRULE, RTM_GETQDISC = 32, 33, 38
NLM_REQUEST, NLM_ACK, NLM_DUMP, NLM_REPLACE, NLM_CREATE, NLM_EXCL = 1, 4, 0x300, 0x100, 0x400, 0x200
NLMSG_ERROR, NLMSG_DONE = 2, 3
IFF_UP = 1
ROOT = 0xFFFFFFFF  # TC_H_ROOT
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_LINKINFO, IFLA_NET_NS_PID, IFLA_GSO_MAX_SEGS = 1, 3, 4, 18, 19, 40
IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER = 1, 2, 1
RTAX_LOCK, RTAX_ADVMSS, RTAX_INITCWND, RTAX_RTO_MIN, RTAX_INITRWND, RTAX_QUICKACK = 1, 8, 11, 13, 14, 15
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_PREFSRC, RTA_METRICS, RTA_TABLE = 1, 4, 5, 6, 7, 8, 15
# IP6_RT_PRIO_ADDRCONF: of what the kernel makes with an address.
PRIORITY_KERNEL = 256
FRA_DST, FRA_SRC, FRA_IIFNAME, FRA_PRIORITY, FRA_TABLE, FRA_IP_PROTO = 1, 2, 3, 6, 15, 22
RULE_TO_TABLE = 1
TABLE_LOCAL = 255
TABLE_MAIN, PROTOCOL_KERNEL, PROTOCOL_STATIC, SCOPE_LINK = 254, 2, 4, 253
RTN_UNICAST, RTN_BLACKHOLE = 1, 6
NUD_PERMANENT = 0x80
IFA_F_NODAD = 2
# No address of the link's own, no question to a router, and at once what groups are told by (MLD).
QUIET = {"addr_gen_mode": "1", "accept_ra": "0", "mldv2_unsolicited_report_interval": "1"}


def attribute(kind: int, payload: bytes) -> bytes:
    """One netlink attribute, padded to four bytes."""
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + bytes(-length % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes of a message body, by kind (the last one of a kind counts)."""
    values: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        values[kind & 0x3FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return values


def _route_head(fields: tuple[int, ...], family: int = socket.AF_INET) -> bytes:
    """Struct rtmsg or fib_rule_hdr without flags: destination and source bits, TOS, table, protocol, scope, type."""
    return struct.pack("=BBBBBBBBI", family, *fields, 0)


def _family(ip: str) -> int:
    return socket.AF_INET6 if ":" in ip else socket.AF_INET


def _packed(ip: str) -> bytes:
    return ipaddress.ip_address(ip).packed


def _metrics(metrics: dict[int, int]) -> bytes:
    nested = b"".join(attribute(kind, struct.pack("=I", value)) for kind, value in metrics.items())
    return attribute(RTA_METRICS, nested) if metrics else b""


ROUTE_METRICS = {
    "advmss": RTAX_ADVMSS,
    "initcwnd": RTAX_INITCWND,
    "initrwnd": RTAX_INITRWND,
    "quickack": RTAX_QUICKACK,
    "rto_min_ms": RTAX_RTO_MIN,
}


class Netlink:
    """A netlink socket of the namespace it is opened in."""

    def __init__(self, family: int = 0) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, family)
        self.socket.bind((0, 0))
        self.sequence = 0

    def close(self) -> None:
        """Closes the socket."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, kind: int, flags: int, body: bytes) -> list[tuple[int, bytes]]:
        """Sends one message and returns the answers (kind, body) up to its acknowledgement.

        Raises:
            OSError: the kernel's error.
        """
        self.sequence += 1
        header = struct.pack("=IHHII", 16 + len(body), kind, flags | NLM_REQUEST, self.sequence, 0)
        self.socket.send(header + body)
        answers: list[tuple[int, bytes]] = []
        while True:
            data = self.socket.recv(1 << 18)
            at = 0
            while at + 16 <= len(data):
                length, answer_kind, _, sequence, _ = struct.unpack_from("=IHHII", data, at)
                answer = data[at + 16 : at + length]
                at += (length + 3) & ~3
                if sequence != self.sequence:
                    continue
                if answer_kind == NLMSG_DONE:
                    return answers
                if answer_kind == NLMSG_ERROR:
                    error = struct.unpack_from("=i", answer)[0]
                    if error:
                        raise OSError(-error, os.strerror(-error))
                    return answers
                answers.append((answer_kind, answer))

    def _link(self, flags: int, index: int, interface_flags: int, changed: int, parts: bytes) -> None:
        body = struct.pack("=BxHiII", 0, 0, index, interface_flags, changed) + parts
        self.ask(RTM_NEWLINK, flags | NLM_ACK, body)

    def veth(self, ends: tuple[VethEnd, VethEnd]) -> None:
        """Makes a veth pair with both ends in place: index, name, MAC, MTU and namespace."""
        first, second = ends
        peer = struct.pack("=BxHiII", 0, 0, second.index, 0, 0) + second.attributes()
        data = attribute(IFLA_INFO_DATA, attribute(VETH_INFO_PEER, peer))
        info = attribute(IFLA_LINKINFO, attribute(IFLA_INFO_KIND, b"veth\0") + data)
        self._link(NLM_CREATE | NLM_EXCL, first.index, 0, 0, first.attributes() + info)

    def up(self, index: int) -> None:
        """Sets an interface up. One packet is one packet: super-packets would share one error decision."""
        self._link(0, index, IFF_UP, IFF_UP, attribute(IFLA_GSO_MAX_SEGS, struct.pack("=I", 1)))

    def delete(self, index: int) -> None:
        """Deletes an interface (and its peer)."""
        self.ask(RTM_DELLINK, NLM_ACK, struct.pack("=BxHiII", 0, 0, index, 0, 0))

    def address(self, index: int, cidr: str) -> None:
        """Gives an interface an address such as "10.1.0.1/24". Nobody is asked whether he has it."""
        ip, prefix = cidr.split("/")
        flags = IFA_F_NODAD if _family(ip) == socket.AF_INET6 else 0
        body = struct.pack("=BBBBi", _family(ip), int(prefix), flags, 0, index)
        parts = attribute(1, _packed(ip)) + attribute(2, _packed(ip))
        self.ask(RTM_NEWADDR, NLM_CREATE | NLM_REPLACE | NLM_ACK, body + parts)

    def neighbour(self, index: int, ip: str, mac: str) -> None:
        """Adds a permanent neighbour entry."""
        body = struct.pack("=BxHiHBB", _family(ip), 0, index, NUD_PERMANENT, 0, 0)
        parts = attribute(1, _packed(ip)) + attribute(2, bytes.fromhex(mac.replace(":", "")))
        self.ask(RTM_NEWNEIGH, NLM_CREATE | NLM_REPLACE | NLM_ACK, body + parts)

    def route(self, to: str, via: str | None, metrics: dict[int, int], src: str | None = None) -> None:
        """Adds a static route to a prefix or "default"; `metrics` by RTAX number.

        Without `via` packets to there are dropped.

        `src`: the node's own address that it sends from; None: that of the interface.
        """
        ip, prefix = ("", "0") if to == "default" else to.split("/")
        head = int(prefix), 0, 0, TABLE_MAIN, PROTOCOL_STATIC, 0, RTN_UNICAST if via else RTN_BLACKHOLE
        parts = attribute(RTA_GATEWAY, _packed(via)) if via else b""
        if int(prefix):
            parts += attribute(RTA_DST, _packed(ip))
        if src:
            parts += attribute(RTA_PREFSRC, _packed(src))
        self.ask(
            RTM_NEWROUTE,
            NLM_CREATE | NLM_REPLACE | NLM_ACK,
            _route_head(head, _family(via or ip)) + parts + _metrics(metrics),
        )

    def delete_route(self, to: str) -> None:
        """Deletes the static route to a prefix."""
        ip, prefix = to.split("/")
        head = int(prefix), 0, 0, TABLE_MAIN, PROTOCOL_STATIC, 0, 0
        self.ask(RTM_DELROUTE, NLM_ACK, _route_head(head, _family(ip)) + attribute(RTA_DST, _packed(ip)))

    def connected(self, index: int, cidr: str, metrics: dict[int, int], peer: str | None = None) -> None:
        """Gives the route that the kernel has made with an interface's address `cidr` these metrics: the one to its own
        subnet, or to its `peer`.
        """
        own = ipaddress.ip_interface(cidr)
        subnet = own.network if peer is None else ipaddress.ip_network(peer)
        head = subnet.prefixlen, 0, 0, TABLE_MAIN, PROTOCOL_KERNEL, SCOPE_LINK, RTN_UNICAST
        parts = attribute(RTA_DST, subnet.network_address.packed) + attribute(RTA_OIF, struct.pack("=I", index))
        parts += attribute(RTA_PREFSRC, own.packed) + _metrics(metrics)
        if own.version == 6:
            parts += attribute(RTA_PRIORITY, struct.pack("=I", PRIORITY_KERNEL))
        self.ask(RTM_NEWROUTE, NLM_REPLACE | NLM_ACK, _route_head(head, _family(cidr)) + parts)

    def device_route(self, device: str, table: int) -> None:
        """Leads everything that is looked up in a table to an interface."""
        head = _route_head((0, 0, 0, 0, PROTOCOL_STATIC, SCOPE_LINK, RTN_UNICAST))
        parts = attribute(RTA_OIF, struct.pack("=I", socket.if_nametoindex(device)))
        parts += attribute(RTA_TABLE, struct.pack("=I", table))
        self.ask(RTM_NEWROUTE, NLM_CREATE | NLM_REPLACE | NLM_ACK, head + parts)

    def rule(
        self,
        preference: int,
        table: int,
        iif: str | None = None,
        source: str | None = None,
        to: str | None = None,
        protocol: int | None = None,
    ) -> None:
        """Adds a rule of policy routing: packets with all of these are looked up in a table."""
        parts = attribute(FRA_IIFNAME, iif.encode() + b"\0") if iif else b""
        parts += attribute(FRA_SRC, socket.inet_aton(source)) if source else b""
        parts += attribute(FRA_DST, socket.inet_aton(to)) if to else b""
        parts += attribute(FRA_IP_PROTO, struct.pack("=B", protocol)) if protocol else b""
        self._rule(RTM_NEWRULE, NLM_CREATE | NLM_EXCL, preference, table, (32 if to else 0, 32 if source else 0), parts)

    def delete_rule(self, preference: int, table: int) -> None:
        """Deletes a rule that has nothing but these."""
        self._rule(RTM_DELRULE, 0, preference, table, (0, 0), b"")

    def _rule(self, kind: int, flags: int, preference: int, table: int, lengths: tuple[int, int], parts: bytes) -> None:
        to_bits, source_bits = lengths
        head = _route_head((to_bits, source_bits, 0, 0, 0, 0, RULE_TO_TABLE))
        parts += attribute(FRA_PRIORITY, struct.pack("=I", preference)) + attribute(FRA_TABLE, struct.pack("=I", table))
        self.ask(kind, flags | NLM_ACK, head + parts)

    def qdiscs(self) -> list[Qdisc]:
        """Every qdisc of the namespace."""
        qdiscs = []
        for _, body in self.ask(RTM_GETQDISC, NLM_DUMP, struct.pack("=BxxxiIII", 0, 0, 0, 0, 0)):
            index, parent = struct.unpack_from("=4xi4xI", body)
            parts = attributes(body[20:])
            stats = attributes(parts.get(7, b""))
            (drops,) = struct.unpack_from("=8xI", stats.get(3, bytes(20)))
            settings = parts.get(1, b""), parts.get(2, b"")
            qdiscs.append(Qdisc(index, parent, drops, stats.get(4, b""), settings))
        return qdiscs


@dataclass(frozen=True)
class Qdisc:
    """A queue discipline of an interface, and what it dropped.

    `own`: statistics of its kind, `settings`: kind and options, as the kernel's bytes.
    """

    interface: int
    parent: int
    drops: int
    own: bytes
    settings: tuple[bytes, bytes]


class VethEnd:
    """One end of a veth pair as it shall be."""

    def __init__(self, index: int, name: str, mac: str, mtu_bytes: int, pid: int | None) -> None:
        self.index, self.name, self.mac, self.mtu_bytes, self.pid = index, name, mac, mtu_bytes, pid

    def attributes(self) -> bytes:
        """The netlink attributes that make it so."""
        parts = attribute(IFLA_IFNAME, self.name.encode() + b"\0")
        parts += attribute(IFLA_ADDRESS, bytes.fromhex(self.mac.replace(":", "")))
        parts += attribute(IFLA_MTU, struct.pack("=I", self.mtu_bytes))
        if self.pid is not None:
            parts += attribute(IFLA_NET_NS_PID, struct.pack("=I", self.pid))
        return parts


_HERE = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def inside(pid: int | None) -> Iterator[None]:
    """Runs the block in the network namespace of process `pid` (None: this one).

    Not for code that yields to other threads.
    """
    if pid is None:
        yield
        return
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.setns(there, os.CLONE_NEWNET)
        yield
    finally:
        os.setns(_HERE, os.CLONE_NEWNET)
        os.close(there)


def from_anywhere() -> None:
    """Lets packets in by whatever interface they come: a path may have other links each way.

    A namespace begins with the machine's own choice (RFC 3704).
    """
    for which in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv4/conf/{which}/rp_filter")
        if setting.read_text().strip() != "0":
            setting.write_text("0\n")


def without_ipv6() -> None:
    """Switches IPv6 off in the namespace we are in, for what is there and what comes: its own packets would be in the
    links' accounts.
    """
    for which in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6")
        if setting.exists():
            setting.write_text("1\n")


def with_ipv6(interface: str) -> None:
    """Switches IPv6 on for an interface of the namespace we are in, and for the loopback: it has the addresses that it
    is given and no others, and asks nobody for anything.
    """
    for name, settings in (("lo", {}), (interface, QUIET)):
        for setting, value in {**settings, "disable_ipv6": "0"}.items():
            Path(f"/proc/sys/net/ipv6/conf/{name}/{setting}").write_text(f"{value}\n")


def route_metrics(route: RouteOptions) -> dict[int, int]:
    """The plan's route options as netlink metrics."""
    values = {number: getattr(route, key) for key, number in ROUTE_METRICS.items()}
    metrics: dict[int, int] = {number: value for number, value in values.items() if value is not None}
    return metrics | ({RTAX_LOCK: 1 << RTAX_RTO_MIN} if RTAX_RTO_MIN in metrics else {})
