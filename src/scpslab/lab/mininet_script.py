"""A user's Mininet script in the guest.

It runs twice: to say what its network is, and on that network (scenario/planning/mininet.py makes the plan between).

The script finds Mininet's own modules; `Mininet`, `CLI`, links and controllers are those of this file. The first run
ends where the network is first used.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import runpy
import shutil
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import mininet.clean
import mininet.cli
import mininet.link
import mininet.net
import mininet.node
import mininet.topo
from mininet.util import buildTopo

from scpslab.core.strict_json import JsonObject
from scpslab.core.units import LARGEST
from scpslab.lab import iperf
from scpslab.lab.cell import Prepared
from scpslab.lab.changes import LinkChanges, link_between
from scpslab.lab.place import CELL, OUT, PROMPT, WORK
from scpslab.lab.prompt import LabCLI
from scpslab.plan.mininet import MOST_NOTES, Described, MininetScript
from scpslab.plan.schema import PlanError
from scpslab.plan.values import LONGEST_LABEL

# What a script gives Mininet by name, of any kind.
Params = dict[str, Any]
# The script's folder, which nodes see as well: /run and /tmp are each node's own.
FILES = Path("/srv/mn")
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
    "max_queue_size": (1, LARGEST, "a whole number of packets"),
}
LONGEST_SHOWN = 60
CONTROLLERS = ("Controller", "OVSController", "RemoteController", "DefaultController", "NullController", "NOX", "Ryu")
HOSTS = ("Host", "Node", "CPULimitedHost")
BRIDGES = "switches are learning bridges of Open vSwitch"
# Words that are used elsewhere or say how Mininet does a thing, and those to say something about.
OF_LINKS = {
    *("ip", "params1", "params2", "intfName1", "intfName2", "addr1", "addr2", "intf", "cls1", "cls2"),
    *("fast", "speedup", "gro", "tso", "txo", "rxo"),
}
OF_HOSTS = {"ip", "mac", "defaultRoute", "inNamespace"}
OF_SWITCHES = {"batch", "dpid", "inNamespace", "isSwitch", "listenPort"}
SHAPERS, REFUSED = ("use_htb", "use_hfsc", "use_tbf"), ("enable_ecn", "enable_red")


def refuse(found: str, expected: str) -> SystemExit:
    """The end of a script that asks for what there is not."""
    return SystemExit(f"scpslab mn: found {found}; expected {expected}.")


def _given(name: str, value: Any) -> str:
    text = repr(value)
    return f"{name}={text[:LONGEST_SHOWN]}{'…' if len(text) > LONGEST_SHOWN else ''}"


def _number(name: str, value: Any) -> float:
    least, most, expected = NUMBERS[name]
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (number == 0 or least <= number <= most) or (name == "max_queue_size" and number % 1):
        raise refuse(_given(name, value), expected)
    return number


class Ignored:
    """A controller: there is none, and whatever is asked of it is done."""

    def __init__(self, name: str = "c0", *_words: Any, **_params: Any) -> None:
        self.name = name

    def __getattr__(self, _name: str) -> Any:
        return lambda *_words, **_params: None


class Named:
    """A node or interface while the script says what its network is."""

    def __init__(self, net: Net, name: str) -> None:
        self.net, self.name = net, name

    def __str__(self) -> str:
        return self.name

    def setIP(self, *_words: Any, **_params: Any) -> None:  # Mininet's name
        """It is done on the network that is up."""

    def __getattr__(self, name: str) -> Any:
        if name in ("setMAC", "setDefaultRoute"):
            return self.setIP
        return self.net.begin()


class PlainLink:
    """A link as the script makes it."""

    shaped = False

    def __init__(
        self, node1: Any, node2: Any, port1: int | None = None, port2: int | None = None, **params: Any
    ) -> None:
        net: Net = Net.only
        ends = [
            net.end(node.name, port, params, number, self.shaped)
            for number, node, port in ((1, node1, port1), (2, node2, port2))
        ]
        net.drawn.append({"ends": [*ends]})
        self.intf1, self.intf2 = (net.interface(str(end["node"]), str(end["interface"])) for end in ends)
        self.intf1.link = self.intf2.link = self


class ShapedLink(PlainLink):
    """TCLink, TCULink."""

    shaped = True


class Net(mininet.net.Mininet):  # type: ignore[misc]  # Mininet has no types
    """What `Mininet(...)` gives a script. `real`: the lab's network, once there is one."""

    inited = True
    only: Any = None
    cell: Prepared
    script: MininetScript
    real: Any = None

    def __init__(self, *words: Any, **params: Any) -> None:
        if Net.only:
            raise refuse("a second Mininet(...)", "one network in a run: start the script once for each")
        Net.only = self
        self.planned: dict[str, JsonObject] = {}
        self.given: dict[str, Params] = {}
        self.ports: dict[str, list[int]] = {}
        self.drawn: list[JsonObject] = []
        self.notes: dict[str, None] = {}
        self.begun = self.built = False
        # Of Mininet's parameters these are the fourth and the fifth.
        params |= {
            name: params.get(name, default)
            for name, default in (("controller", None), ("link", PlainLink))[max(len(words) - 3, 0) :]
        }
        super().__init__(*words, **params)

    def note(self, text: str) -> None:
        """Says once what the lab does not do."""
        if len(self.notes) < MOST_NOTES:
            self.notes["".join(one if one.isprintable() else "?" for one in text)[:LONGEST_LABEL]] = None

    def _node(self, kind: str, name: str, **params: Any) -> Any:
        if name in self.planned:
            raise refuse(f"a second node {name}", "a name of its own for each node")
        gateway = re.search(r"\d+\.\d+\.\d+\.\d+", str(params.get("defaultRoute") or ""))
        self.planned[name] = {"name": name, "kind": kind, "gateway": gateway and gateway[0]}
        self.given[name], self.ports[name] = params, []
        if self.real is None:
            return Named(self, name)
        if name not in self.real.nameToNode:
            raise self._other()
        node = self.real.nameToNode[name]
        if kind != "switch":
            node.prefix = [*node.prefix, "env", "-C", str(FILES)]
        return node

    def addHost(self, name: str, cls: Any = None, **params: Any) -> Any:  # Mininet's names
        """A host; a node of a class of the script's own is a router."""
        made_by = getattr(cls or self.host, "__name__", "Host")
        if "CPULimitedHost" in made_by or {"cpu", "cores", "sched"} & set(params):
            self.note("CPULimitedHost, cpu: ignored; computing takes no virtual time")
        is_router = isinstance(cls or self.host, type) and made_by not in HOSTS
        if is_router:
            self.note(f"{made_by}: {name} is a router that forwards IPv4; what the class does besides is not done")
        for word in sorted(set(params) - OF_HOSTS - {"cpu", "cores", "sched"}):
            self.note(f"{word} of a host: ignored")
        return super().addHost(name, partial(self._node, "router" if is_router else "host"), **params)

    def addSwitch(self, name: str, cls: Any = None, **params: Any) -> Any:
        """A bridge, whatever the class."""
        for word in sorted(set(params) - OF_SWITCHES):
            self.note(f"{word} of a switch: ignored; {BRIDGES}")
        return super().addSwitch(name, partial(self._node, "switch"), **params)

    def addController(self, name: Any = "c0", *_words: Any, **_params: Any) -> Any:
        """None."""
        self.note(f"controllers: ignored; {BRIDGES}")
        return name if isinstance(name, Ignored) else Ignored(str(name))

    def addNAT(self, *_words: Any, **_params: Any) -> Any:
        """Refused."""
        raise refuse("addNAT", "a network without a way to the outside")

    def randMac(self) -> None:
        """Addresses that the script does not give are the lab's."""

    def end(self, name: str, port: int | None, both: Params, number: int, shaped: bool) -> JsonObject:
        """An end of a link as it is described."""
        own_params, ports = self.given[name], self.ports[name]
        first_port = 1 if self.planned[name]["kind"] == "switch" else 0
        port = max(ports, default=first_port - 1) + 1 if port is None else port
        # Mininet gives a host's address to its first interface.
        own = {} if ports or first_port else own_params
        ports.append(port)
        params = {**both, **(both.get(f"params{number}") or {})}
        ip = params.get("ip") or own.get("ip")
        return {
            "node": name,
            "interface": both.get(f"intfName{number}") or f"{name}-eth{port}",
            "ip": ip and (ip if "/" in ip else f"{ip}/8"),
            "mac": _mac(both.get(f"addr{number}") or own.get("mac")),
            **self._shape(params, shaped),
        }

    def _shape(self, params: Params, shaped: bool) -> JsonObject:
        """Mininet's words for an interface in base units."""
        words = {name: value for name, value in params.items() if value and name not in OF_LINKS}
        if words and not shaped:
            self.note(f"{', '.join(sorted(words))}: ignored, as in Mininet, on a link that is no TCLink")
            words = {}
        if refused := [name for name in REFUSED if name in words]:
            raise refuse(refused[0], "a drop-tail queue; a scenario has RED, CoDel and ECN")
        bw, loss, queue = (
            _number(name, words.pop(name, default))
            for name, default in (("bw", 0), ("loss", 0), ("max_queue_size", DEFAULT_QUEUE))
        )
        delay_ns, jitter_ns = (self._time(name, words.pop(name, 0)) for name in ("delay", "jitter"))
        for name in words:
            self.note(
                f"{name}: ignored; "
                + ("the serialiser is exact" if name in SHAPERS else "not a word that links have here")
            )
        if loss:
            self.note(
                "loss: each packet is lost with the same probability, whatever its length, behind the link and not "
                "before it"
            )
        rate_bps = round(bw * 10**6 / 8) * 8 or None
        return {
            "rate_bps": rate_bps,
            "limit_packets": int(queue),
            "delay_ns": delay_ns,
            "jitter_ns": jitter_ns,
            "loss": loss / 100,
        }

    def _time(self, name: str, value: Any) -> int:
        match = TIME.fullmatch(str(value))
        if match is None or match[2] not in UNITS_NS:
            raise refuse(_given(name, value), "a time such as '5ms'")
        if (time_ns := float(match[1]) * UNITS_NS[match[2]]) > LARGEST:
            raise refuse(_given(name, value), f"a time of at most {LARGEST // 10**9} s")
        if value and not match[2]:
            self.note(f"{name}={value}: microseconds, as tc reads a time without a unit")
        return round(time_ns)

    def interface(self, node: str, name: str) -> Any:
        """An interface of the lab's, once there is one."""
        if self.real is None:
            return Named(self, name)
        if name not in self.real.nameToNode[node].nameToIntf:
            raise self._other()
        return self.real.nameToNode[node].nameToIntf[name]

    @staticmethod
    def _other() -> SystemExit:
        return refuse(
            "another network than in the first run",
            "nodes and links that are complete before the first command, and do not depend on chance",
        )

    def build(self) -> None:
        """Makes what the Topo says."""
        is_first, self.built = not self.built, True
        if self.topo and is_first:
            self.buildFromTopo(self.topo)

    def begin(self) -> None:
        """The network is used: the first run ends here, with its description."""
        if self.begun:
            return
        self.build()
        self.begun = True
        try:
            described = Described.read(
                {"nodes": list(self.planned.values()), "links": self.drawn, "notes": list(self.notes)}
            )
        except PlanError as error:
            raise SystemExit(f"scpslab mn: {error}.") from error
        if self.real is None:
            (WORK / "network.json").write_text(json.dumps(described.write()))
            os._exit(0)
        if described.digest != self.script.described:
            raise self._other()

    def start(self) -> None:
        """It is up."""
        self.begin()

    def stop(self) -> None:
        """The lab ends when the script has ended."""

    startTerms = staticArp = stop  # noqa: N815  # Mininet's names

    def waitConnected(self, *_words: Any, **_params: Any) -> bool:
        """They are."""
        return True

    def iperf(
        self,
        hosts: Any = None,
        l4Type: str = "TCP",  # noqa: N803
        udpBw: str = "10M",  # noqa: N803
        fmt: Any = None,
        seconds: int = 5,
        port: int = 0,
    ) -> list[str]:
        """Mininet's measurement with iperf 2, on the lab's port."""
        self.begin()
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        rate = udpBw if l4Type == "UDP" else ""
        try:
            rates = iperf.measure(client, server, server.IP(), rate, seconds)
        except iperf.IperfError as error:
            raise SystemExit(str(error)) from error
        mininet.net.output(f"*** Iperf: {l4Type} between {client} and {server}: {rates}\n")
        return [rate, *rates] if rate else rates

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:
        """Takes a link down, or up."""
        self.begin()
        changes = LinkChanges(self.cell.network, self.cell.settled)
        link = link_between(self.cell.plan.network.links, str(src), str(dst))
        for name in changes.names(link):
            changes.change(link, name, "state", status)


