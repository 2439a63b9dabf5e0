"""Mininet links with the three stages (link-model §1): veth pairs, in place from the start, with addresses and no
offloads.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import socket
import struct
from dataclasses import dataclass
from typing import Any

from mininet.link import Intf, Link

from scpslab.lab.netlink import Netlink, VethEnd, inside

SIOCGIFADDR, SIOCETHTOOL = 0x8915, 0x8946
# ETHTOOL_SRXCSUM stays on: it is what checks the sums that nobody has computed in advance. Off: tx checksums,
# scatter-gather, TSO, GSO, GRO.
ETHTOOL_OFF = {"tx-checksumming": 0x17, "scatter-gather": 0x19, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}


@dataclass(frozen=True)
class Port:
    """An end of a veth pair: whose it is, and its index, which is unique in the whole lab."""

    node: str
    interface: str
    mac: str
    ip: str | None
    index: int


Leg = tuple[Port, Port]


class LabIntf(Intf):  # type: ignore[misc]  # Mininet has no types
    """An interface that is complete when it is made."""

    def config(self, **_params: Any) -> dict[str, Any]:
        """Nothing is left to configure."""
        return {}

    def updateIP(self) -> str | None:  # Mininet's name
        """The interface's address as the kernel has it now; Mininet would ask ifconfig, which not every image has."""
        with inside(node_pid(self.node)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                found = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("16s24x", self.name.encode()))
            except OSError:  # no address, or no such interface
                self.ip = None
            else:
                self.ip = socket.inet_ntoa(found[20:24])
        return self.ip


def node_pid(node: Any) -> int | None:
    """The process whose network namespace the node is; None for this one (switches live here)."""
    return node.pid if node.inNamespace else None


def offloads_off(interface: str) -> None:
    """Switches an interface's offloads off, in the namespace we are in: otherwise one decision would cover several
    packets.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for command in ETHTOOL_OFF.values():
            value = ctypes.create_string_buffer(struct.pack("=II", command, 0))
            fcntl.ioctl(probe.fileno(), SIOCETHTOOL, struct.pack("16sQ8x", interface.encode(), ctypes.addressof(value)))


class LabLink(Link):  # type: ignore[misc]  # Mininet has no types
    """One veth pair."""

    def __init__(self, node1: Any, node2: Any, ends: Leg, mtu_bytes: int, **_params: Any) -> None:
        nodes = (node1, node2)
        veths = [
            VethEnd(end.index, end.interface, end.mac, mtu_bytes, node_pid(node))
            for end, node in zip(ends, nodes, strict=True)
        ]
        here = Netlink()
        here.veth((veths[0], veths[1]))
        here.close()
        for end, node in zip(ends, nodes, strict=True):
            with inside(node_pid(node)):
                there = Netlink()
                offloads_off(end.interface)
                there.up(end.index)
                if end.ip:
                    there.address(end.index, end.ip)
                there.close()
        self.intf1, self.intf2 = (self._interface(end, node) for end, node in zip(ends, nodes, strict=True))

    def _interface(self, end: Port, node: Any) -> LabIntf:
        interface = LabIntf(name=end.interface, node=node, link=self, mac=end.mac, moveIntfFn=lambda *_args: None)
        interface.ip, interface.prefixLen = end.ip.split("/") if end.ip else (None, None)
        return interface

    def delete(self) -> None:
        """Deletes the pair."""
        with inside(node_pid(self.intf1.node)):
            there = Netlink()
            try:
                there.delete(socket.if_nametoindex(self.intf1.name))
            except OSError as error:
                if error.errno != errno.ENODEV:
                    raise
            finally:
                there.close()
