"""What a Mininet script makes its network of: nodes, interfaces, links and controllers with Mininet's own names.

In the first run they say what they are, in the second they are the lab's; a script's own classes derive from them. What
a script does to them before the network is used is part of what the network is.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import mininet.node
from mininet.link import Intf, Link
from mininet.node import Controller, OVSSwitch

from scpslab.core.strict_json import JsonObject
from scpslab.core.units import LARGEST
from scpslab.lab.cell import Prepared
from scpslab.lab.changes import ChangeError, LinkChanges, Replaced, Shape
from scpslab.lab.nodes import LabNode
from scpslab.lab.place import WORK
from scpslab.lab.stages import DirectionStages
from scpslab.lab.switches import RUN, LabIntf, bridge_number
from scpslab.plan.mininet import MOST_NOTES, UNLIMITED_BPS, Described, MininetScript
from scpslab.plan.schema import PlanError
from scpslab.plan.values import LONGEST_LABEL

# What a script gives Mininet by name, of any kind.
Params = dict[str, Any]
# The script's folder, which nodes see as well: /run and /tmp are each node's own.
FILES = Path("/srv/mn")
# Where shells write the names of programs that they did not find.
NOT_FOUND = FILES / ".not-found"
# What a bash does then (its manual, "Command Search and Execution"); bash takes functions from the environment.
HANDLER = (
    "BASH_FUNC_command_not_found_handle%%",
    f'() {{ echo "bash: $1: command not found" >&2; echo "$1" >>{NOT_FOUND}; return 127; }}',
)
# Programs that courses use and the guest does not have: the package of Debian that brings them, where it has another
# name; or what to use instead.
BRINGS = (
    "nft:nftables nc:netcat-openbsd netcat:netcat-openbsd brctl:bridge-utils killall:psmisc vconfig:vlan "
    "dig:bind9-dnsutils telnet:inetutils-telnet mtr:mtr-tiny ssh:openssh-client arpspoof:dsniff arping:iputils-arping "
    "osken-manager:python3-os-ken ovs-testcontroller:openvswitch-testcontroller ovs-controller:openvswitch-testcontroller"
)
PACKAGES = dict(pair.split(":") for pair in BRINGS.split())
INSTEAD = {"xterm": "print(...): there is no display", "service": "the program itself", "ryu-manager": "osken-manager"}
# Where there is no max_queue_size: netem's limit, and the default length of a Linux interface's queue.
DEFAULT_QUEUE = 1000
# tc reads a time without a unit as microseconds.
UNITS_NS = {
    **dict.fromkeys(("s", "sec", "secs"), 10**9),
    **dict.fromkeys(("ms", "msec", "msecs"), 10**6),
    **dict.fromkeys(("us", "usec", "usecs", ""), 1000),
}
TIME = re.compile(r"(\d+\.?\d*|\.\d+)\s*([a-z]*)")
# Numbers of a link: between what they are, and in words. Whatever is 0 is as if it were not there.
NUMBERS = {
    "bw": (8e-6, LARGEST / 10**6, "bw of at least 8e-6 Mbit/s"),
    "loss": (0, 100, "loss of 0 to 100 %, as a number"),
    "max_queue_size": (1, LARGEST, "a number of packets"),
}
LONGEST_SHOWN = 60
BRIDGES = "switches learn addresses by themselves"
# Words that say how Mininet does a thing.
OF_LINKS = {"fast", "speedup", "gro", "tso", "txo", "rxo", "up", "moveIntfFn", "disable_gro"}
SHAPERS, REFUSED = ("use_htb", "use_hfsc", "use_tbf"), ("enable_ecn", "enable_red")
# What says that a script gives links other numbers while they run; how a class of its own configures itself does not.
CHANGES, OWN = re.compile(r"\.config\b"), re.compile(r"super\(.*?\)\s*\.config|\.config\(\s*self")
# Settings that a network namespace takes over from the first one when it is made (Linux 6.12, tcp_sk_init).
TAKEN_OVER = ("tcp_congestion_control", "tcp_rmem", "tcp_wmem", "ip_forward")
SETTINGS = Path("/proc/sys/net/ipv4")
# Commands after which the lab looks whether its queues are still its own, or where packets are lost uncounted.
OF_TC, OF_LINK_STATE = re.compile(r"\btc\b"), re.compile(r"\b(tc|ifconfig|ip link|ip -\w+ link|ovs-\w+)\b")
TOUCHED = WORK / "touched"


def refuse(found: str, expected: str) -> SystemExit:
    """The end of a script that asks for what there is not."""
    return SystemExit(f"scpslab mn: found {found}; expected {expected}.")


def other_network() -> SystemExit:
    """The end of a script whose network is another one in its second run, or grows too late."""
    return refuse(
        "another network than in the first run",
        "nodes and links that are complete before the first command, and do not depend on chance",
    )


def _given(name: str, value: Any) -> str:
    text = repr(value)
    return f"{name}={text[:LONGEST_SHOWN]}{'…' if len(text) > LONGEST_SHOWN else ''}"


def settings() -> dict[str, str]:
    """The settings of TCP and of forwarding outside of all nodes."""
    return {path.name: path.read_text().strip() for path in SETTINGS.glob("tcp_*") if os.access(path, os.R_OK)} | {
        "ip_forward": (SETTINGS / "ip_forward").read_text().strip()
    }


class Drawing:
    """A script's network as the script has said it so far. `real`: the lab's, once there is one."""

    cell: Prepared
    script: MininetScript
    real: Any = None

    def __init__(self) -> None:
        self.nodes: dict[str, ScriptNode] = {}
        self.links: list[ScriptLink] = []
        self.notes: dict[str, None] = {}
        # `being_made`: nodes and links, in which nothing happens meanwhile.
        self.begun = False
        self.being_made = self.renewals = 0
        # Settings outside of all nodes, as they were and as the last node took them over.
        self.settings: dict[str, str] = {}
        self.taken: dict[str, str] = {}
        self.replaced: Replaced | None = None
        # Directions that tc of the script's own has changed.
        self.theirs: set[DirectionStages] = set()
        # Whether the script wants switches without a controller.
        self.without_controller = False

    def note(self, text: str) -> None:
        """Says once what the lab does not do: in the first run with the network, later at once."""
        text = "".join(one if one.isprintable() else "?" for one in text)[:LONGEST_LABEL]
        if text in self.notes or len(self.notes) >= MOST_NOTES:
            return
        self.notes[text] = None
        if self.begun:
            print(f"warning: {text}", file=sys.stderr, flush=True)

    def begin(self) -> None:
        """The network is used: the first run ends here, with its description."""
        if self.begun:
            return
        self.begun = True
        nodes = [node.described() for node in self.nodes.values()]
        links = [link.described() for link in self.links]
        try:
            described = Described.read({"nodes": nodes, "links": links, "notes": list(self.notes)})
        except PlanError as error:
            raise SystemExit(f"scpslab mn: {error}.") from error
        if self.real is None:
            (WORK / "network.json").write_text(json.dumps(described.write()))
            os._exit(0)
        if described.digest != self.script.described:
            raise other_network()
        self.changes = LinkChanges(self.cell.network, self.cell.settled)
        for link in self.links:
            link.begin()
        # The prompt, and whatever asks the lab for a node, gets the script's.
        for nodes_of_lab in (self.real.hosts, self.real.switches):
            nodes_of_lab[:] = [self.nodes.get(node.name, node) for node in nodes_of_lab]
        self.real.nameToNode |= self.nodes
        self.replaced = Replaced(self.cell.network)

    def renew(self, intf: ScriptIntf, shape: JsonObject) -> None:
        """Gives what an interface sends other numbers."""
        number, end = next((at, link.ends.index(intf)) for at, link in enumerate(self.links) if intf in link.ends)
        plan = self.cell.plan.network.links[number]
        direction = self.changes.direction(plan.name, plan.directions[end].name)
        self.renewals += 1
        seed = f"{self.cell.plan.cell.kernel_seed} {intf.name} {self.renewals}"
        numbers = {**shape, "rate_bps": shape["rate_bps"] or UNLIMITED_BPS}
        if not self.links[number].changes:
            raise refuse(
                f"{intf.name}.config({', '.join(shape)})", "a call .config(...) that stands in the script's text"
            )
        try:
            self.changes.renew(direction, Shape(**numbers), seed)  # type: ignore[arg-type]  # its numbers
        except ChangeError as error:
            raise refuse(f"{intf.name}: {error}", "what the link can be") from error
        if self.replaced:
            self.replaced.lab_has_changed(direction)

    def taken_over(self) -> dict[str, str]:
        """What the script has set outside of all nodes and a node takes over that is made now."""
        now = settings()
        self.taken |= {one: now[one] for one in TAKEN_OVER if now[one] != self.settings[one]}
        return {f"net.ipv4.{one}": value for one, value in self.taken.items()}

    def restore(self) -> None:
        """Sets what Open vSwitch has taken off ports when settings of a bridge changed."""
        for direction in set(self.replaced.directions()) - self.theirs if self.replaced else ():
            self.changes.restore(direction)

    def look(self) -> None:
        """Says what the script has changed, or asked for, that is not as it may believe."""
        if not self.replaced:
            return
        with suppress(FileNotFoundError):
            names = NOT_FOUND.read_text().split()
            NOT_FOUND.unlink()
            for name in names:
                self.missing(name)
        for direction, interface in self.replaced.directions().items():
            TOUCHED.touch()
            self.theirs.add(direction)
            self.note(
                f"{direction.link} {direction.name}: tc has changed {interface}: rate, queue and delay of the link are "
                "what tc has made of them; intf.config(...) changes a link here"
            )
        before = self.settings | self.taken
        changed = {name for name, value in settings().items() if value != before.get(name, value)}
        for name in sorted(changed):
            self.note(
                f"sysctl net.ipv4.{name}: changed outside of all nodes; as in Mininet it does not hold in hosts that "
                f"are there already. Use host.cmd('sysctl -w net.ipv4.{name}=...')"
            )

    def missing(self, name: str) -> None:
        """Says what to use in place of a program that is not there."""
        package = PACKAGES.get(name, name)
        use = INSTEAD.get(name) or f"scpslab mn --packages {package}, or the package of Debian that has it"
        self.note(f"{name}: the guest has no such program; use {use}")


NET = Drawing()


class ScriptNode(LabNode):
    """`Node`, `Host`, and what a script derives from them."""

    kind = "host"
    _pid: Any = None
    _stdout: Any = None

    def __init__(self, name: str, *words: Any, **params: Any) -> None:
        if name in NET.nodes:
            raise refuse(f"a second node {name}", "a name of its own for each node")
        if self.kind and NET.real is not None and name not in NET.real.nameToNode:
            raise other_network()
        self.said = dict(params)
        if self.kind == "host" and params.get("inNamespace") is False:
            NET.note(f"inNamespace=False of {name}: it has a network of its own, as every node here")
            params["inNamespace"] = True
        if self.kind == "host" and type(self).config is not ScriptNode.config:
            self.kind = "router"
        if self.kind:
            NET.nodes[name] = self
        NET.being_made += 1
        super().__init__(name, *words, **params)
        NET.being_made -= 1

    @property
    def pid(self) -> Any:
        """The node's first process."""
        if self._pid is None and not NET.being_made:
            NET.begin()
        return self._pid

    @pid.setter
    def pid(self, value: Any) -> None:
        self._pid = value

    @property
    def stdout(self) -> Any:
        """What the node's shell prints; there is a shell from now on."""
        if self._stdout is None:
            self._open_shell()
        return self._stdout

    @stdout.setter
    def stdout(self, value: Any) -> None:
        self._stdout = value

    def startShell(self, mnopts: str | None = None) -> None:  # Mininet's name
        """Takes over the lab's node."""
        self.prefix: list[str] = []
        if NET.real is None:
            return
        self._pid = os.getpid()
        if self.inNamespace:
            real = NET.real.nameToNode[self.name]
            self._pid, self.prefix = real.pid, list(real.prefix)
            # A router of the lab forwards; one of the script's forwards when the script says so.
            self.sysctls({"net.ipv4.ip_forward": "0"} if self.kind == "router" else {})
            self.sysctls(NET.taken_over())
        self.prefix += ["env", "-C", str(FILES)]

    def _open_shell(self) -> None:
        if not NET.being_made:
            NET.begin()
        super()._open_shell()

    def mountPrivateDirs(self) -> None:  # Mininet's name
        """Nobody mounts in a node."""
        if self.privateDirs:
            NET.note(
                "privateDirs: ignored; /tmp, /run, /etc and /var are each node's own, whatever else all nodes share"
            )

    unmountPrivateDirs = mountPrivateDirs  # noqa: N815  # Mininet's name

    def described(self) -> JsonObject:
        """The node as it is described."""
        gateway = re.search(r"\d+\.\d+\.\d+\.\d+", str(self.said.get("defaultRoute") or ""))
        return {"name": self.name, "kind": self.kind, "gateway": gateway and gateway[0]}

    def config(self, mac: Any = None, ip: Any = None, defaultRoute: Any = None, **_params: Any) -> Params:  # noqa: N803
        """Configures what the lab has not: a class of the script's own may ask for other addresses than the node's."""
        asked = {"mac": mac, "ip": ip, "defaultRoute": defaultRoute}
        found: Params = {}
        for name, method in (("mac", "setMAC"), ("ip", "setIP"), ("defaultRoute", "setDefaultRoute")):
            if asked[name] != self.said.get(name):
                self.setParam(found, method, **{name: asked[name]})
        return found

    def configDefault(self, **more: Any) -> None:  # Mininet's name
        """Nothing happens in a node before the network is up."""
        if NET.real is not None:
            super().configDefault(**more)

    def setDefaultRoute(self, intf: Any = None) -> None:  # Mininet's name
        """As in Mininet, on the network that is up."""
        if NET.real is not None:
            super().setDefaultRoute(intf)

    def cmd(self, *words: Any, **options: Any) -> Any:
        """Types a command into the node's shell; what it changes beside the lab is said."""
        # Mininet's switches ask for what there is.
        if NET.being_made and (NET.real is None or words[:2] == ("ifconfig", "lo")):
            return ""
        said = super().cmd(*words, **options)
        text = " ".join(map(str, words))
        if OF_LINK_STATE.search(text):
            TOUCHED.touch()
        if "ovs-vsctl" in text:
            NET.restore()
        if OF_TC.search(text) or NOT_FOUND.exists():
            NET.look()
        if OF_TC.search(text) and (wrong := re.search(r"(Error|RTNETLINK|Cannot|What is).*", str(said))):
            NET.note(f"{self.name}: tc has not done {text!r}: {wrong[0].strip()}")
        return said

    def popen(self, *words: Any, **options: Any) -> subprocess.Popen[bytes]:
        """Starts a program inside the node."""
        NET.begin()
        first = words[0] if isinstance(words[0], list) else str(words[0]).split()
        if not options.get("shell") and shutil.which(str(first[0])) is None and "/" not in str(first[0]):
            NET.missing(str(first[0]))
        process = super().popen(*words, **options)
        STARTED[process.pid] = bool(self.inNamespace)
        return process

    def terminate(self) -> None:
        """Ends the node's shell; the node ends with the lab."""
        self.close_shell()


