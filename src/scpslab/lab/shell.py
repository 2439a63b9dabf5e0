"""Prompts for people: Mininet's prompt on the plan's network, or the guest's own shell, for example for `mn --custom`."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mininet.cli import CLI

from scpslab import units
from scpslab.lab.cell import LabCell
from scpslab.lab.changes import ChangeError, LinkChanges
from scpslab.lab.network import LabNetwork
from scpslab.lab.place import LABTOOL, PROGRAMS, WORK
from scpslab.lab.records import Records
from scpslab.lab.watch import Watch
from scpslab.names import file_name
from scpslab.plan.nodes import Switch

TOPOLOGIES = str(PROGRAMS / "topologies")
LOOK_AGAIN_S = 0.5
UP = "\x1b[A"


class LabCLI(CLI):  # type: ignore[misc]  # Mininet has no types
    """Mininet's prompt with the lab's own commands. It notes every command, so that a session can be repeated (transcript.jsonl)."""

    prompt = "scpslab> "

    def __init__(self, network: LabNetwork, captures: Path, **options: Any) -> None:
        """`captures` is the folder that captures go to."""
        self.network, self.folder = network, captures
        self.changes = LinkChanges(network)
        self.captures: dict[str, subprocess.Popen[bytes]] = {}
        self.transcript = Records(WORK / "transcript.jsonl")
        self.started = time.monotonic()
        super().__init__(network.mininet, **options)

    def do_link(self, line: str) -> None:
        """link: show all links. link NAME [DIRECTION] ber 1e-5 | delay 300 ms | rate 1 Mbit/s | down | up: change a link while traffic flows."""
        words = line.split()
        try:
            if words:
                self._link(words)
            else:
                self._show_links()
        except (ChangeError, units.UnitError) as error:
            print(error)

    def _link(self, words: list[str]) -> None:
        link, *rest = words
        names = self.changes.names(link)
        if rest and rest[0] in names:
            names, rest = [rest[0]], rest[1:]
        elif not names:
            self.changes.direction(link, "")
        what, value = read_change(rest)
        for name in names:
            self.changes.change(link, name, what, value, seed=str(random.SystemRandom().random()))
        direction = {"direction": names[0]} if len(names) == 1 else {}
        self.note(do="link", link=link, **direction, **{what: as_text(what, value)})

    def _show_links(self) -> None:
        for (link, name), now in self.changes.now.items():
            if len(now) > 2:  # more than what every link has
                print(f"{link:<16} {name:<8} " + "   ".join(f"{what} {as_text(what, value)}" for what, value in now.items()))

    def do_watch(self, line: str) -> None:
        """Watch [SECONDS]: show rates and queues of links, and windows of connections, until Ctrl-C or for that many seconds. Start traffic with & first."""
        until = time.monotonic() + float(line) if line.strip().replace(".", "", 1).isdigit() else None
        watch = Watch(self.network)
        shown = 0
        try:
            while until is None or time.monotonic() < until:
                lines = watch.lines()
                # A terminal that supports it shows every sample in the place of the one before.
                sys.stdout.write(UP * shown if os.environ.get("TERM", "dumb") != "dumb" else "")
                sys.stdout.writelines(f"{text}\x1b[K\n" if shown else f"{text}\n" for text in lines)
                sys.stdout.flush()
                shown = len(lines) if os.environ.get("TERM", "dumb") != "dumb" else 0
                time.sleep(LOOK_AGAIN_S)
        except KeyboardInterrupt:
            print()

    def do_capture(self, line: str) -> None:
        """Capture NODE [FILTER]: start a capture of all packets at a node; capture NODE again ends it. scpslab shell --keep FOLDER keeps the files."""
        node, _, chosen = line.strip().partition(" ")
        if node in self.captures:
            self.captures.pop(node).send_signal(signal.SIGTERM)
            print(f"captures/{node}.pcap ends")
            return
        if node not in self.mn or self.network.pid(node) is None:
            print(f'capture: found "{node}"; expected a host or router')
            return
        argv = [LABTOOL, "exec-net", str(self.network.pid(node)), "tcpdump", "-i", "any", "-n", "-U", "-Z", "root"]
        argv += ["-w", str(self.folder / file_name(str(node), suffix=".pcap")), *([chosen] if chosen else [])]
        self.captures[node] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(f"captures/{node}.pcap begins")

    def default(self, line: str) -> None:
        """A node and a command; noted as the node gets it, with addresses in place of node names."""
        node, _, command = line.partition(" ")
        if node in self.mn and command:
            words = [self.mn[word].defaultIntf().updateIP() or word if word in self.mn and self.mn[word].inNamespace else word for word in command.split()]
            text = " ".join(words)
            self.note(do="run", node=node, command=text.removesuffix("&").rstrip(), **({"required": False} if text.endswith("&") else {}))
        super().default(line)

    def note(self, **step: Any) -> None:
        """Writes a step of the transcript."""
        self.transcript.write(at=units.text("duration", round((time.monotonic() - self.started) * 1000) * 10**6), **step)

    def close(self) -> None:
        """Ends captures and the transcript."""
        for process in self.captures.values():
            process.send_signal(signal.SIGTERM)
            process.wait()
        self.transcript.close()


def read_change(words: list[str]) -> tuple[str, int | float | str]:
    """The words after a link's name as a change: its kind and its value in base units.

    Raises:
        ChangeError: the words are not a change.
        units.UnitError: a quantity cannot be read.
    """
    match words:
        case ["down" | "up" as state]:
            return "state", state
        case ["ber", text]:
            try:
                ber = float(text)
            except ValueError as error:
                raise ChangeError(f'link: found the bit error rate "{text}"; expected a number such as 1e-5') from error
            if not 0 <= ber <= 0.5:
                raise ChangeError(f"link: found the bit error rate {text}; expected 0 to 0.5")
            return "ber", ber
        case ["delay", *rest] if rest:
            return "delay", units.parse("duration", " ".join(rest))
        case ["rate", *rest] if rest:
            return "rate", units.parse("rate", " ".join(rest))
    raise ChangeError(f'link: found "{" ".join(words)}"; expected ber, delay or rate with a value, down, or up')


def as_text(what: str, value: float | str) -> float | str:
    """A change's value as a scenario has it."""
    if what in ("delay", "rate"):
        return units.text({"delay": "duration", "rate": "rate"}[what], int(value))
    return value


def interact(cell: LabCell) -> dict[str, Any]:
    """Serves the person at the console until they leave."""
    if cell.plan.cell.shell == "bash":
        _bash(cell.plan.topology)
    else:
        _mininet(cell)
    return {"status": "completed", "reason": "", "epoch_realtime_ns": None, "virtual_s": None}


def _mininet(cell: LabCell) -> None:
    cell.set_up()
    hosts = [node.name for node in cell.plan.nodes if not isinstance(node, Switch)]
    print(f"The network {cell.plan.topology} is up. Nodes: {', '.join(hosts)}.")
    print(f"Type a node and a command (for example {hosts[0]} ip addr), or one of link, watch, capture, help, exit.")
    prompt = LabCLI(cell.network, cell.folders.captures)
    prompt.close()


def _bash(topology: str) -> None:
    print(f"A shell in the guest. For example: mn --custom {TOPOLOGIES}/{topology}.py --topo {topology}")
    subprocess.run(["bash", "--norc", "-i"], cwd=TOPOLOGIES, env=os.environ | {"PYTHONPATH": str(PROGRAMS), "PS1": "lab# "}, check=False)
