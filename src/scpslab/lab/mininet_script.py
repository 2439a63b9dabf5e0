"""A user's Mininet script in the guest.

It runs twice: to say what its network is, and on that network (scenario/planning/mininet.py makes the plan between).

The script finds Mininet's own modules; `Mininet` and `CLI` are those of this file, nodes and links those of
mininet_parts.py. The first run ends where the network is first used.
"""

from __future__ import annotations

import base64
import builtins
import importlib
import os
import random
import runpy
import shutil
import subprocess
import sys
import traceback
import types
from functools import partial
from pathlib import Path
from typing import Any

import mininet.clean
import mininet.cli
import mininet.net
import mininet.topo
from mininet.util import buildTopo

from scpslab.lab import iperf
from scpslab.lab import mininet_parts as parts
from scpslab.lab.cell import Prepared
from scpslab.lab.changes import link_between
from scpslab.lab.mininet_parts import FILES, NET, refuse
from scpslab.lab.place import CELL, OUT, WORK
from scpslab.lab.prompt import LabCLI
from scpslab.plan.mininet import MininetScript

# Mininet's parameters from the second on, and what they are where a script does not say.
NAMES = ("switch", "host", "controller", "link", "intf")
DEFAULTS = (parts.ScriptSwitch, parts.ScriptNode, parts.ScriptController, parts.ScriptLink, parts.ScriptIntf)

# Commands that Debian makes when packages are configured, which those of a pack are not.
LINKS = {"python": "python3", "iptables": "iptables-nft", "traceroute": "traceroute.db", "nc": "nc.openbsd"}


class Net(mininet.net.Mininet):  # type: ignore[misc]  # Mininet has no types
    """What `Mininet(...)` gives a script."""

    inited = True

    def __init__(self, *words: Any, **params: Any) -> None:
        if NET.net is not None:
            raise refuse("a second Mininet(...)", "one network in a run: start the script once for each")
        NET.net = self
        params |= zip(("topo", *NAMES), words, strict=False)
        NET.without_controller = params.get("controller", "") is None
        super().__init__(**{**dict(zip(NAMES, DEFAULTS, strict=True)), "waitConnected": False, **params})

    def addHost(self, *words: Any, **params: Any) -> Any:
        """Makes a node, for which commands in its constructor are no use of the network."""
        NET.building = True
        made = super().addHost(*words, **params)
        NET.building = False
        return made

    @staticmethod
    def randMac() -> None:
        """Addresses that the script does not give are the lab's."""

    def configHosts(self) -> None:
        """Classes of the script's own configure their nodes, on the network that is up."""
        for host in self.hosts:
            host.configDefault(**({} if host.defaultIntf() else {"ip": None, "mac": None}))

    def start(self) -> None:
        """It is up."""
        if not self.built:
            self.build()
        NET.begin()
        super().start()
        NET.look()

    def stop(self) -> None:
        """The lab ends when the script has ended."""
        NET.look()
        for node in self.hosts:
            node.terminate()

    def iperf(self, hosts: Any = None, *words: Any, **said: Any) -> list[str]:
        """Mininet's measurement with iperf 2, on the lab's port."""
        NET.begin()
        said |= zip(("l4Type", "udpBw", "fmt", "seconds", "port"), words, strict=False)
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        kind, seconds = said.get("l4Type", "TCP"), said.get("seconds", iperf.SECONDS)
        rate = said.get("udpBw", "10M") if kind == "UDP" else ""
        port, unit = said.get("port", iperf.PORT), str(said.get("fmt") or "").lower()
        if not rate and (endless := NET.endless(client, server)):
            raise SystemExit(endless)
        try:
            rates = iperf.measure(client, server, server.IP(), rate, seconds, port, unit)
        except iperf.IperfError as error:
            raise SystemExit(str(error)) from error
        mininet.net.output(f"*** Iperf: {kind} between {client} and {server}: {rates}\n")
        return [rate, *rates] if rate else rates

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:
        """Takes a link down, or up."""
        NET.begin()
        link = link_between(NET.cell.plan.network.links, str(src), str(dst))
        for name in NET.changes.names(link):
            NET.changes.change(link, name, "state", status)


