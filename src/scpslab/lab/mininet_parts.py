"""What a Mininet script makes its network of: nodes, interfaces, links and controllers with Mininet's own names.

In the first run they say what they are, in the second they are the lab's; a script's own classes derive from them. What
a script does to a node or interface before the network is used happens in the second run alone.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Never

import mininet.node
from mininet.link import Intf, Link, TCIntf

from scpslab.core.strict_json import JsonObject
from scpslab.core.units import LARGEST
from scpslab.lab import changes, iperf, switches
from scpslab.lab.cell import Prepared
from scpslab.lab.nodes import LabNode
from scpslab.lab.place import WORK
from scpslab.lab.services import listens
from scpslab.plan import paths
from scpslab.plan.mininet import MOST_NOTES, UNLIMITED_BPS, Described, MininetScript, closing_link
from scpslab.plan.schema import PlanError
from scpslab.plan.values import LONGEST_LABEL

# What a script gives Mininet by name, of any kind.
Params = dict[str, Any]
# The script's folder, which nodes see as well: /run and /tmp are each node's own.
FILES = Path("/srv/mn")
# Where shells write the names of programs that they do not find: a function that bash takes from its environment.
NOT_FOUND = FILES / ".not-found"
HANDLER = f'() {{ echo "bash: $1: command not found" >&2; echo "$1" >>{NOT_FOUND}; return 127; }}'
# Packages of Debian that bring programs of courses, where they have another name.
BRINGS = "nft:nftables nc:netcat-openbsd brctl:bridge-utils dig,nslookup:bind9-dnsutils ab:apache2-utils "
BRINGS += "tracepath:iputils-tracepath arping:iputils-arping telnet:inetutils-telnet osken-manager:python3-os-ken "
BRINGS += "dhclient:isc-dhcp-client dhcpd:isc-dhcp-server bird,birdc:bird2 arpspoof:dsniff "
BRINGS += "mtr:mtr-tiny ssh:openssh-client sshd:openssh-server ovs-testcontroller:openvswitch-testcontroller"
PACKAGES = {name: has for one in BRINGS.split() for names, has in [one.split(":")] for name in names.split(",")}
# What no package brings, and what to do.
NO_FRR = "FRR needs rights that nodes do not have; bird has OSPF (--packages bird2)"
NO_VLAN = "the kernel has no VLAN interfaces; give ports of switches tags (ovs-vsctl set port s1-eth1 tag=10)"
WITHOUT = {"xterm": "there is no display", "vconfig": NO_VLAN, "zebra": NO_FRR, "vtysh": NO_FRR}
# Where there is no max_queue_size: netem's limit, and the default length of a Linux interface's queue.
DEFAULT_QUEUE = 1000
# tc reads a time without a unit as microseconds.
SCALES = ((10**9, ("s", "sec", "secs")), (10**6, ("ms", "msec", "msecs")), (1000, ("us", "usec", "usecs", "")))
UNITS_NS = {unit: scale for scale, units in SCALES for unit in units}
TIME = re.compile(r"(\d+\.?\d*|\.\d+)\s*([a-z]*)")
# Numbers of a link: between what they are, and in words. Whatever is 0 is as if it were not there.
NUMBERS = {
    "bw": (8e-6, LARGEST / 10**6, "bw of at least 8e-6 Mbit/s"),
    "loss": (0, 100, "loss of 0 to 100 %, as a number"),
    "max_queue_size": (1, LARGEST, "at least 1 packet"),
}
LONGEST_SHOWN = 60
# Words of hosts that do nothing here, and why.
IGNORED = {
    "inNamespace": "each node has a network of its own, and none has a way to the outside",
    "privateDirs": "/run, /etc and /var are each node's own, so is /tmp where it says so; all nodes share the others",
    **dict.fromkeys(("cpu", "cores", "sched"), "computing takes no virtual time"),
}
# Words that say how Mininet does a thing, those of every interface, and those to say something about.
OF_INTERFACES = ("mac", "ip", "ifconfig", "up")
OF_LINKS = {*OF_INTERFACES, "fast", "speedup", "gro", "tso", "txo", "rxo", "moveIntfFn", "disable_gro"}
SHAPERS, REFUSED = ("use_htb", "use_hfsc", "use_tbf"), ("enable_ecn", "enable_red")
SHAPED = {"bw", "delay", "loss", "max_queue_size"}
# What says that a script gives links other numbers while they run; how a class of its own configures itself does not.
CHANGES, OWN = re.compile(r"\.config\b"), re.compile(r"super\(.*?\)\s*\.config|\.config\(\s*self")
# Settings that a network namespace takes over from the first one when it is made (Linux 6.12, tcp_sk_init).
TAKEN_OVER = ("tcp_congestion_control", "tcp_rmem", "tcp_wmem", "ip_forward")
# Settings that scripts type into nodes while they still make the network.
SETS = re.compile(r"(sudo )?(sysctl|iptables|ethtool|ulimit|mkdir|echo \S+ *> *\S?/proc/)")
# What constructors of Mininet's own type into nodes.
OF_CONSTRUCTORS = {"ifconfig lo up", "sysctl -n net.ipv4.ip_forward"}
# A client that sends all it can for a time.
SENDS_ALL = re.compile(r"\biperf3?\b(?!.*\s-[ubnkF])(?=.*\s-c\s*(\S+))")
# Commands of tc and ip link, and what they say when they refuse; what any command says where the kernel lacks it.
OF_TC, WRONG = re.compile(r"\b(tc|ip link add)\b"), re.compile(r"(Error|RTNETLINK|Cannot|What is).*")
LACKS = re.compile(
    r".*(not enabled in kernel|Unknown device type|Operation not supported|not supported by protocol|No support for"
    r"|Error talking to the kernel|Module \S+ not found|cannot stat /proc/sys/(?!net/ipv6)\S+).*"
)
ABSENT = re.compile(r"bash: (?:line \d+: )?(/\S+): No such file or directory")
# What Open vSwitch takes, and does not do beside the lab's links.
POLICING = "ingress_policing"


def refuse(found: str, expected: str) -> SystemExit:
    """The end of a script that asks for what there is not."""
    return SystemExit(f"scpslab mn: found {found}; expected {expected}.")


def settings() -> dict[str, str]:
    """Settings outside of all nodes."""
    return {name: Path("/proc/sys/net/ipv4", name).read_text().strip() for name in TAKEN_OVER}


class Drawing:
    """A script's network as the script has said it so far. `real`: the lab's, once there is one."""

    cell: Prepared
    script: MininetScript
    real: Any = None
    net: Any = None
    replaced: changes.Replaced | None = None
    changes: changes.LinkChanges
    # `building`: a node is being made, whose class may have commands of its own for it.
    begun = without_controller = building = False

    def __init__(self) -> None:
        self.nodes: dict[str, ScriptNode] = {}
        self.links: list[ScriptLink] = []
        self.notes: dict[str, None] = {}
        self.renewals = 0
        # Settings outside of all nodes, at first and as nodes took them over; directions that the script has changed.
        self.at_first: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self.theirs: set[Any] = set()
        # Switches that learn by themselves in place of a controller.
        self.learning: set[str] = set()
        self.controllers: list[ScriptController] = []
        # Addresses that ends of links have.
        self.addresses: set[str] = set()

    def note(self, text: str) -> None:
        """Says once what the lab does not do: in the first run with the network, later at once."""
        text = "".join(one if one.isprintable() else "?" for one in text)[:LONGEST_LABEL]
        if text not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes[text] = None
            print(f"warning: {text}" if self.begun else "", end="\n" * self.begun, file=sys.stderr, flush=True)

    def begin(self) -> None:
        """The network is used: the first run ends here, with its description."""
        if self.begun:
            return
        self.begun = True
        nodes, links = ([one.described() for one in ones] for ones in (self.nodes.values(), self.links))
        try:
            described = Described.read({"nodes": nodes, "links": links, "notes": list(self.notes)})
        except PlanError as error:
            raise SystemExit(f"scpslab mn: {error}.") from error
        if self.real is None:
            (WORK / "network.json").write_text(json.dumps(described.write()))
            os._exit(0)
        if described.digest != self.script.described:
            self.other()
        # The prompt, and whatever asks the lab for a node, gets the script's.
        for nodes_of_lab in (self.real.hosts, self.real.switches):
            nodes_of_lab[:] = [self.nodes.get(node.name, node) for node in nodes_of_lab]
        self.real.nameToNode |= self.nodes
        self.changes = changes.LinkChanges(self.cell.network, self.cell.settled)
        for end in (end for link in self.links if link.changes for end in link.ends):
            self.renew(end, end.shape())
        self.replaced = changes.Replaced(self.cell.network)
        for end in (end for link in self.links for end in link.ends if end.later):
            end.setIP(end.later)
        for node in (node for node in self.nodes.values() if node.kind == "host" and node.said.get("defaultRoute")):
            node.setDefaultRoute(node.said["defaultRoute"])

    def other(self) -> Never:
        """Ends a script whose network is another one in its second run, or grows too late."""
        expected = "nodes and links that are complete before the first command, and do not depend on chance"
        raise refuse("another network than in the first run", expected)

    def renew(self, intf: ScriptIntf, shape: JsonObject) -> None:
        """Gives what an interface sends other numbers."""
        number, end = next((at, link.ends.index(intf)) for at, link in enumerate(self.links) if intf in link.ends)
        if not self.links[number].changes:
            raise refuse(f"a change of {intf.name}", "a call .config(...) that stands in the script's text")
        plan = self.cell.plan.network.links[number]
        direction = self.changes.direction(plan.name, plan.directions[end].name)
        self.renewals += 1
        seed = f"{self.cell.plan.cell.kernel_seed} {intf.name} {self.renewals}"
        try:
            self.changes.renew(direction, seed, shape | {"rate_bps": shape["rate_bps"] or UNLIMITED_BPS})
        except changes.ChangeError as error:
            raise SystemExit(f"scpslab mn: {intf.name}: {error}.") from error
        if self.replaced:
            self.replaced.lab_has_changed(direction)

    def endless(self, client: Any, server: Any) -> str:
        """Why a connection between two nodes that sends all it can would never end; "" if it does."""
        self.look()
        way = paths.way(self.cell.plan.network.all_links, client.name, server.name)
        takes_time = any(hop.direction.rate_bps not in (None, UNLIMITED_BPS) or hop.delay_ns for hop in way)
        if takes_time or self.cell.plan.cell.shell or self.theirs or self.renewals:
            return ""
        return f"iperf: found no link with a bw between {client} and {server}; expected one, or it never ends here."

    def loop(self) -> bool:
        """Whether switches without a spanning tree are in a loop."""
        bridges = [name for name, node in self.nodes.items() if node.kind == "switch" and not node.stp]
        return closing_link([[end.node.name for end in link.ends] for link in self.links], bridges) is not None

    def restore(self) -> None:
        """Sets what Open vSwitch has taken off ports when settings of a bridge changed."""
        for direction in set(self.replaced.directions()) - self.theirs if self.replaced else ():
            self.changes.restore(direction)

    def look(self) -> None:
        """Says what the script has changed, or asked for, that is not as it may believe."""
        with suppress(FileNotFoundError):
            for line in NOT_FOUND.read_text().splitlines():
                self.note(line) if " " in line else self.missing(line)
            NOT_FOUND.unlink()
        for direction, interface in self.replaced.directions().items() if self.replaced else ():
            self.theirs.add(direction)
            link = f"{direction.link} {direction.name}"
            self.note(
                f"{link}: a command has changed {interface}, whose rate, queue and delay are no longer the link's"
            )
        for name in [name for name, value in settings().items() if value != self.settings.get(name, value)]:
            self.note(f"net.ipv4.{name}: set after the hosts were made, it holds in none; use host.cmd('sysctl ...')")

    def missing(self, name: str) -> None:
        """Says what to use in place of a program that is not there."""
        advice = f"use --packages {PACKAGES.get(name, name)}, or the package that has it"
        self.note(f"{name}: not in the guest; {WITHOUT.get(name, advice)}")


NET = Drawing()


class ScriptNode(LabNode):
    """`Node`, `Host`, and what a script derives from them."""

    kind = "host"
    setCPUFrac = setCPUs = lambda *_words, **_params: None  # noqa: N815  # Mininet's names
    linkTo = lambda node, other, link=None: (link or ScriptLink)(node, other)  # noqa: E731, N815  # Mininet's name
    stdout = property(lambda node: node.opened(), lambda node, value: node.__dict__.update(output=value))

    def __init__(self, name: str, *words: Any, **params: Any) -> None:
        if name in NET.nodes:
            raise refuse(f"a second node {name}", "a name of its own for each node")
        self.said = dict(params)
        if self.kind == "host":
            for word, why in IGNORED.items():
                if params.get(word) not in (None, True):
                    NET.note(f"{word}: ignored; {why}")
            params |= {"inNamespace": True, "privateDirs": []}
            self.kind = "host" if type(self).config is ScriptNode.config else "router"
        if self.kind:
            NET.nodes[name] = self
        else:
            NET.controllers.append(self)
        super().__init__(name, *words, **params)

    def opened(self) -> Any:
        """The output of the node's shell."""
        if self.__dict__.get("output") is None:
            NET.begin()
            self.open_shell()
        return self.output

    def startShell(self, mnopts: str | None = None) -> None:  # Mininet's name
        """Takes over the lab's node."""
        self.pid, self.prefix = os.getpid(), ["env", "-C", str(FILES)]
        if NET.real is not None and self.inNamespace:
            real = NET.real.nameToNode.get(self.name) or NET.other()
            self.pid, self.prefix = real.pid, [*real.prefix, *self.prefix]
            if "/tmp" not in str(self.said.get("privateDirs")):
                # Below the node's own is that of the script, which sees there what nodes write.
                subprocess.run(["nsenter", f"--mount=/proc/{real.pid}/ns/mnt", "umount", "/tmp"], check=True)
            # A router of the lab forwards; one of the script's forwards when the script says so.
            own = {"ip_forward": "0"} if self.kind == "router" else {}
            taken = {name: value for name, value in settings().items() if value != NET.at_first[name]}
            NET.settings = NET.settings | taken
            self.sysctls({f"net.ipv4.{name}": value for name, value in (own | taken).items()})

    def described(self) -> JsonObject:
        """The node as it is described."""
        return {"name": self.name, "kind": self.kind}

    config = mininet.node.Node.config

    def configDefault(self, **more: Any) -> None:  # Mininet's name
        """What a class of the script's own does happens on the network that is up; else nothing is left to do there."""
        if NET.real is None:
            self.params.update(more)
            mininet.node.Node.config(self, **self.params)
        elif self.kind == "router":
            super().configDefault(**more)

    def setDefaultRoute(self, intf: Any = None) -> None:  # Mininet's name
        """As in Mininet."""
        if NET.real is not None:
            way = str(intf) if " " in str(intf) else f"dev {intf}"
            self.start(["ip", "route", "replace", "default", *way.split()]).wait()

    def before(self, *words: Any) -> Any:
        """A command that makes the network, and does not use it."""
        return super().cmd(*words) if NET.real is not None else ""

    def cmd(self, *words: Any, **options: Any) -> Any:
        """Types a command into the node's shell; what it changes beside the lab is said."""
        text = " ".join(map(str, words))
        if text in OF_CONSTRUCTORS:
            return ""
        unfinished = NET.net is not None and not NET.net.built and not NET.begun
        if NET.building or (unfinished and SETS.match(text)):
            return self.before(*words)
        NET.begin()
        said = super().cmd(*words, **options)
        if "ovs-vsctl" in text:
            NET.restore()
        if OF_TC.search(text) or NOT_FOUND.exists():
            NET.look()
        if wrong := (OF_TC.search(text) and WRONG.search(str(said))) or LACKS.search(str(said)):
            NET.note(f"{self.name}: not done: {text!r}: {wrong[0].strip()}")
        if "del-flows" in text:
            # As the controller would that a switch stands in for.
            for name in {*text.split()} & NET.learning:
                super().cmd(f"ovs-ofctl -O OpenFlow10,OpenFlow13 add-flow {name} priority=0,actions=NORMAL")
        for path in ABSENT.findall(str(said)):
            NET.missing(Path(path).name)
        if POLICING in text:
            NET.note(f"{self.name}: {POLICING}: not done; use a meter of OpenFlow 1.3, or tc in a host")
        return said

    def sendCmd(self, *words: Any, **options: Any) -> None:  # Mininet's name
        """Types a command into the node's shell."""
        self.end_endless(words)
        super().sendCmd(*words, **options)

    def end_endless(self, words: Any) -> None:
        """Ends the script where a client would send for ever and take no time."""
        to = SENDS_ALL.findall(" ".join(map(str, words[0] if isinstance(words[0], list) else words)))
        for node in NET.nodes.values() if to else ():
            known = to[0] in (node.name, *(intf.ip for intf in node.intfList()))
            if known and node is not self and (endless := NET.endless(self, node)):
                raise SystemExit(endless)

    def popen(self, *words: Any, **options: Any) -> subprocess.Popen[bytes]:
        """Starts a program inside the node."""
        NET.begin()
        self.end_endless(words)
        first, *_ = words[0] if isinstance(words[0], list) else str(words[0]).split()
        if not options.get("shell") and shutil.which(str(first)) is None:
            NET.missing(str(first))
        process = super().popen(*words, **options)
        STARTED[process.pid] = bool(self.inNamespace)
        return process

    def terminate(self) -> None:
        """Ends the node's shell; the node ends with the lab."""
        self.close_shell()


