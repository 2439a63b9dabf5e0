"""Mininet's prompt with the lab's own commands. A command that fails says why; it never ends the session."""

import difflib
import os
import random
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mininet.cli import CLI

from scpslab.core import units
from scpslab.core.names import file_name
from scpslab.lab import iperf
from scpslab.lab.changes import ChangeError, LinkChanges, Replaced, as_text, link_between, read_change
from scpslab.lab.network import LabNetwork
from scpslab.lab.nodes import LabNode
from scpslab.lab.place import LABTOOL, PROMPT
from scpslab.lab.records import Records
from scpslab.lab.services import Services
from scpslab.lab.stages import Settled
from scpslab.lab.wiring import first_addresses
from scpslab.plan.links import ALL_CAUSES
from scpslab.plan.nodes import Host

LOOK_AGAIN_S = 0.5
RTT = re.compile(r"rtt [a-z/]+ = ([\d.]+)")
# After that many Ctrl-C, a command that does not end is left behind with its shell.
INTERRUPTS = 3
CALM_WITHIN_S = 2.0
# A command that means the same to every shell; and what a shell says of a command that is not there (POSIX.1-2017
# 2.8.2).
PLAIN = re.compile(r"[\w./:=@%+,-]+( +[\w./:=@%+,-]+)*")
NOT_FOUND = "127"
NAME = re.compile(r"[\w./+-]+")
# Around what a node's shell is asked, in the output of the commands that still run.
MARK = "\x02"
# Of Mininet's commands: what stands for a key, needs a display or a controller, or takes a part of the lab down that
# does not come back.
HIDDEN = ("do_EOF", "do_gterm", "do_switch", "do_wait", "do_x", "do_xterm")
NO_DISPLAY = (
    "found no display in the lab; expected a command for this terminal. Type a node and a command; "
    "with & at its end you can go on typing."
)


HELP = """Type a node and a command to run the command in that node:
  {prompt}{first} ip addr
Names of nodes in a command become their addresses:
  {prompt}{first} ping -c 3 {last}
With & at the end you can go on typing while the command runs; Ctrl-C ends a command without it.
For a program that shows what you type by itself, such as an editor:
  {prompt}noecho {first} nano notes.txt
Links change while traffic flows; "link" shows them and their names. "exit" or Ctrl-D stops the lab.
"""


