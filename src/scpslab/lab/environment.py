"""The environment of a cell: kernel, settings, versions.

Only facts that depend on the plan and the images, so that the same cell gives the same bytes on every machine.
"""

from __future__ import annotations

import fcntl
import json
import platform
import socket
import struct
from pathlib import Path
from typing import Any

from scpslab.lab.netlink import inside
from scpslab.lab.network import LabNetwork
from scpslab.plan.nodes import Switch
from scpslab.plan.serial_links import SerialEnd

SIOCGIFMTU = 0x8921
SYSCTLS = (
    "tcp_congestion_control",
    "tcp_sack",
    "tcp_dsack",
    "tcp_timestamps",
    "tcp_window_scaling",
    "tcp_recovery",
    "tcp_early_retrans",
    "tcp_frto",
    "tcp_ecn",
    "tcp_rmem",
    "tcp_wmem",
    "tcp_moderate_rcvbuf",
    "tcp_no_metrics_save",
    "tcp_slow_start_after_idle",
    "ip_forward",
)


def write(path: Path, network: LabNetwork) -> None:
    """Writes environment.json."""
    # Mininet does not know the interfaces that pppd makes.
    serial = [end for link in network.plan.serial_links for end in link.ends]
    found = {
        "kernel": platform.release(),
        "congestion_controls": Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split(),
        "python": platform.python_version(),
        "packages": _packages(),
        "nodes": {
            node.name: _node(network, node.name, serial) for node in network.plan.nodes if not isinstance(node, Switch)
        },
    }
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def _packages() -> dict[str, str]:
    """Versions of the tools a cell can use, as the image's build wrote them."""
    listed = Path("/usr/share/scpslab/packages.txt")
    if not listed.exists():
        return {}
    return dict(line.split(maxsplit=1) for line in listed.read_text().splitlines() if line)


def _node(network: LabNetwork, node: str, serial: list[SerialEnd]) -> dict[str, Any]:
    names = {
        *network.node(node).nameToIntf,
        *(end.interface for end in serial if end.node == node and end.interface is not None),
    }
    with inside(network.pid(node)):
        folder = Path("/proc/sys/net/ipv4")
        settings = {name: " ".join((folder / name).read_text().split()) for name in SYSCTLS}
        interfaces = {name: _interface(name) for name in sorted(names)}
    return {"sysctls": settings, "interfaces": interfaces}


def _interface(name: str) -> dict[str, Any]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        mtu = struct.unpack_from(
            "=i", fcntl.ioctl(probe.fileno(), SIOCGIFMTU, struct.pack("16s16x", name.encode())), 16
        )[0]
    return {"mtu_bytes": mtu}
