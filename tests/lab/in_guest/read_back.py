"""Runs inside a guest in the place of the lab program's own entry: a cell as ever, and what the kernel says of its
network just before the epoch.

That is what tc, ip, ss, sysctl and the maps of the links' stages say, in every network namespace of the lab; it becomes
state.json among the cell's files.
"""

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

sys.path.append("/usr/lib/python3/dist-packages")

from scpslab.lab.cell import Prepared
from scpslab.lab.place import WORK
from scpslab.lab.program import main

# Of `ip` and `tc` a batch each, because starting a program is what costs time here.
IP = ("link", "address", "route show table all", "rule", "neighbour")
SETTINGS = r"^net\.(core\.[rw]mem|ipv4\.(tcp|ip_|route|conf\.(all|default)\.(forwarding|rp_filter|send_redirects)))"
run = Prepared.run


def said(where, words, lines=()):
    """What a command prints in a namespace: that of a process, or the lab's own. It gets lines to read."""
    enter = ["nsenter", f"--net=/proc/{where}/ns/net"] if where else []
    done = subprocess.run([*enter, *words], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()


def seen(where):
    """A namespace as the kernel's tools show it."""
    names = [line.split(": ")[1].partition("@")[0] for line in said(where, ["ip", "-oneline", "link"])]
    filters = [f"filter show dev {name} {hook}" for name in names for hook in ("ingress", "egress")]
    return {
        "ip": said(where, ["ip", "-oneline", "-details", "-batch", "-"], IP),
        "qdiscs": said(where, ["tc", "-details", "qdisc", "show"]),
        "filters": [line.partition(" id ")[0] for line in said(where, ["tc", "-batch", "-"], filters)],
        "ss": said(where, ["ss", "--tcp", "--udp", "--all", "--numeric", "--no-header"]),
        "sysctl": said(where, ["sysctl", "--all", "--pattern", SETTINGS]),
    }


def processes():
    """The programs that run, by name and number."""
    names = [
        (folder / "comm").read_text().strip()
        for folder in Path("/proc").glob("[0-9]*")
        if (folder / "cmdline").read_bytes()
    ]
    return {name: names.count(name) for name in sorted(names)}


def state(cell):
    """Everything."""
    network = cell.network
    places = {"lab": None} | {node.name: network.pid(node.name) for node in cell.plan.network.speaking}
    kernel = {place: seen(pid) for place, pid in places.items()}
    stages = network.stages
    maps = {name: hashlib.sha256(array.memory[:]).hexdigest() for name, array in stages.arrays.items()} | {
        "entries": [stages.entries.memory[:].hex()],
        "arrivals": [stages.arrivals.memory[:].hex()],
    }
    serial = {link.name: link.errors.read_text() for link in cell.lab.serial_links}
    return {"kernel": kernel, "maps": maps, "serial": serial, "processes": processes(), "python": random.random()}


def read_and_run(self):
    """Notes the state, and goes on."""
    (WORK / "state.json").write_text(json.dumps(state(self), indent=1))
    return run(self)


Prepared.run = read_and_run
sys.exit(main())
