"""Mininet's links and switches as the lab has them: veth pairs, complete when they are made (link-model §1), and
bridges of Open vSwitch's kernel datapath without a controller; its two daemons.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link
from mininet.node import Switch

from scpslab.lab.netlink import Netlink, VethEnd, inside, with_ipv6
from scpslab.lab.place import IS_ALONE, VIRTUAL
from scpslab.lab.stages import Stages
from scpslab.lab.template import Space
from scpslab.lab.wiring import Leg, Port, Wiring

SIOCGIFADDR, SIOCETHTOOL = 0x8915, 0x8946
# ETHTOOL_SRXCSUM stays on: it is what checks the sums that nobody has computed in advance. Off: tx checksums,
# scatter-gather, TSO, GSO, GRO.
ETHTOOL_OFF = {"tx-checksumming": 0x17, "scatter-gather": 0x19, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}


class LabIntf(Intf):  # type: ignore[misc]  # Mininet has no types
    """An interface that is complete when it is made."""

    def config(self, **_params: Any) -> dict[str, str]:
        """Nothing is left to configure."""
        return {}

    def updateIP(self) -> str | None:  # Mininet's name
        """The interface's address as the kernel has it now; Mininet would ask ifconfig, which not every image has."""
        with inside(node_pid(self.node)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                answer = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("16s24x", self.name.encode()))
            except OSError:  # no address, or no such interface
                self.ip = None
            else:
                self.ip = socket.inet_ntoa(answer[20:24])
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
        with Netlink() as here:
            here.veth((veths[0], veths[1]))
        for end, node in zip(ends, nodes, strict=True):
            with inside(node_pid(node)), Netlink() as there:
                offloads_off(end.interface)
                there.up(end.index)
                if end.ip:
                    if ":" in end.ip:
                        with_ipv6(end.interface)
                    there.address(end.index, end.ip)
        self.intf1, self.intf2 = (self._interface(end, node) for end, node in zip(ends, nodes, strict=True))

    def _interface(self, end: Port, node: Any) -> LabIntf:
        interface = LabIntf(name=end.interface, node=node, link=self, mac=end.mac, moveIntfFn=lambda *_args: None)
        interface.ip, interface.prefixLen = end.ip.split("/") if end.ip else (None, None)
        return interface

    def delete(self) -> None:
        """Deletes the pair."""
        with inside(node_pid(self.intf1.node)), Netlink() as there:
            try:
                there.delete(socket.if_nametoindex(self.intf1.name))
            except OSError as error:
                if error.errno != errno.ENODEV:
                    raise


RUN = Path("/run/openvswitch")
DATABASE = Path("/var/lib/openvswitch/conf.db")
EMPTY_DATABASE = Path("/usr/share/scpslab/ovs.db")
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
START_LIMIT_S = 30.0
ANSWER_BYTES = 4096
STANDALONE_LOGS = Path("/run/scpslab/logs")


class OpenVSwitch:
    """The daemons, for as long as the lab is up. Their logs go to `logs`."""

    def __init__(self, logs: Path) -> None:
        RUN.mkdir(parents=True, exist_ok=True)
        DATABASE.parent.mkdir(parents=True, exist_ok=True)
        # The image has an empty database, so that no cell spends time on making one.
        if EMPTY_DATABASE.exists():
            shutil.copyfile(EMPTY_DATABASE, DATABASE)
        elif not DATABASE.exists():
            subprocess.run(["ovsdb-tool", "create", str(DATABASE), SCHEMA], check=True)
        self.daemons = [
            self._daemon(["ovsdb-server", str(DATABASE), f"--remote=punix:{RUN}/db.sock"], logs / "ovsdb-server.log"),
            # One thread of each kind: the lab has one CPU, and every thread more is a timer more to wake for.
            self._daemon(["ovs-vswitchd", f"unix:{RUN}/db.sock"], logs / "ovs-vswitchd.log"),
        ]

    @staticmethod
    def _daemon(argv: list[str], log: Path) -> subprocess.Popen[bytes]:
        env = os.environ | ({"LD_PRELOAD": VIRTUAL} if IS_ALONE else {})
        argv = [*argv, "-vconsole:warn", "--no-chdir"]
        with log.open("wb") as output:
            return subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    @staticmethod
    def wait_for_database() -> None:
        """Waits until the database answers.

        Raises:
            TimeoutError: it did not within START_LIMIT_S.
        """
        limit = time.monotonic() + START_LIMIT_S
        while not (RUN / "db.sock").exists():
            if time.monotonic() > limit:
                raise TimeoutError(
                    f"Open vSwitch: {RUN}/db.sock was not there after {START_LIMIT_S:.0f} s; see logs/ovsdb-server.log"
                )
            time.sleep(0.005)

    def stop(self) -> None:
        """Ends both daemons."""
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait()