class ScriptSwitch(ScriptNode, mininet.node.OVSSwitch):  # type: ignore[misc]  # Mininet has no types
    """Any switch: a bridge of Open vSwitch, which is there before the script."""

    kind, is_gone = "switch", False
    OVSVersion = "3.0"
    setup = classmethod(lambda _cls: None)
    batchStartup = classmethod(lambda _cls, switches, **_options: switches)  # noqa: N815  # Mininet's name

    def defaultDpid(self, dpid: str | None = None) -> str:  # Mininet's name
        """As Mininet's, and a number for a name without one."""
        own = switches.bridge_number(self.name) or f"{1000 + len(NET.nodes):016x}"
        return str(super().defaultDpid(dpid)) if dpid else own

    def described(self) -> JsonObject:
        """The switch as it is described."""
        by_rules = all(isinstance(one, ScriptRemote) for one in NET.controllers)
        by_rules = by_rules and bool(NET.controllers or NET.without_controller)
        may_loop = self.stp or (self.failMode == "secure" and by_rules)
        return super().described() | ({"may_loop": True} if may_loop else {})

    def start(self, controllers: list[Any]) -> None:  # type: ignore[override]  # Mininet's
        """Gives the bridge what is not as it is by itself, and the controllers that are there."""
        NET.begin()
        driving = [one for one in controllers if one.drives()]
        learns = not driving and (controllers or not (NET.without_controller or "failMode" in self.said))
        if learns and NET.loop():
            NET.note(f"{self.name}: a loop of switches and no controller, so packets pass by rules of ovs-ofctl only")
        elif learns:
            self.failMode = "standalone"
            NET.learning |= {self.name} if controllers else set()
        elif not driving and self.failMode == "secure":
            NET.note(f"{self.name}: no controller and failMode='secure', so packets pass by rules of ovs-ofctl only")
        self.batch, words = False, []
        if self.is_gone:
            ports = [f"-- add-port {self} {one} -- set interface {one} ofport_request={at}" for one, at in self.wired()]
            self.cmd(f"ovs-vsctl add-br {self} -- set bridge {self} fail_mode={self.failMode}", *ports)
        if (
            self.failMode == "secure"
            or self.is_gone
            or self.dpid != switches.bridge_number(self.name)
            or self.protocols
        ):
            words += ["set", "bridge", self.name, f"fail_mode={self.failMode}", f"other_config:datapath-id={self.dpid}"]
            words += [f"protocols={self.protocols}"] if self.protocols else []
        words += ["--", "set", "bridge", self.name, "stp_enable=true"] if self.stp else []
        for intf, port in self.wired():
            if not intf.name.endswith(f"-eth{port}"):
                words += ["--", "set", "interface", intf.name, f"ofport_request={port}"]
        if driving:
            # Only then does Open vSwitch write down now and then whether it is connected.
            words += ["--", "set", "Open_vSwitch", ".", "other_config:stats-update-interval=5000"]
            words += ["--", "set-controller", self.name, *(f"{one.protocol}:{one.IP()}:{one.port}" for one in driving)]
        if words and (said := self.cmd("ovs-vsctl --", *words)):
            raise refuse(f"{self.name}: {said.strip()}", "what Open vSwitch can be")
        self.is_gone = False

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803  # Mininet's names
        """Removes the bridge, which can come again."""
        self.is_gone = True
        super().stop(deleteIntfs)

    def wired(self) -> list[Any]:
        """Interfaces and numbers of ports, without the loopback."""
        return [(intf, port) for intf, port in self.ports.items() if port]


