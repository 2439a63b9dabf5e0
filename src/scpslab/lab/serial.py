"""Serial links: `scps channel` between two pseudo-terminals, the kernel's PPP on both, one host at each end, or a
router of SCPS-NP (link-model §4).

The link is set up without errors; they, and the counters, begin with the epoch. PPP's own frame check finds what the
channel broke.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from scpslab.core.names import file_name
from scpslab.core.strict_json import JsonObject, count, section
from scpslab.lab.context import Context
from scpslab.lab.loop import SECOND_NS, Loop
from scpslab.lab.netlink import Netlink, inside, route_metrics
from scpslab.lab.place import PROGRAMS
from scpslab.lab.records import Records
from scpslab.plan import schema
from scpslab.plan import serial_links as planned
from scpslab.plan.cell import CellPlan
from scpslab.plan.error_models import Errors
from scpslab.plan.routes import Route

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork


PPP_FLAG = 0x7E
# The channel hands frames on whole, when their end arrives: a receiver does nothing with a frame before. This is more
# than a frame without escapes has; of a longer one, and of frames whose end is damaged, the beginning comes before.
GRAIN_BYTES = 2048
LEAST_LCP_RESTART_S = 3
# Header, frame check and flags of PPP's longest frame of the set-up, with every character escaped.
SET_UP_FRAME_BYTES = 200


def channel_options(plan: planned.SerialLink, errors_from: Path) -> list[str]:
    """Options of `scps channel` for a serial link of the plan; what goes wrong it takes from a file when the epoch
    begins.
    """
    options = ["--hold", "--errors-from", str(errors_from)]
    shared = (
        f"bits={plan.bits_per_byte},buffer={plan.buffer_bytes},period={plan.vector_bits},grain={GRAIN_BYTES},"
        f"flush={PPP_FLAG:#x}"
    )
    options += ["--both", shared]
    for direction, option in zip(plan.directions, ("--a-to-b", "--b-to-a"), strict=True):
        options += [option, f"baud={direction.rate_bps},delay-ms={direction.delay_ns / 10**6:.6f}"]
    return options


def channel_errors(plan: planned.SerialLink, cell: CellPlan, vectors: Path) -> str:
    """The file that `scps channel` takes errors and outages from; vector files are in the folder `vectors`."""
    both = [(direction, cell.errors(plan.name, direction.name)) for direction in plan.directions]
    seeds = [errors.seed for _, errors in both if errors]
    # 48 bits of it; the two directions draw from streams of their own.
    lines = [f"seed={int(seeds[0][:12], 16) if seeds else 0}"]
    for (direction, errors), name in zip(both, ("a-to-b", "b-to-a"), strict=True):
        if errors is not None:
            words = [f"outage={start / 10**9:.9f}..{end / 10**9:.9f}" for start, end in errors.outages]
            words += error_words(errors, vectors / file_name(plan.name, direction.name, suffix=".bits"))
            lines.append(f"{name} {','.join(words)}")
    return "\n".join(lines) + "\n"


def error_words(errors: Errors, vector: Path) -> list[str]:
    """The plan's error model in the channel's words; one that the channel does not know is in the bit map `vector`."""
    names = errors.settings.CHANNEL
    if names is None:
        return ["errors=file", f"file={vector}"]
    words = [f"{names[name]}={value!r}" for name, value in schema.write(errors.settings).items()] if names else []
    return [f"errors={errors.model}", *words] if names else []


def crossing_ns(plan: planned.SerialLink, direction: planned.SerialDirection) -> int:
    """How long the longest frame takes over a direction, every character of it escaped, and a second more, ns."""
    longest_bits = 2 * plan.mtu_bytes * plan.bits_per_byte
    return int(SECOND_NS + direction.delay_ns + longest_bits * SECOND_NS // direction.rate_bps)


def pppd_options(plan: planned.SerialLink, index: int) -> list[str]:
    """Options of pppd for end `index` of a serial link.

    Nothing comes from its files but what the command line does not say.
    """
    first, second, ppp = plan.ends[index].ip, plan.ends[1 - index].ip, plan.ppp
    assert first is not None
    assert second is not None
    assert ppp is not None
    own, other = (ip.split("/")[0] for ip in (first, second))
    # A request and its answer must fit between two tries, or the set-up never ends.
    slowest = min(direction.rate_bps for direction in plan.directions)
    round_trip_s = (
        sum(direction.delay_ns for direction in plan.directions) / SECOND_NS
        + 2 * SET_UP_FRAME_BYTES * plan.bits_per_byte / slowest
    )
    restart = str(max(LEAST_LCP_RESTART_S, 1 + int(round_trip_s)))
    mru = str(ppp.mru_bytes)
    return [
        *("nodetach", "local", "nocrtscts", "nolock", "noauth", "noipv6", "nodefaultroute", "noproxyarp", "nopersist"),
        # Compression of data would hide what the papers measure; only headers may be compressed.
        *("noccp", "nobsdcomp", "nodeflate", *(() if ppp.header_compression else ("novj",))),
        *("mru", mru, "mtu", mru, "asyncmap", f"{ppp.asyncmap:x}"),
        *("lcp-restart", restart, "ipcp-restart", restart, "lcp-max-configure", "100", "ipcp-max-configure", "100"),
        # The line is up for as long as the cell; a burst of errors must not end it.
        *("lcp-echo-interval", "0", "lcp-echo-failure", "0"),
        f"{own}:{other}",
    ]


SCPS = str(PROGRAMS / "scps")
SET_UP_LIMIT_NS = 600 * SECOND_NS
SETTLE_LIMIT_NS = 60 * SECOND_NS
COUNTED = ("bytes", "packets", "errors", "dropped")
SENT_AT = 8


class SerialLink:
    """One serial link of the plan: a channel, and pppd on both ends; without PPP the routers of SCPS-NP open the
    network's `terminals` themselves.
    """

    def __init__(
        self, plan: planned.SerialLink, network: LabNetwork, loop: Loop, logs: Path, routes: dict[str, list[Route]]
    ) -> None:
        """Starts the channel, then pppd in both nodes, waits until IP is up and gives the peers their routes.

        Raises:
            OSError: a program ended, or IP did not come up in time; the message names it.
        """
        self.plan, self.network, self.loop, self.logs, self.name = plan, network, loop, logs, plan.name
        self.errors = Path(f"/tmp/{file_name(self.name, 'errors')}")
        self.events: list[JsonObject] = []
        self.channel_ended = False
        self.up: set[str] = set()
        self.gone: dict[str, int] = {}
        self.at_epoch: dict[str, dict[str, int]] = {}
        ends = [f"/tmp/{file_name(self.name, str(index))}" for index in range(2)]
        with (self.logs / file_name(self.name, "channel", suffix=".log")).open("wb") as log:
            argv = [SCPS, "channel", *(f"pty:{end}" for end in ends), *channel_options(self.plan, self.errors)]
            self.channel = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        self.loop.on_lines(self.channel.stdout, lambda line: self.events.append(json.loads(line)))
        self.loop.on_exit(self.channel, self._channel_exit)
        self.loop.run_until(lambda: bool(self.events) or self.channel_ended)
        if self.channel_ended:
            raise OSError(
                self.channel.returncode,
                f"serial link {self.name}: scps channel ended; see logs/{self.name}-channel.log",
            )
        for index, end in enumerate(self.plan.ends):
            # A node has a /tmp of its own, but the same terminals.
            network.terminals.setdefault(end.node, {})[self.name] = os.readlink(ends[index])
        if self.plan.ppp is not None:
            self._set_up_ppp(routes)

    def _set_up_ppp(self, routes: dict[str, list[Route]]) -> None:
        for index, end in enumerate(self.plan.ends):
            self._start_pppd(index, end.node, self.network.terminals[end.node][self.name])
        self.loop.run_until(lambda: len(self.up) == 2 or bool(self.gone), Context.now_ns() + SET_UP_LIMIT_NS)
        if len(self.up) < 2:
            node = next(iter(self.gone), self.plan.ends[0].node)
            raise OSError(
                self.gone.get(node, 0),
                f"serial link {self.name}: PPP did not come up; see logs/{self.name}-pppd-{node}.log",
            )
        for index, end in enumerate(self.plan.ends):
            self._add_routes(end, self.plan.ends[1 - index], routes[end.node])

    def take(self, cell: CellPlan, vectors: Path) -> None:
        """Gets a cell's bit errors and outages, which begin with the epoch."""
        self.errors.write_text(channel_errors(self.plan, cell, vectors))

    def _start_pppd(self, index: int, node: str, terminal: str) -> None:
        process = self.network.node(node).start(
            ["pppd", terminal, *pppd_options(self.plan, index)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        log = (self.logs / file_name(self.name, "pppd", node, suffix=".log")).open("w", buffering=1)

        def said(line: str) -> None:
            log.write(line + "\n")
            if "remote IP address" in line:
                self.up.add(node)

        def ended(code: int) -> None:
            self.gone[node] = code

        self.loop.on_lines(process.stdout, said)
        self.loop.on_exit(process, ended)

    def _add_routes(self, end: planned.SerialEnd, peer: planned.SerialEnd, routes: list[Route]) -> None:
        assert end.ip is not None
        assert peer.ip is not None
        assert end.interface is not None
        with inside(self.network.pid(end.node)), Netlink() as here:
            if metrics := route_metrics(end.route):
                # pppd has made the route to the peer; it gets the host's options.
                here.connected(socket.if_nametoindex(end.interface), end.ip, metrics, peer.ip.split("/")[0])
            for route in routes:
                here.route(route.to, route.via, route_metrics(route), route.src)

    def _channel_exit(self, _code: int) -> None:
        self.channel_ended = True

    def start_epoch(self) -> None:
        """Lets errors and outages begin, and the counters count from here."""
        self.at_epoch = self._interfaces()
        self.channel.send_signal(signal.SIGUSR1)

    def settle(self, rest: Callable[[int], None]) -> None:
        """Waits until neither end has sent or got anything for as long as a frame takes to cross the link; without PPP,
        just as long.
        """
        pause_ns = max(crossing_ns(self.plan, direction) for direction in self.plan.directions)
        limit_ns = Context.now_ns() + SETTLE_LIMIT_NS
        before: dict[str, dict[str, int]] = {}
        while Context.now_ns() < limit_ns and before != (before := self._interfaces()):
            rest(pause_ns)

    def close(self, records: Path, np: Mapping[str, JsonObject]) -> None:
        """Ends the channel (both pppd see that as a hang-up) and writes records/<link>.jsonl; `np`: what the ends'
        routers counted at this link.
        """
        after = self._interfaces()
        self.channel.send_signal(signal.SIGTERM)
        self.loop.run_until(lambda: self.channel_ended and len(self.gone) == (2 if self.plan.ppp else 0))
        counters = next((line for line in self.events if line["event"] == "counters"), {})
        file = Records(records / file_name(self.name, suffix=".jsonl"))
        for node, interface in after.items():
            file.write(
                event="ppp", node=node, **{name: value - self.at_epoch[node][name] for name, value in interface.items()}
            )
        for direction, key in zip(self.plan.directions, ("a_to_b", "b_to_a"), strict=True):
            start, end = direction.from_, direction.to
            if self.plan.ppp is None:
                sent, received = count(np.get(start, {}), "sent") or 0, count(np.get(end, {}), "received") or 0
            else:
                sent = after[start]["sent_packets"] - self.at_epoch[start]["sent_packets"]
                received = after[end]["received_packets"] - self.at_epoch[end]["received_packets"]
            channel = section(counters, key)
            # While bytes are under way, frames that have not arrived are not lost.
            lost = sent - received if channel.get("under_way_bytes") == 0 else None
            frames = {"sent_frames": sent, "received_frames": received, "lost_frames": lost}
            file.write(event="direction", direction=direction.name, **frames, **channel)
        file.close()

    def _interfaces(self) -> dict[str, dict[str, int]]:
        """Counters of the PPP interface of each end."""
        return {
            end.node: interface_counters(self.network.pid(end.node), end.interface)
            for end in self.plan.ends
            if end.interface is not None
        }


def interface_counters(pid: int | None, interface: str) -> dict[str, int]:
    """Bytes, packets, errors and drops of an interface, received and sent, since it was made.

    Raises OSError when it is not there.
    """
    for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            values = [int(number) for number in numbers.split()]
            received = {f"received_{key}": values[index] for index, key in enumerate(COUNTED)}
            return received | {f"sent_{key}": values[SENT_AT + index] for index, key in enumerate(COUNTED)}
    raise OSError(0, f"{interface}: the interface is gone; the pppd of its host has ended")