class ScriptHost(ScriptNode):
    """`Host`."""


class ScriptLimitedHost(ScriptHost):
    """`CPULimitedHost`, without limits."""

    def __init__(self, name: str, *words: Any, **params: Any) -> None:
        NET.note("CPULimitedHost, cpu: ignored; computing takes no virtual time")
        super().__init__(name, *words, **params)

    def setCPUFrac(self, *_words: Any, **_params: Any) -> None:  # Mininet's name
        """Ignored."""

    setCPUs = setCPUFrac  # noqa: N815  # Mininet's name


class ScriptSwitch(ScriptNode, OVSSwitch):  # type: ignore[misc]  # Mininet has no types
    """Any switch: a bridge of Open vSwitch."""

    kind = "switch"
    OVSVersion = "3.0"

    @classmethod
    def setup(cls) -> None:
        """Open vSwitch is there when it is needed."""

    def defaultDpid(self, dpid: str | None = None) -> str:  # Mininet's name
        """As Mininet's, and a number for a name without one."""
        return str(super().defaultDpid(dpid)) if dpid else bridge_number(self.name) or f"{1000 + len(NET.nodes):016x}"

    def start(self, controllers: list[Any]) -> None:
        """Gives the bridge its numbers, and the controllers that are there."""
        NET.begin()
        driving = [controller for controller in controllers if controller.drives()]
        is_alone = not controllers and (NET.without_controller or "failMode" in self.said)
        self.mode = self.failMode if driving or is_alone else "standalone"
        if self.mode == "secure" and not driving:
            NET.note(
                f"{self.name}: no controller and failMode='secure': as in Mininet, packets pass by rules of ovs-ofctl "
                "only; OVSBridge, or failMode='standalone', learns addresses by itself"
            )
        words: list[str] = []
        if self.mode == "secure" or self.dpid != bridge_number(self.name) or self.protocols:
            words += ["--", "set", "bridge", self.name, f"fail_mode={self.mode}"]
            words += [
                f"other_config:datapath-id={self.dpid}",
                *([f"protocols={self.protocols}"] if self.protocols else []),
            ]
        for intf, port in self.ports.items():
            if port and not intf.name.endswith(f"-eth{port}"):
                words += ["--", "set", "interface", intf.name, f"ofport_request={port}"]
        if driving:
            words += ["--", "set-controller", self.name, *(f"{one.protocol}:{one.IP()}:{one.port}" for one in driving)]
        if words:
            vsctl = ["ovs-vsctl", f"--db=unix:{RUN}/db.sock", *words]
            done = subprocess.run(vsctl, capture_output=True, text=True, check=False)
            if done.returncode:
                raise refuse(f"{self.name}: {done.stderr.strip()}", "what Open vSwitch can be")
            NET.restore()

    @classmethod
    def batchStartup(cls, switches: Any, **_options: Any) -> Any:  # Mininet's name
        """They have started."""
        return switches

    def connected(self) -> bool:
        """Whether the switch forwards."""
        return getattr(self, "mode", "standalone") == "standalone" or bool(super().connected())

    def vsctl(self, *words: Any, **options: Any) -> Any:
        """Runs ovs-vsctl."""
        return self.cmd("ovs-vsctl", *words, **options)

    def attach(self, intf: Any) -> None:
        """Refused: ports are there from the beginning."""
        raise refuse(f"{self.name}.attach({intf})", "links that are complete before the first command")

    detach = attach

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803  # Mininet's name
        """Takes the bridge away, as Mininet does."""
        self.cmd("ovs-vsctl --if-exists del-br", self.name)