class LabCLI(CLI):  # type: ignore[misc]  # Mininet has no types
    """The prompt. It notes every command, so that a session can be repeated (transcript.jsonl)."""

    prompt = PROMPT
    # Whether anybody types. What is at its end can always be read: looking at it, nothing sleeps.
    has_person = True

    def __init__(self, network: LabNetwork, settled: Settled, out: Path, services: Services) -> None:
        """`out` is the folder for the transcript and the captures; the end of one of `services` is told once."""
        self.network, self.folder = network, out / "captures"
        self.services, self.told = services, set[str]()
        self.replaced = Replaced(network)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.changes = LinkChanges(network, settled)
        self.captures: dict[str, subprocess.Popen[bytes]] = {}
        self.transcript = Records(out / "transcript.jsonl")
        self.started = time.monotonic()
        self.hosts = [node.name for node in network.plan.nodes if isinstance(node, Host)]
        self.planned = first_addresses(network.plan)
        talking = [name for name in self.hosts if name in self.planned]
        self.examples = {"first": talking[0], "last": talking[-1]}
        # In a dumb terminal, or without one, lines are for the prompt and not for a program in a node.
        self.passes_keys = os.isatty(sys.stdin.fileno()) and os.environ.get("TERM", "dumb") != "dumb"
        super().__init__(network.mininet)

    def run(self) -> None:
        """Mininet's constructor calls it; `serve` does its work, on the finished object."""

    def serve(self) -> None:
        """Reads and does commands until the user leaves."""
        settings = termios.tcgetattr(sys.stdin) if self.isatty() else None
        left = False
        while not left:
            try:
                self.cmdloop()
                left = True
            except KeyboardInterrupt:
                print("\nInterrupt")
                for node in self.network.mininet.hosts:
                    self._calm(node)
            finally:
                if settings:
                    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)

    def onecmd(self, line: str) -> bool:
        """Does one line; a line that fails does not end the session."""
        try:
            return bool(super().onecmd(line))
        except Exception as error:  # Mininet's commands raise anything at wrong words
            command, *_ = line.split()
            print(
                f"{command}: found {type(error).__name__}: {error}; expected a command that works here. "
                f'Type "help {command}".'
            )
            return False

    def postcmd(self, stop: bool, line: str) -> bool:
        """After each line: says which service has ended, and which link tc has changed."""
        said = [
            f'{text}. Programs go on without it. Type "exit" and start the lab again.' for text in self.services.absent
        ]
        said += [
            f"{direction.link} {direction.name}: tc has changed {interface}, where the lab had its own; "
            'what "link" shows no longer holds. '
            f'For changes type "link {direction.link} {direction.name} rate 1 Mbit/s", or delay, ber, down, up; '
            'to have the link back as it was, "exit" and start the lab again.'
            for direction, interface in self.replaced.directions().items()
        ]
        for text in said:
            if text not in self.told and not stop:
                print(f"*** {text}")
                self.told.add(text)
        return bool(super().postcmd(stop, line))

    def get_names(self) -> list[str]:
        """The names of methods among which `help` and completion look for commands."""
        return [name for name in super().get_names() if name not in HIDDEN]

    def do_help(self, line: str) -> None:
        """Help: list the commands; help COMMAND: say what it does."""
        self.helpStr = HELP.format(prompt=self.prompt, **self.examples)  # Mininet's name
        super().do_help(line)

    def do_pingall(self, line: str) -> None:
        """Pingall [SECONDS]: ping between all nodes with an address, and wait at most that long for each answer."""
        self._ping(self._addressed(), line)

    def do_pingpair(self, line: str) -> None:
        """Pingpair [SECONDS]: ping between the first two hosts."""
        self._ping([node for node in self._addressed() if node.name in self.hosts][:2], line)

    def do_pingallfull(self, line: str) -> None:
        """Pingallfull [SECONDS]: ping between all nodes with an address, and print the round-trip times."""
        self._ping(self._addressed(), line, full=True)

    def do_pingpairfull(self, line: str) -> None:
        """Pingpairfull [SECONDS]: ping between the first two hosts, and print the round-trip times."""
        self._ping([node for node in self._addressed() if node.name in self.hosts][:2], line, full=True)

    def _addressed(self) -> list[LabNode]:
        return [node for node in self.network.mininet.hosts if self._address(node)]

    def _address(self, node: LabNode) -> str:
        """The address that a node's name stands for; "" for a node without one, such as a monitor."""
        interface = node.defaultIntf() if node.intfs else None
        return (interface and interface.updateIP()) or self.planned.get(node.name, "")

    def _ping(self, nodes: list[LabNode], wait_s: str, *, full: bool = False) -> None:
        if wait_s and not wait_s.replace(".", "", 1).isdigit():
            print(f'ping: found "{wait_s}"; expected a number of seconds to wait for each answer, or nothing')
            return
        print("*** Ping: testing ping reachability")
        if left_out := [node.name for node in self.network.mininet.hosts if not self._address(node)]:
            print(f"*** Left out, because they have no address: {' '.join(left_out)}")
        received = []
        for node in nodes:
            print(f"{node.name} -> ", end="", flush=True)
            for other in nodes:
                if other is node:
                    continue
                answer = node.cmd(f"ping -c1 {f'-W {wait_s}' if wait_s else ''} {self._address(other)}")
                received.append(" 1 received" in answer)
                rtt = RTT.search(answer)
                times = f" ({rtt[1]} ms)" if full and rtt else ""
                print(f"{other.name}{times} " if received[-1] else "X ", end="", flush=True)
            print()
        count, arrived = len(received), sum(received)
        print(f"*** Results: {100 * (count - arrived) // count if count else 0}% dropped ({arrived}/{count} received)")

    def do_iperf(self, line: str) -> None:
        """Iperf [CLIENT SERVER]: measure TCP throughput for five seconds, from the first host to the last one without
        names.
        """
        words = line.split()
        if len(words) not in (0, 2):
            first, last = self.examples["first"], self.examples["last"]
            print(f'iperf: found "{line}"; expected a client and a server: iperf {first} {last}')
            return
        self._iperf(words, "")

    def do_iperfudp(self, line: str) -> None:
        """Iperfudp RATE [CLIENT SERVER]: send datagrams at a rate such as 1M for five seconds."""
        words = line.split()
        if len(words) not in (1, 3):
            first, last = self.examples["first"], self.examples["last"]
            print(f'iperfudp: found "{line}"; expected a rate, a client and a server: iperfudp 1M {first} {last}')
            return
        self._iperf(words[1:], words[0])

    def _iperf(self, names: list[str], udp_rate: str) -> None:
        addressed = {node.name: node for node in self._addressed()}
        hosts = [name for name in self.hosts if name in addressed]
        names = names or [hosts[0], hosts[-1]]
        if len({*names} & {*addressed}) != 2:
            print(f'iperf: found "{" ".join(names)}"; expected two nodes with an address ({", ".join(addressed)})')
            return
        client, server = (addressed[name] for name in names)
        ip = self._address(server)
        print(f"*** Iperf: testing {'UDP' if udp_rate else 'TCP'} bandwidth between {client} and {server}", flush=True)
        self.note(do="run", node=server.name, command=" ".join(iperf.server_words(bool(udp_rate))), required=False)
        self.note(do="run", node=client.name, command=" ".join(iperf.client_words(ip, udp_rate)))
        try:
            rates = iperf.measure(client, server, ip, udp_rate)
        except KeyboardInterrupt:
            self.note(do="interrupted")
            raise
        except iperf.IperfError as error:
            print(error)
            return
        print(f"*** Results: {[udp_rate, *rates] if udp_rate else rates}")

    def do_link(self, line: str) -> None:
        """link: show all links. link NAME [DIRECTION] CHANGE: change a link while traffic flows. link NODE NODE down |
        up: as in Mininet.

        Changes: ber 1e-5 | delay 300 ms | rate 1 Mbit/s | down | up
        """
        words = line.split()
        try:
            if words:
                self._link(words)
            else:
                self._show_links()
        except (ChangeError, units.UnitError) as error:
            print(error)
        except subprocess.CalledProcessError as error:
            print(
                f"link: tc said {error.stderr.strip()}; expected the lab's own there. "
                "Was it changed with tc? Start the lab again."
            )

    def _link(self, words: list[str]) -> None:
        link, *rest = words
        names = self.changes.names(link)
        if not names and rest and (link in self.mn or rest[0] in self.mn):
            link, rest = link_between(self.network.plan.links, link, rest[0]), rest[1:]
            names = self.changes.names(link)
        if rest and rest[0] in names:
            names, rest = [rest[0]], rest[1:]
        elif not names:
            self.changes.direction(link, "")
        what, value = read_change(rest)
        for name in names:
            self.changes.change(link, name, what, value, seed=str(random.SystemRandom().random()))
            self.replaced.lab_has_changed(self.changes.direction(link, name))
        direction = {"direction": names[0]} if len(names) == 1 else {}
        self.note(do="link", link=link, **direction, **{what: as_text(what, value)})

    def _show_links(self) -> None:
        # A state and a bit error rate are what every link has.
        shown = {key: now for key, now in self.changes.now.items() if len(now) > 2}
        if not shown:
            print("link: this network has no link with a rate or a delay that can change")
        replaced = {
            (direction.link, direction.name): interface for direction, interface in self.replaced.directions().items()
        }
        for (link, name), now in shown.items():
            words = [f"{what} {as_text(what, value)}" for what, value in now.items()]
            counters = self.network.stages.account(self.changes.direction(link, name))
            lost = [f"{cause} {count}" for cause in ALL_CAUSES if (count := counters.get(f"{cause}_packets", 0))]
            words.append(f"lost {', '.join(lost) or 0}")
            if (link, name) in replaced:
                words.append(f"no longer so: tc has changed {replaced[link, name]}")
            print(f"{link:<16} {name:<8} " + "   ".join(words))

    def do_capture(self, line: str) -> None:
        """Capture NODE [FILTER]: start a capture of all packets at a node; capture NODE again ends it.

        The files are kept on your machine.
        """
        node, _, chosen = line.strip().partition(" ")
        if node in self.captures:
            process = self.captures.pop(node)
            process.send_signal(signal.SIGTERM)
            process.wait()
            print(f"the capture at {node} ends")
            return
        if node not in self.mn or self.network.pid(node) is None:
            print(f'capture: found "{node}"; expected a host or router')
            return
        earlier = len(list(self.folder.glob(file_name(node, suffix="*.pcap"))))
        name = file_name(node, *([str(earlier + 1)] if earlier else []), suffix=".pcap")
        argv = [LABTOOL, "exec-net", str(self.network.pid(node)), "tcpdump", "-i", "any", "-n", "-U", "-Z", "root"]
        argv += ["-w", str(self.folder / name), *([chosen] if chosen else [])]
        # In a session of its own, where Ctrl-C does not reach it.
        nothing = subprocess.DEVNULL
        self.captures[node] = subprocess.Popen(
            argv, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )
        print(f'{name} begins, in the folder that was named when the session began. "capture {node}" ends it.')

    def do_dpctl(self, line: str) -> None:
        """Dpctl COMMAND [WORDS]: run ovs-ofctl on all switches, for example dpctl dump-flows."""
        command, _, rest = line.partition(" ")
        for switch in self.mn.switches:
            print(f"*** {switch.name} ---", flush=True)
            self.do_sh(f"ovs-ofctl {command or '--help'} {switch.name} {rest}")

    def do_sh(self, line: str) -> None:
        """Sh COMMAND: run a command outside of all nodes, where the switches are."""
        if not line:
            print(
                'sh: found no command; expected one, such as "sh ip link". A shell in a node: '
                f"{self.examples['first']} bash"
            )
            return
        super().do_sh(line)

    def do_source(self, line: str) -> None:
        """Source FILE: do the commands of a file of the lab, line by line."""
        if not Path(line).is_file():
            print(f'source: found no file "{line}" in the lab; expected a file with one command a line')
            return
        super().do_source(line)

    def do_xterm(self, _line: str, term: str = "xterm") -> None:
        """Refused: the lab has no display."""
        print(f"{term}: {NO_DISPLAY}")

    def do_x(self, _line: str) -> None:
        """Refused: the lab has no display."""
        self.do_xterm("", term="x")

    def do_switch(self, _line: str) -> None:
        """Refused: a switch that stops does not come back as it was."""
        print(
            'switch: found a switch to start or stop; expected a link. Type "link" for the links, and "link NAME '
            'down" to take one down.'
        )

    def default(self, line: str) -> None:
        """A node and a command; noted as the node gets it, with addresses in place of node names."""
        name, _, command = line.strip().partition(" ")
        if name not in self.mn:
            known = [*(name.removeprefix("do_") for name in self.get_names() if name.startswith("do_")), *self.mn]
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}?" if near else 'Type "help".'
            print(f'*** Unknown command: found "{line.strip()}"; expected a command, or a node and a command. {hint}')
        elif not command:
            print(f"*** Please enter a command for node: {name} <cmd>")
        elif self.mn[name] in self.mn.switches:
            self.do_sh(command)
        else:
            hosts = {host.name: host for host in self.mn.hosts}
            text = " ".join(
                (self._address(hosts[word]) or word) if word in hosts else word for word in command.split(" ")
            )
            self._run(self.mn[name], text)

    def _run(self, node: LabNode, text: str) -> None:
        """Runs a command in a node's shell.

        The transcript has it as any shell understands it, and no command that is not there.
        """
        plain, goes_on = text.removesuffix("&").rstrip(), text.endswith("&")
        word = plain.partition(" ")[0]
        is_plain = bool(PLAIN.fullmatch(plain)) and shutil.which(word) is not None
        command = plain if is_plain else f"bash -c {shlex.quote(plain)}"
        self.note(do="run", node=node.name, command=command, **({"required": False} if goes_on else {}))
        print(node.late_output(), end="")
        # Without somebody who types, a program that reads would wait for ever.
        node.sendCmd(text if self.passes_keys else f"eval {shlex.quote(text)} </dev/null")
        self.waitForNode(node)
        # A command that goes on has no code yet.
        asked = f"$(type -t {word} >/dev/null || echo {NOT_FOUND})" if goes_on else "$?"
        if (not goes_on or NAME.fullmatch(word)) and self._ask(node, asked) == NOT_FOUND:
            self.note(do="not found")

    @staticmethod
    def _ask(node: LabNode, word: str) -> str:
        """What a node's shell makes of a word; what other commands print meanwhile is shown. "" if the shell has
        ended.
        """
        if node.shell is None:
            return ""
        before, _, answer = str(node.cmd(f"printf '\\002%s\\002' {word}")).partition(MARK)
        shown, _, after = answer.partition(MARK)
        print(before + after, end="")
        return shown

    def waitForNode(self, node: LabNode) -> None:  # Mininet's name
        """Shows a command's output, and passes on the user's keys, until the command has ended."""
        interrupts = 0
        with self._keys_one_by_one():
            while node.waiting:
                try:
                    self._serve_command(node)
                except KeyboardInterrupt:
                    interrupts += 1
                    if interrupts == 1:
                        self.note(do="interrupted")
                    if interrupts < INTERRUPTS:
                        node.sendInt()
                    else:
                        self._leave(node, "the command did not end")

    def _serve_command(self, node: LabNode) -> None:
        watched = [node.stdout, sys.stdin] if self.has_person else [node.stdout]
        readable, _, _ = select.select(watched, [], [], LOOK_AGAIN_S)
        if node.stdout in readable:
            sys.stdout.write(node.monitor())
            sys.stdout.flush()
        if sys.stdin in readable:
            keys = os.read(sys.stdin.fileno(), 1024).decode(errors="replace")
            if self.passes_keys:
                node.write(keys)
            for line in () if self.passes_keys else keys.splitlines() or ["EOF"]:
                # Links change at once; everything else waits for the prompt.
                self.onecmd(line) if line.startswith("link ") else self.cmdqueue.append(line)
        if not readable and node.shell.poll() is not None:
            self._leave(node, "the shell of the node ended")

    def _calm(self, node: LabNode) -> None:
        """Ends the command that a node has been given by one of Mininet's commands."""
        limit = time.monotonic() + CALM_WITHIN_S
        if node.waiting:
            node.sendInt()
        while node.waiting:
            node.monitor(timeoutms=100)
            if time.monotonic() > limit:
                self._leave(node, "the command did not end")

    @staticmethod
    def _leave(node: LabNode, why: str) -> None:
        node.close_shell()
        node.waiting = False
        print(
            f"\n{node.name}: {why}; the next command gets a new shell, without the variables and the folder of this "
            "one."
        )

    @contextmanager
    def _keys_one_by_one(self) -> Iterator[None]:
        """Lets keys through at once, not line by line, for programs that are used by single keys."""
        if not self.passes_keys:
            yield
            return
        before = termios.tcgetattr(sys.stdin)
        changed = termios.tcgetattr(sys.stdin)
        changed[3] &= ~termios.ICANON
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, changed)
        try:
            yield
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)

    def note(self, **step: Any) -> None:
        """Writes a step of the transcript, at once: the lab may be ended from outside at any time."""
        self.transcript.write(
            at=units.text("duration", round((time.monotonic() - self.started) * 1000) * 10**6), **step
        )
        self.transcript.flush()

    def close(self) -> None:
        """Ends captures and the transcript."""
        for process in self.captures.values():
            process.send_signal(signal.SIGTERM)
            process.wait()
        self.transcript.close()