def prompt(net: Net, script: str | None = None, **_given: Any) -> None:
    """`CLI(net)`: the lab's prompt, at the terminal or for the lines of a file."""
    net.begin()
    served = LabCLI(net.cell.network, net.cell.settled, CELL / OUT, net.cell.services)
    if script or not net.cell.plan.cell.shell:
        lines = Path(script).read_text() if script else net.script.commands
        if not lines:
            print(
                "CLI(net): found nobody who types in virtual time; expected lines (--commands FILE) or the wall "
                "clock (--engine live)."
            )
            return
        served.cmdqueue = [*lines.splitlines(), "exit"]
        served.precmd = _echo
    served.serve()
    served.close()


def _echo(line: str) -> str:
    print(f"{PROMPT}{line}")
    return line


def _mac(text: Any) -> str | None:
    """A MAC address in small letters, with its colons."""
    digits = str(text or "").replace(":", "").lower()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2)) or None


def serve(cell: Prepared, script: MininetScript) -> None:
    """Runs the script, in a process of its own."""
    Net.cell, Net.script, Net.real = cell, script, cell.network.mininet if script.described else None
    mininet.net.Mininet, mininet.cli.CLI, mininet.clean.cleanup = Net, prompt, lambda: None
    mininet.link.Link = mininet.link.OVSLink = PlainLink
    mininet.link.TCLink = mininet.link.TCULink = ShapedLink
    for name in CONTROLLERS:
        setattr(mininet.node, name, Ignored)
    random.seed(script.code)
    FILES.mkdir(exist_ok=True)
    os.chdir(FILES)
    Path(script.file).write_text(script.code)
    sys.argv, sys.path = [script.file], [str(FILES), *sys.path]
    try:
        found = runpy.run_path(script.file, run_name="topos" if script.topo else "__main__")
        if Net.only is None:
            _chosen(found.get("topos") or {}, script)
        Net.only.begin()
    except Exception as error:  # whatever a script raises, its writer is to see, from the script on
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != script.file:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        raise SystemExit(1) from None
    finally:
        _keep_files()