class ScriptBridge(ScriptSwitch):
    """`OVSBridge`, `LinuxBridge`."""

    def __init__(self, *words: Any, **params: Any) -> None:
        super().__init__(*words, **params | {"failMode": "standalone"})


class ScriptController(ScriptNode, mininet.node.Controller):  # type: ignore[misc]  # Mininet has no types
    """A controller: it drives switches if its program is there, else they learn by themselves."""

    kind = ""
    checkListening = mininet.node.Node.checkSetup  # noqa: N815  # Mininet's name; nobody else listens

    def drives(self) -> bool:
        """Whether its program listens."""
        return listens(os.getpid(), "tcp", self.port)

    def start(self) -> None:  # type: ignore[override]  # Mininet's
        """Starts the program, if there is one; what is Mininet's default does what the bridges do."""
        NET.begin()
        log, program = f"/tmp/{self.name}.log", self.command.split()[0]
        if shutil.which(program) is None:
            NET.missing(program) if self.command != "controller" else None
            return
        words = self.cargs % self.port if "%" in self.cargs else self.cargs
        self.cmd(f"(cd {self.cdir or '.'} && exec {self.command} {words}) >{log} 2>&1 &")
        limit = time.monotonic() + iperf.LISTENS_WITHIN_S
        while not self.drives() and time.monotonic() < limit and not self.cmd("kill -0 $!"):
            time.sleep(iperf.LOOK_AGAIN_S)
        if not self.drives():
            said = (self.cmd(f"tail -n 1 {log}").strip() or "nothing")[:LONGEST_SHOWN]
            NET.note(f"{self.name}: {program} does not listen at port {self.port}; switches learn: {said}")