class ScriptBridge(ScriptSwitch):
    """`OVSBridge`, `LinuxBridge`."""

    def __init__(self, *words: Any, **params: Any) -> None:
        super().__init__(*words, **params | {"failMode": "standalone"})


class ScriptController(ScriptNode, Controller):  # type: ignore[misc]  # Mininet has no types
    """A controller: it drives switches if its program is there, else they learn by themselves."""

    kind = ""

    def drives(self) -> bool:
        """Whether the program that `start` runs is there."""
        return shutil.which(self.command.split()[0]) is not None

    def checkListening(self) -> None:  # Mininet's name
        """Nobody else listens."""

    def start(self) -> None:
        """Starts the program, if there is one."""
        NET.begin()
        if self.drives():
            super().start()
        elif self.command != "controller":
            NET.missing(self.command.split()[0])


class ScriptRemote(ScriptController):
    """`RemoteController`: a program that the script starts by itself."""

    def __init__(self, name: str, ip: str = "127.0.0.1", port: int | None = None, **params: Any) -> None:
        super().__init__(name, ip=ip, port=port or 6653, **params)
        self.ports_to_try = (port,) if port else (6653, 6633)

    def drives(self) -> bool:
        """Whether somebody listens."""
        for port in self.ports_to_try:
            with suppress(OSError), socket.create_connection((self.ip, port), 1.0):
                self.port = port
                return True
        NET.note(
            f"{self.name}: nobody listened at {self.ip}:{self.port} when the switches started, so {BRIDGES}; start the "
            "controller's program in the script, and before the switches"
        )
        return False

    def start(self) -> None:
        """The script has started it."""

    def stop(self, *_words: Any, **_params: Any) -> None:
        """The script ends it."""


