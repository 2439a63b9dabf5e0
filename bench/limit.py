"""What a cell's packets cost without the lab: the same bytes by the same programs in this machine's own kernel.

The cell's network is made of namespaces, veth pairs, bridges and tc, and its transfers and captures run on it in real
time, at rates as many times higher, and delays as many times shorter, as bring a run below a second: the packets are
what is counted, and windows stay as full as they are in the cell.

The measure is the time that one core spends on it (watch.py) until the receivers end, and the processor time of the
captures, which run beside it: what they have left to do then takes a second to come.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from watch import LIBC, LONGEST_S, PROGRAM_PRIORITY, Loop, Watched

from scpslab.core.strict_json import JsonObject
from scpslab.lab import scps_end
from scpslab.plan import Plan
from scpslab.plan.links import Direction, Link
from scpslab.plan.nodes import Router, Switch
from scpslab.plan.routes import RouteOptions
from scpslab.setup import ensure_stack, ensure_tools, silent

from scpslab.kinds.probes.capture.plan import Capture
from scpslab.kinds.workloads.bulk.plan import Bulk

ROUNDS = 3
# Below the 0.95 of a second that Linux gives the watched core (watch.py).
RUN_S = 0.5
SLOW_START_ROUNDS = 10
ETHERNET_BYTES = 14
# The kernel hands a capture its last packets after a second.
CAPTURE_S = 1.2
NO_IPV6 = tuple(f"net.ipv6.conf.{which}.disable_ipv6=1" for which in ("all", "default"))
PREFIX = "scpsbench"
NAMESPACES = Path("/run/netns")
OWN = Path("/proc/self/ns/net")
CLONE_NEWNET = 0x40000000
CONGESTION = "net.ipv4.tcp_congestion_control"


class LeftOutError(Exception):
    """Why there is no such figure."""


@dataclass(frozen=True)
class Limit:
    """Processor seconds of a cell's packets.

    `packets`: how often one was sent on a link; `speed`: how many times faster than the cell's the links were;
    `has_netem`: whether they had their delays, or their rates and queues alone.
    """

    processor_s: float
    packets: int
    speed: int
    has_netem: bool


def lacking() -> str | None:
    """What keeps this machine from measuring, and how to get it."""
    if os.geteuid():
        return "found no root; expected it for namespaces. Run as root: make bench PART=limit"
    if len(os.sched_getaffinity(0)) < 2:
        return "found one core; expected two, one of them with nothing else to do"
    missing = [program for program in ("ip", "tc", "sysctl") if not shutil.which(program)]
    if missing:
        return f"found no {', '.join(missing)}. Run as root: apt-get install --no-install-recommends iproute2 procps"
    return None


def of_all(plans: Mapping[str, Plan]) -> dict[str, Limit | None]:
    """The limit of every plan that has one, by name; says why there is none for another."""
    found: dict[str, Limit | None] = dict.fromkeys(plans)
    if reason := lacking():
        print(f"limit: left out: {reason}")
        return found
    for name, plan in plans.items():
        try:
            found[name] = measure(plan)
        except (LeftOutError, OSError, EOFError) as error:
            print(f"limit: {name}: left out: {error}")
    if any(one and not one.has_netem for one in found.values()):
        print("limit: this kernel has no netem: links have their rates and queues, and no delays")
    return found


def measure(plan: Plan) -> Limit:
    """Runs the transfers of a plan: the least of all rounds, because what disturbs only adds.

    Raises:
        LeftOutError: the plan has something that needs the lab, or a step went wrong.
    """
    if plan.network.serial_links:
        raise LeftOutError("a serial line is a program of the lab")
    transfers = [workload for workload in plan.cell.workloads if isinstance(workload, Bulk)]
    if len(transfers) < len(plan.cell.workloads):
        raise LeftOutError("no transfer")
    speed = _speed(plan, transfers)
    rounds = [_once(plan, transfers, speed) for _ in range(ROUNDS)]
    best = min(rounds, key=lambda one: one.watched.away_s)
    idle_s = min(one.idle_share for one in rounds) * best.watched.wall_s
    return Limit(best.watched.away_s - idle_s + best.captures_s, best.packets, speed, best.has_netem)


@dataclass(frozen=True)
class _Round:
    """What was watched, and how often packets were sent.

    `idle_share`: of the core, with nothing to do; `captures_s`: processor time of programs on other cores.
    """

    watched: Watched
    idle_share: float
    captures_s: float
    packets: int
    has_netem: bool


def _once(plan: Plan, transfers: list[Bulk], speed: int) -> _Round:
    with (
        Bare(plan, speed) as bare,
        Loop(bare.core) as loop,
        tempfile.TemporaryDirectory(prefix="scpslab-bench-") as folder,
    ):
        captures = [
            bare.start(probe.node, _capture(probe, Path(folder)), "listening on", is_watched=False)
            for probe in plan.cell.probes
            if isinstance(probe, Capture)
        ]
        receiving = [bare.start(one.to, _receive(one, speed), "listening") for one in transfers]
        senders = [(one.from_, _send(one, speed, plan)) for one in transfers]
        before = bare.packets()
        idle_share = loop.idle_share()
        bare.own_s = 0
        with loop.watched() as watched:
            sending = [bare.start(node, command) for node, command in senders]
            received_bytes = sum(int(_result(end)["bytes"]) for end in receiving)
        # They linger for their last acknowledgement.
        for end in sending:
            _result(end)
        wanted_bytes = sum(one.bytes_ for one in transfers)
        if received_bytes != wanted_bytes:
            raise LeftOutError(f"found {received_bytes} bytes at the receivers; expected {wanted_bytes}")
        time.sleep(CAPTURE_S)
        watched.away_s -= bare.own_s
        return _Round(watched, idle_share, sum(map(_end, captures)), bare.packets() - before, bare.has_netem)


class Bare:
    """The network of a plan in namespaces of this machine, removed at the end."""

    def __init__(self, plan: Plan, speed: int) -> None:
        self.plan, self.speed = plan, speed
        self._cores = os.sched_getaffinity(0)
        self.core = max(self._cores)
        self.own_s = 0.0
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        _remove_dead()
        # Everything that is not measured keeps off the core.
        os.sched_setaffinity(0, self._cores - {self.core})
        try:
            self._make()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        for node in self.plan.network.nodes:
            subprocess.run(["ip", "netns", "delete", _space(node.name)], stderr=subprocess.DEVNULL, check=False)
        os.sched_setaffinity(0, self._cores)

    def start(
        self, node: str, command: list[str], ready: str | None = None, *, is_watched: bool = True
    ) -> subprocess.Popen[str]:
        """Starts a program at a node, on the watched core or beside it, and waits for a line with the word `ready`."""
        # A program begins where its parent is: a copy of this process that went there would cost more than the program,
        # and a program that came to the core later would leave its timers behind.
        with _inside(node), self._on_core() if is_watched else nullcontext():
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if is_watched else subprocess.STDOUT,
                text=True,
            )
        self._processes.append(process)
        assert process.stdout is not None
        while ready and ready not in (line := process.stdout.readline()):
            if not line:
                raise LeftOutError(f"{Path(command[0]).name} {command[1]}: {_last(process)}")
        return process

    @contextmanager
    def _on_core(self) -> Iterator[None]:
        """This process on the watched core, where it counts its own time."""
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PROGRAM_PRIORITY))
        began_s = time.thread_time()
        os.sched_setaffinity(0, {self.core})
        try:
            yield
        finally:
            os.sched_setaffinity(0, self._cores - {self.core})
            self.own_s += time.thread_time() - began_s
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    def packets(self) -> int:
        """How many packets all interfaces have sent."""
        return sum(
            link["stats64"]["tx"]["packets"]
            for node in self.plan.network.nodes
            for link in json.loads(
                _run("ip", "-n", _space(node.name), "-json", "-stats", "link", "show", "type", "veth")
            )
        )

    def _make(self) -> None:
        for node in self.plan.network.nodes:
            _run("ip", "netns", "add", _space(node.name))
            # A lab has no IPv6, whose neighbour discovery would be packets more.
            _run("ip", "netns", "exec", _space(node.name), "sysctl", "-q", "-e", "-w", *NO_IPV6)
            _ip(node.name, "link set lo up")
            if isinstance(node, Switch):
                _ip(node.name, "link add switch type bridge")
                _ip(node.name, "link set switch up")
            else:
                settings = node.sysctls | ({"net.ipv4.ip_forward": "1"} if isinstance(node, Router) else {})
                # Linux lets a namespace choose from its machine's list only; a sender of root's may take any.
                words = [f"{key}={value}" for key, value in settings.items() if key != CONGESTION]
                _run("ip", "netns", "exec", _space(node.name), "sysctl", "-q", "-e", "-w", *words)
        self.has_netem = _has_netem(self.plan.network.nodes[0].name)
        switches = {node.name for node in self.plan.network.nodes if isinstance(node, Switch)}
        for link in self.plan.network.links:
            self._link(link, switches)
        for node in self.plan.network.nodes:
            if isinstance(node, Switch):
                if node.mirror_to:
                    self._mirror(node.name, node.mirror_to)
                continue
            for route in node.routes:
                where = f"{route.to} via {route.via}" if route.via else f"blackhole {route.to}"
                source = f" src {route.src}" if route.src else ""
                _ip(node.name, f"route replace {where}{source} {_options(route)}")

    def _link(self, link: Link, switches: set[str]) -> None:
        first, second = link.ends
        peer = f"peer name {second.interface} address {second.mac} mtu {link.mtu_bytes} netns {_space(second.node)}"
        _ip(first.node, f"link add {first.interface} address {first.mac} mtu {link.mtu_bytes} type veth {peer}")
        for end in link.ends:
            _ip(end.node, f"link set {end.interface} up gso_max_segs 1")
            if end.node in switches:
                _ip(end.node, f"link set {end.interface} master switch")
            if end.ip:
                _ip(end.node, f"address add {end.ip} dev {end.interface}")
        for end, direction in zip(link.ends, link.directions, strict=True):
            round_trip_ns = sum(one.delay_ns for one in link.directions)
            self._shape(end.node, end.interface, direction, link.mtu_bytes, round_trip_ns)

    def _shape(self, node: str, interface: str, direction: Direction, mtu_bytes: int, round_trip_ns: int) -> None:
        if direction.rate_bps is None or direction.queue is None:
            return
        queue_bytes = direction.queue.limit_bytes or (direction.queue.limit_packets or 1000) * mtu_bytes
        on_the_way_bytes = direction.rate_bps * round_trip_ns // (8 * 10**9)
        # tc counts the Ethernet header; a full packet takes its time on the line all the same.
        of_line = (mtu_bytes + ETHERNET_BYTES) / (mtu_bytes + direction.overhead_bytes)
        rate = f"rate {direction.rate_bps * self.speed * of_line:.0f}bit"
        if self.has_netem:
            packets = math.ceil((queue_bytes + on_the_way_bytes) / mtu_bytes)
            kind = f"netem limit {packets} delay {direction.delay_ns / self.speed / 1e3:.1f}us {rate}"
        else:
            # What would be on its way, there and back, waits too: the same windows fit.
            kind = f"tbf {rate} burst {2 * mtu_bytes} limit {queue_bytes + on_the_way_bytes}"
        _run("tc", "-n", _space(node), *f"qdisc add dev {interface} root {kind}".split())

    def _mirror(self, switch: str, to: str) -> None:
        ports = {
            end.node: other.interface
            for link in self.plan.network.links
            for end, other in (link.ends, link.ends[::-1])
            if other.node == switch
        }
        for node, port in ports.items():
            if node != to:
                _run("tc", "-n", _space(switch), *f"qdisc add dev {port} clsact".split())
                every = "protocol all u32 match u32 0 0 action mirred egress mirror dev"
                _run("tc", "-n", _space(switch), *f"filter add dev {port} ingress {every} {ports[to]}".split())


def _has_netem(node: str) -> bool:
    """Whether this machine's kernel has the discipline that delays packets; leaves it at the node's lo if it has."""
    command = ["tc", "-n", _space(node), "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _speed(plan: Plan, transfers: list[Bulk]) -> int:
    """How many times faster the links have to be so that it takes about RUN_S."""
    directions = [direction for link in plan.network.links for direction in link.directions]
    rate_bps = min(one.rate_bps for one in directions if one.rate_bps)
    round_trip_s = sum(sorted(one.delay_ns for one in directions)[-2:]) / 1e9
    taken_s = max(8 * one.bytes_ for one in transfers) / rate_bps + SLOW_START_ROUNDS * round_trip_s
    return max(1, math.ceil(taken_s / RUN_S))


def _receive(one: Bulk, speed: int) -> list[str]:
    if one.to_scps:
        listen = ["recv", "--listen", f"{one.to_scps.ip}:{one.port}", "--announce", "--no-hash"]
        return [_scps(), *listen, "--expect-seed", str(one.payload_seed), *_scps_options(one.to_scps, speed)]
    window = ["--window", str(one.receive_window_bytes)] if one.receive_window_bytes else []
    delayed = ["--delayed-ack", str(int(one.delayed_ack))]
    return [_labtool(), "bulk-recv", *_shared(one), *window, *delayed]


def _send(one: Bulk, speed: int, plan: Plan) -> list[str]:
    if one.from_scps:
        to = ["send", "--local", one.from_scps.ip, "--to", f"{one.to_ip}:{one.port}", "--bytes", str(one.bytes_)]
        seed = ["--no-hash", "--data-seed", str(one.payload_seed)]
        return [_scps(), *to, *seed, *_scps_options(one.from_scps, speed)]
    settings = next(node for node in plan.network.speaking if node.name == one.from_).sysctls
    chosen = one.congestion_control or settings.get(CONGESTION)
    congestion = ["--congestion", chosen] if chosen else []
    return [_labtool(), "bulk-send", "--to", one.to_ip, *_shared(one), *congestion]


def _shared(one: Bulk) -> list[str]:
    words = {
        "port": one.port,
        "bytes": one.bytes_,
        "segment": one.segment_bytes,
        "payload-seed": one.payload_seed,
        "patience-ns": LONGEST_S * 10**9,
    }
    return [word for key, value in words.items() for word in (f"--{key}", str(value))]


def _scps_options(end: scps_end.ScpsEnd, speed: int) -> list[str]:
    """As in the lab, with a rate for links that are faster."""
    options = scps_end.options(end, LONGEST_S, None)
    if "--rate" in options:
        place = options.index("--rate") + 1
        options[place] = str(int(options[place]) * speed)
    return options


def _capture(probe: Capture, folder: Path) -> list[str]:
    argv = ["--interface", probe.interface, "--snapshot-length", str(probe.snaplen_bytes)]
    return [_labtool(), "capture", *argv, "--file", str(folder / f"{probe.name}.pcap")]


def _labtool() -> str:
    return str(ensure_tools(silent) / "labtool")


def _scps() -> str:
    return str(ensure_stack(silent, platform.machine()).path)


def _result(process: subprocess.Popen[str]) -> JsonObject:
    """What an end said last."""
    try:
        said, wrong = process.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        raise LeftOutError(f"found a transfer that took longer than {LONGEST_S} s") from None
    lines = said.splitlines()
    if process.returncode or not lines:
        raise LeftOutError(f"found exit status {process.returncode}: {' '.join([*lines[-1:], wrong.strip()])}")
    result: JsonObject = json.loads(lines[-1])
    return result


def _end(capture: subprocess.Popen[str]) -> float:
    """Ends a capture, and says what processor time it took."""
    capture.terminate()
    _, status, used = os.wait4(capture.pid, 0)
    capture.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def _last(process: subprocess.Popen[str]) -> str:
    said = process.stderr.read() if process.stderr else ""
    return f"found exit status {process.wait()}: {said.strip()}"


@contextmanager
def _inside(node: str) -> Iterator[None]:
    """This process in a node's namespace."""
    own, other = (os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in (OWN, NAMESPACES / _space(node)))
    try:
        _set_namespace(other)
        try:
            yield
        finally:
            _set_namespace(own)
    finally:
        os.close(own)
        os.close(other)