class ScriptRemote(ScriptController):
    """`RemoteController`: a program that the script starts by itself."""

    start = stop = lambda *_words, **_params: None

    def __init__(self, name: str, ip: str = "127.0.0.1", port: int | None = None, **params: Any) -> None:
        super().__init__(name, ip=ip, port=port or 6653, **params)
        self.tried = (port,) if port else (6653, 6633)

    def drives(self) -> bool:
        """Whether somebody listens."""
        if found := [port for port in self.tried if listens(os.getpid(), "tcp", port)]:
            self.port = found[0]
            return True
        learn = "" if NET.loop() else ", so they learn by themselves"
        NET.note(f"{self.name}: nobody listened at port {self.port} when switches started{learn}")
        return False


class ScriptIntf(Intf):  # type: ignore[misc]  # Mininet has no types
    """`Intf`: an interface of the lab's, once there is one."""

    shaped = False
    # An address that the network cannot be made with, because it is another node's, or none.
    later = ""

    def __init__(self, name: str, node: Any = None, **params: Any) -> None:
        self.words: Params = {}
        self.made_as, self.asked = name, params.get("mac")
        super().__init__(name, node=node, **{"moveIntfFn": lambda *_words: None, **params})
        if NET.real is not None and name != "lo":
            real = NET.cell.network.wiring.nodes[node.name].nameToIntf.get(name) or NET.other()
            self.mac, self.ip, self.prefixLen = real.mac, real.ip, real.prefixLen

    def cmd(self, *words: Any, **options: Any) -> Any:
        """A command of the interface's."""
        return self.node.cmd(*words, **options) if NET.begun else self.node.before(*words)

    def config(self, **params: Any) -> Any:
        """What the interface is and sends; once the network is up, other numbers from now on."""
        words = {name: value for name, value in params.items() if name not in OF_LINKS and value is not None}
        if not NET.begun:
            self.words |= {name: value for name, value in words.items() if value}
            self.shape()
            return {}
        result = super().config(**{name: params[name] for name in OF_INTERFACES if name in params})
        if self.shaped and SHAPED & set(words):
            # Mininet makes the queue anew: what is not said is not there.
            self.words = {name: value for name, value in words.items() if value}
            NET.renew(self, self.shape())
        return {**result, "tcoutputs": [], "parent": " parent 10:1 "}

    def shape(self) -> JsonObject:
        """Mininet's words for what an interface sends, in base units."""
        words = dict(self.words)
        if words and not self.shaped:
            NET.note(f"{', '.join(sorted(words))}: ignored, as in Mininet, on a link that is no TCLink")
            words = {}
        if refused := [name for name in REFUSED if name in words]:
            raise refuse(refused[0], "a drop-tail queue; a scenario has RED, CoDel and ECN")
        defaults = (("bw", 0), ("loss", 0), ("max_queue_size", DEFAULT_QUEUE))
        bw, loss, queue = (_number(name, words.pop(name, default)) for name, default in defaults)
        delay_ns, jitter_ns = (_time(name, words.pop(name, 0)) for name in ("delay", "jitter"))
        for name in words:
            NET.note(f"{name}: ignored; {'the serialiser is exact' if name in SHAPERS else 'no word of links here'}")
        if loss:
            NET.note("loss: the same for each packet, whatever its length, and behind the link, not before it")
        numbers = {"limit_packets": int(queue), "delay_ns": delay_ns, "jitter_ns": jitter_ns, "loss": loss / 100}
        return {"rate_bps": round(bw * 10**6 / 8) * 8 or None, **numbers}

    def described(self) -> JsonObject:
        """This end of a link as it is described; a node's own addresses are those of its default interface."""
        own = self.node.said if self.node.kind != "switch" and self.node.defaultIntf() is self else {}
        ip, mac = own.get("ip") or self.params.get("ip"), own.get("mac") or self.asked or ""
        ip = ip and (ip if "/" in ip else f"{ip}/8")
        address = str(ip).partition("/")[0]
        if ip and (address in NET.addresses or not re.match("[1-9]", address)):
            self.later = ip
        NET.addresses.add(address)
        digits = str(mac).replace(":", "").lower()
        return {
            "node": self.node.name,
            "interface": self.made_as,
            "ip": None if self.later else ip,
            "mac": ":".join(digits[at : at + 2] for at in range(0, len(digits), 2)) or None,
            **self.shape(),
        }