class ScriptIntf(LabIntf):
    """`Intf`: an interface of the lab's, once there is one."""

    shaped = False

    def __init__(self, name: str, *words: Any, **params: Any) -> None:
        self.words: Params = {}
        self.address: str | None = None
        Intf.__init__(self, name, *words, **{"moveIntfFn": _stays, **params})

    def config(self, mac: Any = None, ip: Any = None, ifconfig: Any = None, up: Any = True, **words: Any) -> Any:
        """What the interface is; once the network is up, as in Mininet."""
        if NET.begun:
            return Intf.config(self, mac=mac, ip=ip, ifconfig=ifconfig, up=None if up is True else up)
        if self.name != "lo":
            self.mac, self.address = mac or self.mac, ip or self.address
            self.words |= {name: value for name, value in words.items() if value and name not in OF_LINKS}
            self.shape()
        return {}

    def shape(self) -> JsonObject:
        """Mininet's words for what an interface sends, in base units."""
        words = dict(self.words)
        if words and not self.shaped:
            NET.note(f"{', '.join(sorted(words))}: ignored, as in Mininet, on a link that is no TCLink")
            words = {}
        if refused := [name for name in REFUSED if name in words]:
            raise refuse(refused[0], "a drop-tail queue; a scenario has RED, CoDel and ECN")
        bw, loss, queue = (
            _number(name, words.pop(name, default))
            for name, default in (("bw", 0), ("loss", 0), ("max_queue_size", DEFAULT_QUEUE))
        )
        delay_ns, jitter_ns = (_time(name, words.pop(name, 0)) for name in ("delay", "jitter"))
        for name in words:
            NET.note(
                f"{name}: ignored; "
                + ("the serialiser is exact" if name in SHAPERS else "not a word that links have here")
            )
        if loss:
            NET.note(
                "loss: each packet is lost with the same probability, whatever its length, behind the link and not "
                "before it"
            )
        numbers = {"limit_packets": int(queue), "delay_ns": delay_ns, "jitter_ns": jitter_ns, "loss": loss / 100}
        return {"rate_bps": round(bw * 10**6 / 8) * 8 or None, **numbers}

    def cidr(self) -> str | None:
        """The interface's address: a node's own is that of its default interface."""
        of_node = self.node.said.get("ip") if self.node.kind != "switch" and self.node.defaultIntf() is self else None
        ip = of_node or self.address
        return ip and (ip if "/" in ip else f"{ip}/8")

    def described(self) -> JsonObject:
        """This end of a link as it is described."""
        own = self.node.said if self.node.kind != "switch" and self.node.defaultIntf() is self else {}
        mac = _mac(own.get("mac") or self.mac)
        return {"node": self.node.name, "interface": self.name, "ip": self.cidr(), "mac": mac, **self.shape()}

    def begin(self) -> None:
        """Takes over the lab's interface."""
        real = NET.cell.network.wiring.nodes[self.node.name].nameToIntf[self.name]
        self.mac, self.ip, self.prefixLen = real.mac, real.ip, real.prefixLen

    def IP(self) -> str | None:  # Mininet's name
        """The address."""
        return self.ip if NET.begun or self.name == "lo" else (self.cidr() or "").partition("/")[0] or None

    def MAC(self) -> str | None:  # Mininet's name
        """The hardware address, which the lab may have to give."""
        if self.mac is None and not NET.being_made:
            NET.begin()
        return self.mac

    def setIP(self, ipstr: str, prefixLen: Any = None, **_params: Any) -> Any:  # noqa: N803  # Mininet's names
        """As in Mininet; before the network is used, its address from the beginning."""
        if NET.begun:
            return Intf.setIP(self, ipstr, prefixLen)
        cidr = ipstr if "/" in ipstr else f"{ipstr}/{prefixLen or 8}"
        self.address = cidr
        if self.node.defaultIntf() is self:
            self.node.said["ip"] = self.node.params["ip"] = cidr
        return ""

    def setMAC(self, macstr: str) -> Any:  # Mininet's name
        """As in Mininet; before the network is used, its address from the beginning."""
        if NET.begun:
            return Intf.setMAC(self, macstr)
        self.mac = macstr
        if self.node.defaultIntf() is self:
            self.node.said["mac"] = self.node.params["mac"] = macstr
        return ""

    def isUp(self, setUp: bool = False) -> bool:  # Mininet's names
        """Interfaces are up from the beginning."""
        return bool(Intf.isUp(self, setUp)) if NET.begun else True

    def rename(self, newname: str) -> Any:
        """As in Mininet; the lab goes on finding the interface."""
        if self.node.kind == "switch" and NET.begun:
            raise refuse(f"{self.name}.rename({newname!r})", "intfName1= or intfName2= of the link")
        if NET.begun:
            network = NET.cell.network
            for index, name in network.names.items():
                if (network.places[index], name) == (self.node.name, self.name):
                    network.names[index] = newname
            return Intf.rename(self, newname)
        self.node.nameToIntf[newname] = self.node.nameToIntf.pop(self.name)
        self.name = newname
        return ""

    def delete(self) -> None:
        """Refused: a link does not come back."""
        raise refuse(f"{self.name}.delete()", "net.configLinkStatus(…, …, 'down')")