class ScriptCLI(LabCLI):
    """`CLI(net)`: the lab's prompt, at the terminal or for the lines of a file."""

    def __init__(self, mininet: Any = None, stdin: Any = None, script: str | None = None, **_given: Any) -> None:
        NET.begin()
        super().__init__(NET.cell.network, NET.cell.settled, CELL / OUT, NET.cell.services)
        self.locals["net"] = mininet
        if script or not NET.cell.plan.cell.shell:
            lines = (Path(script).read_text() if script else NET.script.commands).splitlines()
            if not lines:
                expected = "lines (--commands FILE) or the wall clock (--engine live)"
                print(f"CLI(net): found nobody who types in virtual time; expected {expected}.")
            self.cmdqueue, self.has_person = [*lines, "exit"], False
            self.precmd = partial(_echo, self.prompt) if lines else str
        self.serve()
        self.close()

    def _iperf(self, names: list[str], udp_rate: str) -> None:
        hosts = [self.mn[name] for name in names or self.hosts if name in self.mn]
        if not udp_rate and hosts and (endless := NET.endless(hosts[0], hosts[-1])):
            print(endless)
        else:
            super()._iperf(names, udp_rate)


def _echo(prompt: str, line: str) -> str:
    print(f"{prompt}{line}")
    return line


def serve(cell: Prepared, script: MininetScript) -> None:
    """Runs the script, in a process of its own."""
    NET.cell, NET.script, NET.real = cell, script, cell.network.mininet if script.described else None
    _lay_out(script)
    try:
        found = runpy.run_path(script.file, run_name="topos" if script.topo else "__main__")
        if not NET.nodes:
            _chosen(found.get("topos") or {}, script)
        if NET.net is not None and not NET.net.built:
            NET.net.build()
        NET.begin()
    except Exception as error:  # whatever a script raises, its writer is to see, from the script on
        if isinstance(error, ModuleNotFoundError):
            what = "display" if str(error.name).lower() == "tkinter" else f"module {error.name}"
            print(f"warning: the guest has no {what}; use --packages pypi:NAME==VERSION for modules", file=sys.stderr)
        if isinstance(error, SyntaxError):
            print("warning: the guest has Python 3; futurize changes scripts for Python 2", file=sys.stderr)
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != script.file:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        raise SystemExit(1) from None
    finally:
        NET.look()
        _keep_files(script)


# Mininet's links have two disciplines, whose counters scripts read by their places: both tell what waits.
TC = r"""#!/bin/sh
case " $* " in *" -j"*) ;; *" -s"*" qdisc "*) /usr/sbin/tc "$@" | perl -0777 -pe 's/^qdisc clsact .*\n(?: .*\n)*//mg;
s/^(qdisc netem) 1: (dev \S+ )?root (.*\n(?: .*\n)*)/$1 1: $2root $3$1 10: $2parent 1:1 $3/mg'; exit;; esac
exec /usr/sbin/tc "$@"
"""
# Of psmisc and sudo, which the guest does not have.
KILLALL = """#!/bin/sh
for name; do case $name in -*) how=$name;; *) pkill $how -x "$name" || echo "$name: no process found" >&2;; esac; done
"""
SUDO = """#!/bin/bash
while :; do case $1 in -[ugCUhpTr]) shift 2;; -*) shift;; *=*) export "$1"; shift;; *) break;; esac; done
type -P "$1" >/dev/null && exec "$@"
"$@"
"""
# What a rule needs and the kernel lacks is said on its own, for scripts seldom look at what iptables says.
IPTABLES = f"""#!/bin/bash
said=$(iptables-nft "$@" 2>&1); code=$?
[[ $said != *"missing kernel module"* ]] ||
  echo "iptables $*: not done: ${{said%% revision*}} is not in the kernel; use nft" >>{parts.NOT_FOUND}
[ -z "$said" ] || echo "$said"; exit $code
"""
# The daemon has no file with its process id, by which others would find it.
APPCTL = """#!/bin/sh
case " $*" in *" -t"*|*" --target"*) exec /usr/bin/ovs-appctl "$@";; esac
exec /usr/bin/ovs-appctl -t /run/openvswitch/ovs-vswitchd.*.ctl "$@"
"""
# What a command changes holds for the next packet, though no time passes in which Open vSwitch would look at its flows.
CHANGES = """#!/bin/sh
case "$*" in *add-*|*del-*|*mod-*|*set*|*clear*|*remove*|*replace-*|*bundle*|*create*|*destroy*) ;;
*) exec /usr/bin/{0} "$@";; esac
/usr/bin/{0} "$@"; code=$?
ovs-appctl revalidator/purge >/dev/null 2>&1; exit $code
"""
# What would take the lab down.
MN = """#!/bin/sh
[ "$1" = -c ] || [ "$1" = --clean ] || { echo "mn: found $*; expected a network that the script makes" >&2; exit 1; }
"""