class ScriptTCIntf(ScriptIntf):
    """`TCIntf`."""

    shaped = True
    bwParamMax, tc, bwCmds = TCIntf.bwParamMax, TCIntf.tc, TCIntf.bwCmds  # noqa: N815  # Mininet's names
    delayCmds = staticmethod(TCIntf.delayCmds)  # noqa: N815  # Mininet's name


def _number(name: str, value: Any) -> float:
    least, most, expected = NUMBERS[name]
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if name == "max_queue_size" and number % 1 and number > 1:
        NET.note(f"{name}={value}: {number // 1:.0f} packets, as in Mininet")
        number //= 1
    if not (number == 0 or least <= number <= most):
        raise refuse(f"{name}={value!r}"[:LONGEST_SHOWN], expected)
    return number


def _time(name: str, value: Any) -> int:
    match = TIME.fullmatch(str(value))
    if match is None or match[2] not in UNITS_NS:
        raise refuse(f"{name}={value!r}"[:LONGEST_SHOWN], "a time such as '5ms'")
    if (time_ns := float(match[1]) * UNITS_NS[match[2]]) > LARGEST:
        raise refuse(f"{name}={value!r}"[:LONGEST_SHOWN], f"a time of at most {LARGEST // 10**9} s")
    if value and not match[2]:
        NET.note(f"{name}={value}: microseconds, as tc reads a time without a unit")
    return round(time_ns)