class ScriptTCIntf(ScriptIntf):
    """`TCIntf`."""

    shaped = True

    def config(self, **params: Any) -> Any:
        """What the interface is and sends; while the network is up, other numbers from now on."""
        words = {name: params.pop(name) for name in list(params) if name not in ("mac", "ip", "ifconfig", "up")}
        if not NET.begun:
            return super().config(**params, **words)
        result = super().config(**params)
        shape = {name: value for name, value in words.items() if value is not None and name not in OF_LINKS}
        if not {"bw", "delay", "loss", "max_queue_size"} & set(shape):
            return None
        # Mininet makes the interface anew: what is not said is not there.
        self.words = {name: value for name, value in shape.items() if value}
        NET.renew(self, self.shape())
        return {**result, "tcoutputs": [], "parent": " parent 10:1 "}


def _stays(*_words: Any) -> None:
    """An interface is where it belongs."""


def _number(name: str, value: Any) -> float:
    least, most, expected = NUMBERS[name]
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if name == "max_queue_size" and number % 1:
        NET.note(f"{_given(name, value)}: {number // 1:.0f} packets, as in Mininet")
        number //= 1
    if not (number == 0 or least <= number <= most):
        raise refuse(_given(name, value), expected)
    return number


def _time(name: str, value: Any) -> int:
    match = TIME.fullmatch(str(value))
    if match is None or match[2] not in UNITS_NS:
        raise refuse(_given(name, value), "a time such as '5ms'")
    if (time_ns := float(match[1]) * UNITS_NS[match[2]]) > LARGEST:
        raise refuse(_given(name, value), f"a time of at most {LARGEST // 10**9} s")
    if value and not match[2]:
        NET.note(f"{name}={value}: microseconds, as tc reads a time without a unit")
    return round(time_ns)


