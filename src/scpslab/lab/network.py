"""From the plan's nodes and links to a running Mininet network."""

import fcntl
import json
import platform
import socket
import struct
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from mininet.net import Mininet
from mininet.topo import Topo

from scpslab.lab.disciplines import DISCIPLINES, HOLDING, PACED
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.netlink import ROOT, Netlink, inside, without_ipv6
from scpslab.lab.nodes import DockerNode, DockerRouter, ImageNode, LabNode, LabRouter
from scpslab.lab.packets import Owners
from scpslab.lab.place import IS_ALONE
from scpslab.lab.stages import PINS, DirectionStages, Moves, Settled, Stages
from scpslab.lab.switches import LabLink, LabSwitch, know_addresses
from scpslab.lab.template import Space
from scpslab.lab.wiring import Pair, Wiring, indexed
from scpslab.plan import NetworkPlan, Plan
from scpslab.plan.events import LinkStep
from scpslab.plan.mininet import SCRIPTS
from scpslab.plan.nodes import Switch
from scpslab.plan.profiles import longest_wait_ns
from scpslab.plan.serial_links import SerialEnd
from scpslab.plan.stacks import STACKS

INSIDE = 0x10001  # 1:1, where stages.py puts the discipline inside
# Stage 2 where delays change; packets that may overtake each other are flows of their own.
DELAYING = (
    f"qdisc add DEV root handle 2: {PACED} orphan_mask 16777215",
    f"filter add DEV egress prio 1 bpf direct-action object-pinned {PINS}/delaying",
)
NODE_CLASSES = {"host": LabNode, "router": LabRouter, "scps-router": LabRouter}
DOCKER_CLASSES = {"host": DockerNode, "router": DockerRouter, "scps-router": DockerRouter}


class PlanTopo(Topo):  # type: ignore[misc]  # Mininet has no types
    """The plan as a Mininet topology: every node and link names its class, so that plain `mn` builds it too."""

    def build(self, network: NetworkPlan, pairs: list[Pair], standalone: bool = False) -> None:
        """Adds nodes and links.

        `standalone`: there is no LabNetwork around, so the switches see to everything else when they start.
        """
        for node in network.nodes:
            if isinstance(node, Switch):
                whole = (network, pairs) if standalone else None
                learns = standalone or network.topology == SCRIPTS
                relays = network.topology == SCRIPTS and any(link.via == node.name for link in network.links)
                own = {"mirror_to": node.mirror_to, "learns": learns, "relays": relays}
                self.addSwitch(node.name, cls=LabSwitch, standalone=whole, **own)
            elif node.container is not None:
                kind = ImageNode if STACKS[node.stack].is_own_image else DOCKER_CLASSES[node.kind]
                self.addHost(node.name, cls=kind, container=node.container)
            else:
                self.addHost(node.name, cls=NODE_CLASSES[node.kind])
        for pair in pairs:
            for leg in pair.legs:
                self.addLink(leg[0].node, leg[1].node, cls=LabLink, ends=leg, mtu_bytes=pair.link.mtu_bytes)