class ScriptLink(Link):  # type: ignore[misc]  # Mininet has no types
    """`Link`. `changes`: whether the script may give it other numbers while it runs."""

    interface: Any = None
    makeIntfPair = classmethod(lambda *_words, **_params: None)  # noqa: N815  # Mininet's name

    def __init__(self, *words: Any, **params: Any) -> None:
        if NET.begun:
            NET.other()
        if lonely := [node for node in words[:2] if isinstance(node, ScriptController)]:
            expected = "links of hosts and switches: controllers are where the switches are"
            raise refuse(f"a link of the controller {lonely[0].name}", expected)
        super().__init__(*words, **{"intf": ScriptIntf, "cls1": self.interface, "cls2": self.interface, **params})
        self.ends = (self.intf1, self.intf2)
        named = {NET.script.file.removesuffix(".py"), *re.findall(r"\w+", NET.script.code)}
        files = (file for file in FILES.rglob("*.py") if file.stem in named)
        texts = (OWN.sub("", file.read_text(errors="replace")) for file in files)
        self.changes = any(end.shaped for end in self.ends) and any(map(CHANGES.search, texts))
        NET.links.append(self)

    def described(self) -> JsonObject:
        """The link as it is described."""
        return {"ends": [end.described() for end in self.ends], "changes": self.changes}