def _mac(text: Any) -> str | None:
    """A MAC address in small letters, with its colons."""
    digits = str(text or "").replace(":", "").lower()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2)) or None


class ScriptLink(Link):  # type: ignore[misc]  # Mininet has no types
    """`Link`."""

    interface: Any = None

    def __init__(self, node1: Any, node2: Any, *words: Any, **params: Any) -> None:
        if NET.begun:
            raise other_network()
        params = {"intf": ScriptIntf, "cls1": self.interface, "cls2": self.interface, **params}
        NET.being_made += 1
        super().__init__(node1, node2, *words, **params)
        NET.being_made -= 1
        self.ends = (self.intf1, self.intf2)
        NET.links.append(self)

    @classmethod
    def makeIntfPair(cls, *_words: Any, **_params: Any) -> None:  # Mininet's name
        """The lab has made it."""

    @property
    def changes(self) -> bool:
        """Whether the script may give it other numbers while it runs."""
        files = {FILES / NET.script.file, *FILES.rglob("*.py")}
        texts = (OWN.sub("", file.read_text(errors="replace")) for file in files)
        return any(end.shaped for end in self.ends) and any(map(CHANGES.search, texts))

    def described(self) -> JsonObject:
        """The link as it is described."""
        return {"ends": [end.described() for end in self.ends], "changes": self.changes}

    def begin(self) -> None:
        """Takes over the lab's link; one that may change gets its numbers."""
        for end in self.ends:
            end.begin()
            if self.changes:
                NET.renew(end, end.shape())

    def delete(self) -> None:
        """Refused: a link does not come back."""
        self.intf1.delete()