def _chosen(topos: Any, script: MininetScript) -> None:
    """Does the test on one of the script's `topos`."""
    if not isinstance(topos, dict):
        raise refuse(f"topos of type {type(topos).__name__}", "a dictionary of names and Topo classes")
    names = ", ".join(map(str, topos))
    if not script.topo and len(topos) != 1:
        raise refuse(
            f"no Mininet(...) and {f'{len(topos)} topos ({names})' if topos else 'no topos'}",
            "a network, or --topo NAME with one of them",
        )
    chosen = script.topo or str(next(iter(topos)))
    name = chosen.partition(",")[0]
    if name not in topos:
        raise refuse(f"--topo {name}", f"one of {names or 'none, for the script has no topos'}")
    topo = buildTopo(topos, chosen) if callable(topos[name]) else topos[name]
    if not isinstance(topo, mininet.topo.Topo):
        raise refuse(
            f"topos[{name!r}] that makes no Topo but {type(topo).__name__}",
            "a Topo class, or a function that returns a Topo",
        )
    net = Net(topo=topo, link=ShapedLink, controller=None)
    net.begin()
    {"cli": lambda: prompt(net), "pingall": net.pingAll, "iperf": net.iperf}[script.test]()


def _keep_files() -> None:
    """Copies what the script has written to what is kept of a cell."""
    for source in FILES.rglob("*"):
        if source.is_file() and not source.is_symlink():
            target = WORK / "files" / source.relative_to(FILES)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