# The number of an interface's port, and of a switch, as Mininet gives them names.
PORT, NUMBER = re.compile(r"-eth(\d+)$"), re.compile(r"\d+")


def bridge_number(name: str) -> str:
    """The datapath's identity in OpenFlow that Mininet gives a switch of that name; "" if none is in it."""
    found = NUMBER.search(name)
    return f"{int(found[0]):016x}" if found and int(found[0]) else ""


class LabSwitch(Switch):  # type: ignore[misc]  # Mininet has no types
    """A bridge (fail mode standalone) that is told its addresses (know_addresses), or `learns` as Mininet's do;
    `mirror_to` names the host that gets a copy of every frame.
    """

    dpidLen = 16  # noqa: N815  # Mininet's name

    def __init__(self, name: str, mirror_to: str | None = None, standalone: Any = None, **params: Any) -> None:
        params["inNamespace"] = False
        self.learns, self.relays = params.pop("learns", True), params.pop("relays", False)
        # `standalone`: the network and its pairs, where only `mn` sees to them.
        self.mirror_to, self.standalone = mirror_to, standalone
        # The maps of the links live as long as somebody holds them.
        self.held: list[Stages] = []
        super().__init__(name, dpid="1", **params)

    def startShell(self, mnopts: str | None = None) -> None:  # Mininet's name
        """A switch lives in the lab's own namespace and needs no process."""
        self.pid = os.getpid()

    def config(self, **_params: Any) -> dict[str, str]:
        """Nothing is left to configure."""
        return {}

    def cmd(self, *args: Any, **_kwargs: Any) -> str:
        """Runs a command where the switches live; Mininet's own start-up asks for nothing that is needed."""
        words = args[0] if len(args) == 1 and isinstance(args[0], str) else " ".join(str(word) for word in args)
        if words == "ifconfig lo up":
            return ""
        return subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False).stdout

    def start(self, _controllers: list[Any]) -> None:
        """Bridges are made all at once, in batchStartup."""

    @classmethod
    def batchStartup(cls, switches: list[LabSwitch], **_options: Any) -> list[LabSwitch]:  # Mininet's name
        """Makes all bridges in one transaction, which is much faster than one each."""
        wiring = cls._start_standalone(switches) if switches[0].standalone else None
        # Nobody reads the statistics of ports that the daemon would give the database every five virtual seconds.
        settings = {"n-handler-threads": 1, "n-revalidator-threads": 1, "stats-update-interval": 86400000}
        if not any(switch.learns for switch in switches):
            # What a packet has shown of the way to take never changes.
            settings["max-revalidator"] = 10000
        command = ["ovs-vsctl", f"--db=unix:{RUN}/db.sock", "init", "--", "set", "Open_vSwitch", "."]
        command += [f"other_config:{name}={value}" for name, value in settings.items()]
        for switch in switches:
            command += switch.transaction()
        subprocess.run(command, check=True, capture_output=True)
        if wiring is not None:
            wiring.run_tc(STANDALONE_LOGS)
        return switches

    @classmethod
    def _start_standalone(cls, switches: list[LabSwitch]) -> Wiring:
        """Under plain `mn` nobody else starts Open vSwitch, configures the hosts or loads the stages."""
        STANDALONE_LOGS.mkdir(parents=True, exist_ok=True)
        if not (RUN / "db.sock").exists():
            OpenVSwitch(STANDALONE_LOGS)
            OpenVSwitch.wait_for_database()
        nodes = {switch.name: switch for switch in switches}
        reached = list(switches)
        while reached:
            for interface, _ in _far_ends(reached.pop()):
                if interface.node.name not in nodes:
                    nodes[interface.node.name] = interface.node
                    reached.append(interface.node)
        network, pairs = switches[0].standalone
        wiring = Wiring(network, pairs, nodes)
        wiring.configure()
        stages = Stages(wiring.directions, Space(places=1, stretches=1, windows=1, drops=1))
        stages.settle(None, Path("/nonexistent"), 0)
        switches[0].held.append(stages)
        return wiring

    def transaction(self) -> list[str]:
        """The words for ovs-vsctl that make the bridge."""
        words = ["--", "add-br", self.name, "--", "set", "bridge", self.name, "fail_mode=standalone"]
        words += ["other_config:disable-in-band=true", "mcast_snooping_enable=false"]
        names = [interface.name for interface in self.intfs.values() if interface.name != "lo"]
        for name in names:
            words += ["--", "add-port", self.name, name]
            if self.learns and (number := PORT.search(name)):
                words += ["--", "set", "interface", name, f"ofport_request={number[1]}"]
        if self.relays:
            # What comes in at one port leaves at the other, wherever its destination was heard of.
            words += ["--", "set", "bridge", self.name, "flood_vlans=0", "other_config:forward-bpdu=true"]
        if self.learns and (own := bridge_number(self.name)):
            words += ["--", "set", "bridge", self.name, f"other_config:datapath-id={own}"]
        if self.mirror_to:
            port = next(name for interface, name in _far_ends(self) if interface.node.name == self.mirror_to)
            words += ["--", "--id=@port", "get", "port", port]
            words += ["--", "--id=@mirror", "create", "mirror", f"name={self.name}"]
            words += ["select-all=true", "output-port=@port", "--", "set", "bridge", self.name, "mirrors=@mirror"]
        return words

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803  # Mininet's name
        """Removes the bridge."""
        subprocess.run(
            ["ovs-vsctl", f"--db=unix:{RUN}/db.sock", "--if-exists", "del-br", self.name],
            check=False,
            capture_output=True,
        )


def know_addresses(behind: Iterable[tuple[str, str, str]]) -> None:
    """Tells bridges for ever behind which port each address is, so that none floods what it could not learn before.

    Raises:
        OSError: the daemon does not take one.
    """
    for bridge, port, mac in behind:
        request = {"id": 0, "method": "fdb/add", "params": [bridge, port, "0", mac]}
        with socket.socket(socket.AF_UNIX) as daemon:
            daemon.connect(str(next(RUN.glob("ovs-vswitchd.*.ctl"))))
            daemon.sendall(json.dumps(request).encode())
            daemon.shutdown(socket.SHUT_WR)
            answer = json.loads(daemon.recv(ANSWER_BYTES))
        if answer["error"] is not None:
            raise OSError(errno.EINVAL, f"Open vSwitch: fdb/add {bridge} {port} {mac}: {answer['error']}")


def _far_ends(node: Any) -> list[tuple[Any, str]]:
    """The interfaces at the other ends of a node's links, each with the node's own interface's name."""
    pairs = []
    for interface in node.intfs.values():
        if interface.link:
            other = interface.link.intf2 if interface.link.intf1 is interface else interface.link.intf1
            pairs.append((other, interface.name))
    return pairs