def _lay_out(script: MininetScript) -> None:
    """Puts Mininet's names, the script's files, and what a login has, where the script looks for them."""
    for name, own in parts.classes().items():
        # Mininet's own code goes on with its own classes.
        module = types.ModuleType(name)
        module.__dict__.update(vars(sys.modules[name]) | own)
        sys.modules[name] = module
        setattr(mininet, name.rpartition(".")[2], module)
        vars(mininet.net).update({one: made for one, made in own.items() if one in vars(mininet.net)})
    mininet.net.NAT = importlib.reload(sys.modules["mininet.nodelib"]).NAT
    mininet.net.NAT.setManualConfig = lambda _nat, _intf: None
    sys.modules["mininet.nodelib"].LinuxBridge = parts.ScriptBridge  # type: ignore[attr-defined]  # it is Mininet's
    mininet.net.Mininet, mininet.cli.CLI = Net, ScriptCLI
    mininet.clean.cleanup = mininet.clean.Cleanup.cleanup = lambda: None
    os.kill = parts.kill
    vars(builtins).update(exit=sys.exit, quit=sys.exit)
    login = {"SHELL": "/bin/bash", "USER": "root", "LOGNAME": "root", "SUDO_USER": "root", "NO_COLOR": "1"}
    os.environ.update(login | {"BASH_FUNC_command_not_found_handle%%": parts.HANDLER})
    if not script.described or not NET.cell.plan.cell.shell:
        sys.stdin = open(os.devnull)  # noqa: SIM115  # for as long as the script runs
        os.dup2(sys.stdin.fileno(), 0)
    for name, program in LINKS.items():
        if (found := shutil.which(program)) and not shutil.which(name):
            Path("/usr/local/bin", name).symlink_to(found)
    lacked = {name: text for name, text in {"killall": KILLALL, "sudo": SUDO}.items() if not shutil.which(name)}
    changes = {name: CHANGES.format(name) for name in ("ovs-ofctl", "ovs-vsctl")}
    rules = {"iptables": IPTABLES} if shutil.which("iptables-nft") else {}
    for name, text in ({"tc": TC, "mn": MN, "ovs-appctl": APPCTL} | changes | lacked | rules).items():
        (shim := Path("/usr/local/sbin", name)).write_text(text)
        shim.chmod(0o755)
    # Controllers are where the switches are.
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    random.seed(script.code)
    NET.at_first = NET.settings = parts.settings()
    FILES.mkdir(exist_ok=True)
    os.chdir(FILES)
    for file in script.files:
        path = FILES / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(file.content))
        path.chmod(0o755)
    Path(script.file).write_text(script.code)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    sys.argv = [script.file, *script.arguments]
    sys.path = [str(FILES), *sys.path, f"/usr/local/lib/{version}/dist-packages"]


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
    net = Net(topo=topo, link=parts.ScriptTCLink)
    net.start()
    {"cli": partial(ScriptCLI, net), "pingall": net.pingAll, "iperf": net.iperf}[script.test]()


def _keep_files(script: MininetScript) -> None:
    """Copies what the script has written to what is kept of a cell."""
    came = {file.path: base64.b64decode(file.content) for file in script.files}
    for source in FILES.rglob("*"):
        unchanged = came.get(str(source.relative_to(FILES)))
        if source.is_file() and not source.is_symlink() and (unchanged is None or source.read_bytes() != unchanged):
            target = WORK / "files" / source.relative_to(FILES)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copyfile(source, target)
            except OSError as error:
                target.unlink(missing_ok=True)
                NET.note(f"{source.name}: not kept: {error.strerror}")