class ScriptTCLink(ScriptLink):
    """`TCLink`, `TCULink`."""

    interface = ScriptTCIntf


# Processes of popen by id, and whether a process of the lab's stands before the program (images/guest/tools/exec.c).
STARTED: dict[int, bool] = {}
_kill = os.kill


def kill(pid: int, number: int) -> None:
    """os.kill, which passes a signal on to the program where a process of the lab's stands before it."""
    if STARTED.get(pid) and number not in (signal.SIGKILL, signal.SIGTERM, 0):
        for status in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                if int(status.read_text().rpartition(")")[2].split()[1]) == pid:
                    _kill(int(status.parent.name), number)
                    return
    _kill(pid, number)


def classes() -> dict[str, dict[str, Any]]:
    """What a script gets of Mininet's modules by these names in place of Mininet's own."""
    own = {
        name: type(name, (ScriptController, getattr(mininet.node, name)), {})
        for name in ("OVSController", "NOX", "Ryu")
    }
    links = {
        "Link": ScriptLink,
        "Intf": ScriptIntf,
        "TCIntf": ScriptTCIntf,
        "OVSLink": ScriptLink,
        "OVSIntf": ScriptIntf,
    }
    switches = dict.fromkeys(("Switch", "UserSwitch", "OVSSwitch", "OVSKernelSwitch", "IVSSwitch"), ScriptSwitch)
    nodes = {"Node": ScriptNode, "Host": ScriptHost, "CPULimitedHost": ScriptLimitedHost, "OVSBridge": ScriptBridge}
    controllers = {
        "Controller": ScriptController,
        "DefaultController": ScriptController,
        "RemoteController": ScriptRemote,
    }
    return {
        "mininet.link": {**links, "TCLink": ScriptTCLink, "TCULink": ScriptTCLink},
        "mininet.node": {**links, **nodes, **switches, **controllers, **own},
    }