class ScriptTCLink(ScriptLink):
    """`TCLink`, `TCULink`."""

    interface = ScriptTCIntf


# Processes of popen by id, and whether a process of the lab's stands before the program (images/guest/tools/exec.c).
STARTED: dict[int, bool] = {}
_kill = os.kill


def kill(pid: int, number: int) -> None:
    """os.kill, which passes a signal on to the program where a process of the lab's stands before it."""
    for status in Path("/proc").glob("[0-9]*/stat") if STARTED.get(pid) and number not in PASSED_ON else ():
        with suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == pid:
                return _kill(int(status.parent.name), number)
    return _kill(pid, number)


PASSED_ON = (0, signal.SIGKILL, signal.SIGTERM)


def classes() -> dict[str, Params]:
    """What a script gets of Mininet's modules by these names in place of Mininet's own."""
    node = mininet.node
    own = {name: type(name, (ScriptController, getattr(node, name)), {}) for name in ("OVSController", "NOX", "Ryu")}
    links = {
        "Link": ScriptLink,
        "Intf": ScriptIntf,
        "TCIntf": ScriptTCIntf,
        "OVSLink": ScriptLink,
        "OVSIntf": ScriptIntf,
    }
    bridges = dict.fromkeys(("Switch", "UserSwitch", "OVSSwitch", "OVSKernelSwitch", "IVSSwitch"), ScriptSwitch)
    nodes = {"Node": ScriptNode, "Host": ScriptNode, "CPULimitedHost": ScriptNode, "OVSBridge": ScriptBridge}
    own |= {"Controller": ScriptController, "DefaultController": ScriptController, "RemoteController": ScriptRemote}
    return {
        "mininet.link": {**links, "TCLink": ScriptTCLink, "TCULink": ScriptTCLink},
        "mininet.node": {**links, **nodes, **bridges, **own},
    }