class LabNetwork:
    """The network `plan`, up from its construction on. `space`: what cells on it may need."""

    def __init__(self, plan: NetworkPlan, space: Space, logs: Path) -> None:
        self.plan = plan
        self.steps: list[LinkStep] = []
        self.moves: Mapping[DirectionStages, Moves] = {}
        # A node's end of each of its serial links.
        self.terminals: dict[str, dict[str, str]] = {}
        pairs = indexed(plan)
        without_ipv6()
        # Mininet would raise limits of the whole machine.
        Mininet.inited = Mininet.inited or not IS_ALONE
        self.mininet = Mininet(topo=PlanTopo(plan, pairs), controller=None, build=True, waitConnected=False)
        self.wiring = Wiring(plan, pairs, self.mininet)
        self.wiring.configure()
        self.stages = Stages(self.wiring.directions, space, plan.is_ipv6)
        for node in self.mininet.hosts:
            node.join(self.stages.attach)
        self.logs = logs
        wiring = self.wiring
        self.directions, self.names, self.places, self.pid = wiring.directions, wiring.names, wiring.places, wiring.pid

    def start(self) -> None:
        """Makes the bridges, if there are any (the Open vSwitch daemons must be up), then the stages: a bridge takes
        the queues off a port it gets.
        """
        self.mininet.start()
        if self.plan.topology != SCRIPTS:
            know_addresses(self.wiring.behind_ports())
        self.wiring.run_tc(self.logs)

    def take(self, plan: Plan, spare_gaps: int, vectors: Path) -> Settled:
        """Becomes the network of a cell: its bit errors, its seeds, its probes. `spare_gaps`: see Stages.settle."""
        settled = self.stages.settle(plan.cell, vectors, spare_gaps)
        self.owners = Owners(plan)
        self.steps = [step for step in plan.cell.events if isinstance(step, LinkStep)]
        for direction in self.directions:
            if direction.plan.jitter_ns:
                # Jitter is drawn from the cell's seed.
                options = settled.delay_options(direction, direction.plan.first_delay_ns)
                self.change_delay(direction, options)
                with (self.logs / "tc.log").open("a") as log:
                    log.write(f"tc {' '.join(self._delay_words(direction, options))}\n")
            if direction.entering in settled.varying:
                self.tc(direction.entering, "qdisc del DEV root", *(f"qdisc add DEV {line}" for line in HOLDING))
            if direction.relay is not None and settled.moves[direction].delays:
                self.tc(direction.relay, "qdisc del DEV root", *DELAYING)
        self.moves = settled.moves
        return settled

    def tc(self, index: int, *commands: str) -> str:
        """Changes an interface; returns what the last command has said."""
        place = self.places[index]
        where = [] if self.pid(place) is None else ["-n", place]
        for command in commands:
            argv = ["tc", *where, *command.replace("DEV", f"dev {self.names[index]}").split()]
            said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
            with (self.logs / "tc.log").open("a") as log:
                log.write(f"{' '.join(argv)}\n")
        return said

    def longest_ns(self) -> int:
        """How long a packet takes that passes every direction behind a full queue, when that takes longest, with the
        longest delays that the cell has.
        """
        mtu_bytes = {link.name: link.mtu_bytes for link in self.plan.links}
        whole_ns = 0
        for direction in self.directions:
            plan, steps = direction.plan, [step for step in self.steps if step.link == direction.link]
            steps = [step for step in steps if step.change == "delay" and direction.name in step.directions]
            moves = self.moves[direction]
            delays = [plan.delay_ns, *(int(step.value) for step in steps)]
            delays += [delay_ns for _, delay_ns in (*(plan.delay_table or ()), *moves.delays)]
            whole_ns += plan.jitter_ns + max(delays)
            whole_ns += moves.hold_ns + (moves.late.by_ns if moves.late else 0)
            if plan.rate_bps is not None and plan.queue is not None:
                packet_bytes = mtu_bytes[direction.link] + plan.overhead_bytes
                room_bytes = packet_bytes + (plan.queue.limit_bytes or (plan.queue.limit_packets or 0) * packet_bytes)
                if moves.stretches:
                    whole_ns += longest_wait_ns(moves.stretches, room_bytes, in_chances=moves.in_chances)
                else:
                    whole_ns += room_bytes * 8 * SECOND_NS // plan.rate_bps
        return whole_ns

    def node(self, name: str) -> LabNode:
        """The host or router of that name."""
        node: LabNode = self.mininet.get(name)
        return node

    def inside(self, name: str, path: str) -> Path:
        """A path of a node as seen from here."""
        return Path(f"/proc/{self.pid(name)}/root{path}")

    def direction(self, link: str, name: str) -> DirectionStages:
        """A direction of a link. Raises KeyError."""
        for direction in self.directions:
            if (direction.link, direction.name) == (link, name):
                return direction
        raise KeyError(f"{link}.{name}")

    def where(self, index: int) -> AbstractContextManager[None]:
        """The network namespace of the interface with that index, entered for a while."""
        return inside(self.pid(self.places[index]))

    def sysctl(self, name: str, setting: str, default: str) -> str:
        """The plan's setting of a node's kernel, or the kernel's default as the caller knows it."""
        return next((node.sysctls.get(setting, default) for node in self.plan.speaking if node.name == name), default)

    def change_delay(self, direction: DirectionStages, options: str) -> None:
        """Changes stage 2 of a direction while traffic flows."""
        subprocess.run(["tc", *self._delay_words(direction, options)], check=True, capture_output=True)

    def _delay_words(self, direction: DirectionStages, options: str) -> list[str]:
        assert direction.relay is not None
        return ["qdisc", "change", "dev", self.names[direction.relay], "root", "handle", "2:", *options.split()]

    def managed_queues(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Packets that a queue of the kernel's dropped and marked, by link and direction; stage 1 counts what it drops
        by itself.
        """
        counts: dict[tuple[str, str], tuple[int, int]] = {}
        for direction in self.directions:
            queue = direction.plan.queue
            if queue is None or queue.serialises:
                continue
            marks_at = DISCIPLINES[queue.discipline].marks_at
            with self.where(direction.entering), Netlink() as here:
                qdiscs = [qdisc for qdisc in here.qdiscs() if qdisc.interface == direction.entering]
            drops = sum(qdisc.drops for qdisc in qdiscs if qdisc.parent == ROOT)
            inner = [qdisc.own for qdisc in qdiscs if qdisc.parent == INSIDE]
            marks = 0 if marks_at is None else sum(struct.unpack_from("=I", own, marks_at)[0] for own in inner)
            counts[direction.link, direction.name] = drops, marks
        return counts

    def disciplines(self) -> dict[int, dict[int, tuple[bytes, bytes]]]:
        """What `tc` can replace: the queue disciplines of every interface of a stage, by its index; by parent their
        kind and options.
        """
        indices = {index for d in self.directions for index in (d.entering, d.relay, d.arriving) if index is not None}
        settings: dict[int, dict[int, tuple[bytes, bytes]]] = {index: {} for index in indices}
        for index in {self.pid(self.places[index]): index for index in indices}.values():
            with self.where(index), Netlink() as here:
                for qdisc in here.qdiscs():
                    if qdisc.interface in settings:
                        settings[qdisc.interface][qdisc.parent] = qdisc.settings
        return settings


SIOCGIFMTU = 0x8921
SYSCTLS = (
    *("tcp_congestion_control", "tcp_sack", "tcp_dsack", "tcp_timestamps", "tcp_window_scaling", "tcp_recovery"),
    *("tcp_early_retrans", "tcp_frto", "tcp_ecn", "tcp_rmem", "tcp_wmem", "tcp_moderate_rcvbuf"),
    *("tcp_no_metrics_save", "tcp_slow_start_after_idle", "ip_forward"),
)


def write_environment(path: Path, network: LabNetwork) -> None:
    """Writes environment.json: only facts that depend on the plan and the images, the same on every machine."""
    # Mininet does not know the interfaces that pppd makes.
    serial = [end for link in network.plan.serial_links for end in link.ends]
    facts = {
        "kernel": platform.release(),
        "congestion_controls": Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split(),
        "python": platform.python_version(),
        "packages": _packages(),
        "nodes": {
            node.name: _node(network, node.name, serial) for node in network.plan.nodes if not isinstance(node, Switch)
        },
    }
    path.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")


def _packages() -> dict[str, str]:
    """Versions of the tools a cell can use, as the image's build wrote them."""
    listed = Path("/usr/share/scpslab/packages.txt")
    if not listed.exists():
        return {}
    return dict(line.split(maxsplit=1) for line in listed.read_text().splitlines() if line)


def _node(network: LabNetwork, node: str, serial: list[SerialEnd]) -> dict[str, object]:
    names = {
        *network.node(node).nameToIntf,
        *(end.interface for end in serial if end.node == node and end.interface is not None),
    }
    with inside(network.pid(node)):
        folder = Path("/proc/sys/net/ipv4")
        settings = {name: " ".join((folder / name).read_text().split()) for name in SYSCTLS}
        interfaces = {name: _interface(name) for name in sorted(names)}
    return {"sysctls": settings, "interfaces": interfaces}


def _interface(name: str) -> dict[str, int]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        mtu = struct.unpack_from(
            "=i", fcntl.ioctl(probe.fileno(), SIOCGIFMTU, struct.pack("16s16x", name.encode())), 16
        )[0]
    return {"mtu_bytes": mtu}