def _set_namespace(descriptor: int) -> None:
    if LIBC.setns(descriptor, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def _options(options: RouteOptions) -> str:
    """TCP's starting values, as ip-route(8) has them."""
    words = []
    for name in ("initcwnd", "initrwnd", "advmss", "quickack"):
        if (value := getattr(options, name)) is not None:
            words.append(f"{name} {value}")
    if options.rto_min_ms is not None:
        words.append(f"rto_min {options.rto_min_ms}ms")
    return " ".join(words)


def _space(node: str) -> str:
    return f"{PREFIX}-{os.getpid()}-{node}"


def _remove_dead() -> None:
    """Removes the namespaces of benches that were killed, and the programs in them."""
    for path in NAMESPACES.glob(f"{PREFIX}-*") if NAMESPACES.is_dir() else ():
        found = re.fullmatch(rf"{PREFIX}-(\d+)-.*", path.name)
        if found and not Path("/proc", found[1]).exists():
            for process in _run("ip", "netns", "pids", path.name).split():
                os.kill(int(process), signal.SIGKILL)
            _run("ip", "netns", "delete", path.name)


def _ip(node: str, words: str) -> None:
    _run("ip", "-n", _space(node), *words.split())


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LeftOutError(f"{' '.join(command)}: found exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout
