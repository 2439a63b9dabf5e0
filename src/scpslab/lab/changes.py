"""Links that change while traffic flows: bit errors, delay, rate, down and up.

A plan's events do it, which also run commands in nodes at their times; or a person at the prompt.
"""

import json
import math
import os
import random
import re
import signal
import struct
import subprocess
from array import array
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from scpslab.core import units
from scpslab.core.names import file_name
from scpslab.lab.bpf import ArrayMap
from scpslab.lab.context import Context
from scpslab.lab.disciplines import DISCIPLINES, NETEM_LIMIT
from scpslab.lab.netlink import Netlink, inside, route_metrics
from scpslab.lab.network import LabNetwork
from scpslab.lab.packets import LAB
from scpslab.lab.records import Records
from scpslab.lab.services import ending
from scpslab.lab.stages import ORDER_RATE, DirectionStages, Settled, slot_of, track
from scpslab.lab.template import GAPS_KEPT
from scpslab.plan.error_models import BitErrorRate, Errors
from scpslab.plan.events import LinkStep, RouteStep, RunStep, Step
from scpslab.plan.links import FOR_EVER_NS, Link

NEVER_BITS = 1 << 62
ALMOST_ALL = 1 - 1e-12
# What a Mininet script gives an interface, all at once.
NUMBERS = ("rate_bps", "limit_packets", "delay_ns", "jitter_ns", "loss")
# Where the settings and state of an arrival are (stages.bpf.c, struct arrival), in words of 8 bytes; and of an entry.
WINDOW_OFFSET, WINDOW_COUNT, SPELL_COUNT, TRACK, BAD_TRACK, WINDOW_AT = 2, 3, 10, 13, 18, 27
DROP_OFFSET, DROP_COUNT, DROP_AT, LISTED_PACKETS = 4, 5, 28, 29
LIMIT_BYTES, LIMIT_PACKETS, LAST_DEPARTURE, HEAD, TAIL, BACKLOG = 2, 3, 14, 15, 16, 17
QUEUE_PACKETS, QUEUE_BYTES = 21, 22


class ChangeError(ValueError):
    """A change that this direction cannot make; the message says why."""


def draw_gaps(ber: float, seed: str) -> array[int]:
    """Distances in bits from one error to the next, independent errors at `ber` (0: none)."""
    if not ber:
        return array("Q")
    draw = random.Random(seed)  # noqa: S311  # a channel, no secret
    scale = math.log1p(-ber)
    return array("Q", (1 + int(min(math.log(1.0 - draw.random()) / scale, NEVER_BITS)) for _ in range(GAPS_KEPT)))


def _words(states: ArrayMap, index: int) -> memoryview:
    """What the programs have of an interface, in words of 8 bytes."""
    at = slot_of(index) * states.stride
    return memoryview(states.memory)[at : at + states.stride].cast("Q")


class LinkChanges:
    """Changes of the links of a network whose stages keep room for them."""

    def __init__(self, network: LabNetwork, settled: Settled) -> None:
        self.network, self.stages, self.settled = network, network.stages, settled
        self.now = {(d.link, d.name): _first(d, settled.errors(d)) for d in network.directions}
        # Stage 2 of directions that have been renewed.
        self.delays: dict[DirectionStages, str] = {}

    def direction(self, link: str, name: str) -> DirectionStages:
        """A direction. Raises ChangeError."""
        with suppress(KeyError):
            return self.network.direction(link, name)
        known = ", ".join(sorted({direction.link for direction in self.network.directions}))
        words = f"{link} {name}".strip()
        raise ChangeError(f'link: found "{words}"; expected a link ({known}) and one of its directions')

    def names(self, link: str) -> list[str]:
        """The directions of a link; none for an unknown one."""
        return [direction.name for direction in self.network.directions if direction.link == link]

    def change(self, link: str, name: str, what: str, value: float | str, seed: str = "") -> None:
        """Makes a change: ber (a ratio), delay (ns), rate (bit/s), state (down or up).

        Raises:
            ChangeError: the direction has no such stage.
        """
        direction = self.direction(link, name)
        if what == "ber":
            self._ber(direction, float(value), seed)
        elif what == "delay":
            self._delay(direction, int(value))
        elif what == "rate":
            self._rate(direction, int(value))
        else:
            self._state(direction, value == "down")
        self.now[link, name][what] = value

    def _put(self, direction: DirectionStages, word: int, value: int) -> None:
        at = slot_of(direction.arriving) * self.stages.arrivals.stride + 8 * word
        self.stages.arrivals.memory[at : at + 8] = struct.pack("=Q", value)

    def _ber(self, direction: DirectionStages, ber: float, seed: str) -> None:
        self._refuse_moved(direction, "bit errors", self.settled.moves[direction].weights)
        room = self.settled.room[direction.arriving]
        places, settings = track(draw_gaps(ber, seed), room.places)
        offset, count, *rest = struct.unpack("=5Q", settings)
        # The program must never see half of it.
        for word in (SPELL_COUNT, TRACK + 1, BAD_TRACK + 1):
            self._put(direction, word, 0)
        self.stages.arrays["places"].write(room.places, places.tobytes())
        for word, value in enumerate((offset, *rest)):
            self._put(direction, TRACK + word + (word > 0), value)
        self._put(direction, TRACK + 1, count)

    def _refuse_moved(self, direction: DirectionStages, what: str, steps: object) -> None:
        if steps:
            raise ChangeError(
                f"link {direction.link} {direction.name}: found {what} that a profile changes; expected what it leaves "
                "alone"
            )

    def _delay(self, direction: DirectionStages, delay_ns: int) -> None:
        if direction.relay is None:
            raise ChangeError(
                f"link {direction.link}: found no delay stage; expected a link that goes through a switch"
            )
        self._refuse_moved(direction, "delay", self.settled.moves[direction].delays)
        options = self.settled.delay_options(direction, delay_ns)
        # A delay that shrinks must not let packets overtake each other.
        self.network.change_delay(
            direction, options if "rate" in options or "seed" in options else f"{options} rate {ORDER_RATE}"
        )

    def _rate(self, direction: DirectionStages, rate_bps: int) -> None:
        queue = direction.plan.queue
        if direction.entering in self.settled.varying:
            raise ChangeError(
                f"link {direction.link} {direction.name}: found a rate that the scenario's events, profile or "
                "aggregate change; expected one that they leave alone"
            )
        if queue is None or not queue.serialises:
            raise ChangeError(
                f"link {direction.link} {direction.name}: found no serialiser with a drop-tail queue; "
                "expected one to change the rate of"
            )
        if rate_bps < 8 or rate_bps % 8:
            raise ChangeError(f"link {direction.link}: found {rate_bps} bit/s; expected a multiple of 8 bit/s")
        serialiser = DISCIPLINES[queue.discipline].root(rate_bps, direction.plan.overhead_bytes, queue)
        self.network.tc(direction.entering, f"qdisc change DEV root handle 1: {serialiser}")
        self.stages.entries.write(slot_of(direction.entering), struct.pack("=Q", rate_bps // 8))

    def renew(self, direction: DirectionStages, seed: str, numbers: Mapping[str, Any]) -> None:
        """Gives a direction that has every stage other numbers: what waits in its queue is lost, as where Mininet does
        so, and what is on its way arrives when it would have.

        Raises:
            ChangeError: the direction cannot have them.
        """
        rate_bps, limit, delay_ns, jitter_ns, loss = (numbers[name] for name in NUMBERS)
        index, follows = direction.entering, self.stages.followed(direction)
        if limit > follows or jitter_ns > delay_ns:
            expected = f"at most {follows} packets, and jitter up to the delay"
            raise ChangeError(f"found {limit} packets, and jitter of {jitter_ns} ns; expected {expected}")
        entry, arrival = _words(self.stages.entries, index), _words(self.stages.arrivals, direction.arriving)
        # Meanwhile nothing enters.
        entry[LIMIT_BYTES] = 1
        waiting = json.loads(self.network.tc(index, "-s -j qdisc show DEV root"))[0]
        self.network.tc(index, "qdisc del DEV root")
        self.now[direction.link, direction.name] |= {"rate": rate_bps, "delay": delay_ns}
        drawn = random.Random(seed).getrandbits(48)  # noqa: S311  # a channel, no secret
        order = f" {jitter_ns}ns seed {drawn}" if jitter_ns else f" rate {ORDER_RATE}"
        self.delays[direction] = f"netem limit {NETEM_LIMIT} delay {delay_ns}ns{order}"
        self.restore(direction)
        entry[QUEUE_PACKETS] += waiting["qlen"]
        entry[QUEUE_BYTES] += waiting["backlog"]
        entry[0], entry[LIMIT_PACKETS], entry[HEAD] = rate_bps // 8, limit, entry[TAIL]
        # The list of packets to lose begins anew.
        gaps = draw_gaps(min(loss, ALMOST_ALL), seed)
        lost = [min(one, NEVER_BITS) for one in accumulate(gaps, initial=arrival[LISTED_PACKETS])][1:] or [NEVER_BITS]
        arrival[DROP_COUNT] = arrival[DROP_AT] = entry[LAST_DEPARTURE] = entry[BACKLOG] = 0
        self.stages.arrays["drop_list"].write(arrival[DROP_OFFSET], array("Q", lost).tobytes())
        arrival[DROP_COUNT], entry[LIMIT_BYTES] = len(lost), 0

    def restore(self, direction: DirectionStages) -> None:
        """Sets queue and delay of a direction as the lab had them: Open vSwitch takes them off all ports of a bridge
        whose settings somebody changes.
        """
        plan, now = direction.plan, self.now[direction.link, direction.name]
        if plan.rate_bps and plan.queue:
            serialiser = DISCIPLINES[plan.queue.discipline].root(int(now["rate"]), plan.overhead_bytes, plan.queue)
            self.network.tc(direction.entering, f"qdisc replace DEV root handle 1: {serialiser}")
        if direction.relay is not None:
            options = self.delays.get(direction) or self.settled.delay_options(direction, plan.delay_ns)
            self.network.tc(direction.relay, f"qdisc replace DEV root handle 2: {options}")

    def _state(self, direction: DirectionStages, is_down: bool) -> None:
        room = self.settled.room[direction.arriving]
        self._put(direction, WINDOW_COUNT, 0)
        if is_down:
            self.stages.arrays["windows"].write(room.window, struct.pack("=QQ", 0, FOR_EVER_NS))
        offset, count = (room.window, 1) if is_down else room.planned_windows
        self._put(direction, WINDOW_OFFSET, offset)
        self._put(direction, WINDOW_AT, 0)
        self._put(direction, WINDOW_COUNT, count)


def _first(direction: DirectionStages, errors: Errors | None) -> dict[str, int | float | str]:
    plan = direction.plan
    found: dict[str, int | float | str] = {
        "state": "up",
        "ber": errors.settings.ber if errors and isinstance(errors.settings, BitErrorRate) else 0,
    }
    if plan.rate_bps:
        found["rate"] = plan.rate_bps
    if direction.relay is not None:
        found["delay"] = plan.delay_ns
    return found


# The parent of the discipline that holds the filters of both ways (TC_H_CLSACT, linux/pkt_sched.h).
FILTERS = 0xFFFFFFF1


class Replaced:
    """Compares the queue disciplines of the links with those that the lab has set."""

    def __init__(self, network: LabNetwork) -> None:
        self.network, self.as_set = network, network.disciplines()

    def lab_has_changed(self, direction: DirectionStages) -> None:
        """Takes what is there now for what the lab has set."""
        now = self.network.disciplines()
        self.as_set |= {index: now[index] for index in (direction.entering, direction.relay) if index is not None}

    def directions(self) -> dict[DirectionStages, str]:
        """The directions that are no longer as the lab has set them, with the interface where they are not."""
        now = self.network.disciplines()
        found = {}
        for direction in self.network.directions:
            for index in (direction.entering, direction.relay):
                if index is not None and now[index] != self.as_set[index]:
                    found[direction] = self.network.names[index]
            at_arrival = direction.arriving
            if now[at_arrival].get(FILTERS) != self.as_set[at_arrival].get(FILTERS):
                found[direction] = self.network.names[at_arrival]
        return found


KINDS = "ber, delay or rate with a value, down, or up"
PACKET_BITS = 8 * 1500
# Words for a change in other programs (tc-netem, Mininet's TCLink), and what to type here.
OTHER_WORDS = {
    "bw": 'The capacity is the rate: "rate 1 Mbit/s".',
    "jitter": "Jitter is part of a scenario (links.NAME.DIRECTION.jitter), and cannot change at the prompt.",
    "duplicate": "Duplicates are part of a scenario, and cannot change at the prompt.",
    "queue": "A queue is part of a scenario, or a parameter of the topology (--set), and cannot change at the prompt.",
}


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
        case ["loss", *rest]:
            raise ChangeError(f'link: found "{" ".join(words)}"; expected {KINDS}. {_instead_of_loss(rest)}')
        case []:
            raise ChangeError(f"link: found no change; expected {KINDS}")
    hint = OTHER_WORDS.get(words[0], 'Type "help link".')
    raise ChangeError(f'link: found "{" ".join(words)}"; expected {KINDS}. {hint}')


def _instead_of_loss(words: list[str]) -> str:
    """The bit error rate that loses that share of full-sized packets."""
    try:
        share = float("".join(words).removesuffix("%")) / 100
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        return 'Packets are lost to bit errors: type "ber 1e-6", for example.'
    ber = -math.expm1(math.log1p(-share) / PACKET_BITS)
    return (
        f'Packets are lost to bit errors: "ber {ber:.1e}" loses {100 * share:g} % of the packets of 1500 bytes, and '
        "fewer of the short ones."
    )


def link_between(links: Iterable[Link], first: str, second: str) -> str:
    """The link between two nodes, or between a node and the switch that the link goes through.

    Raises:
        ChangeError: there is none.
    """
    links = list(links)
    for link in links:
        if {first, second} <= {link.ends[0].node, link.ends[1].node, link.via} and first != second:
            return link.name
    ends = ", ".join(f"{link.name} ({link.ends[0].node} {link.ends[1].node})" for link in links)
    raise ChangeError(f"link: found no link between {first} and {second}; expected the two ends of one of {ends}")


def as_text(what: str, value: float | str) -> float | str:
    """A change's value as a scenario has it."""
    if what in ("delay", "rate"):
        return units.text({"delay": "duration", "rate": "rate"}[what], int(value))
    return value


# A program that needs nearly all of the guest's memory would keep it busy for ever with reading its own files again.
MOST_DATA = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4
# What programs say that get no memory, or no room for files in memory.
SHORT_OF = re.compile(rb"MemoryError|annot allocate memory|out of memory|bad_alloc|No space left on device")
SHORT, LAST_BYTES = " (out of memory: limits.memory)", 4096
NOT_FOUND = 127  # what sh says of a command that is not there, POSIX.1-2017 2.8.2


class Events:
    """The steps of a cell.

    `reason` names the required command that did not end in time, `broken` one that does not exist.
    """

    def __init__(self, context: Context, steps: tuple[Step, ...]) -> None:
        self.context, self.steps = context, steps
        self.reason = self.broken = ""
        # Contacts go on for longer than traffic.
        known = (step for step in steps if step.t_ns is not None and not isinstance(step, RouteStep))
        self.left: int = sum(not isinstance(step, RunStep) or step.required for step in known)
        self.processes: list[subprocess.Popen[bytes]] = []
        if steps:
            self.records = Records(context.folders.records / "events.jsonl")
            self.changes = LinkChanges(context.network, context.settled)

    def schedule(self) -> None:
        """Puts the steps on the loop."""
        for number, step in enumerate(self.steps, start=1):
            self.context.loop.at(self.context.epoch.realtime_ns + step.at_ns, partial(self._do, number, step))

    def done(self) -> bool:
        """Whether every step that the cell waits for is over."""
        return self.left <= 0

    def stop(self) -> None:
        """Ends commands that still run."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)

    def ended(self) -> bool:
        """Whether every command has ended."""
        return all(process.poll() is not None for process in self.processes)

    def close(self) -> None:
        """Ends what did not end when it was asked to, and the record."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        if self.steps:
            self.records.close()

    def _do(self, number: int, step: Step) -> None:
        said: dict[str, str | float]
        if isinstance(step, RunStep):
            self._run(number, step)
            return
        if isinstance(step, LinkStep):
            seeds = step.seeds or ("",) * len(step.directions)
            for name, seed in zip(step.directions, seeds, strict=True):
                # The stages know from the beginning which rates come.
                if step.change != "rate":
                    self.changes.change(step.link, name, step.change, step.value, seed)
            said = {"link": step.link, "change": step.change, "value": step.value}
        elif isinstance(step, RouteStep):
            route = step.route
            with inside(self.context.network.node(step.node).pid), Netlink() as here:
                if step.holds:
                    here.route(route.to, route.via, route_metrics(route), route.src)
                else:
                    here.delete_route(route.to)
            said = {"node": step.node, "to": route.to, "via": (step.holds and route.via) or ""}
        else:
            service = self.context.services.named(step.service)
            service.kill() if step.signal == "kill" else service.stop()
            said = {"service": step.service, "signal": step.signal}
        self.records.write(t_s=self.context.epoch.now_s(), step=number, **said)
        self.left -= not isinstance(step, RouteStep)

    def _run(self, number: int, step: RunStep) -> None:
        # Few cells have any; what a guest loads moves what happens in it.
        import resource  # noqa: PLC0415

        start_t_s = self.context.epoch.now_s()
        with (self.context.folders.logs / file_name("events", str(number), step.node, suffix=".log")).open("wb") as log:
            start = self.context.network.node(step.node).start
            with self.context.network.owners.owning(LAB):
                before = resource.getrlimit(resource.RLIMIT_DATA)
                resource.setrlimit(resource.RLIMIT_DATA, (MOST_DATA, before[1]))
                command = ["sh", "-c", step.command]
                process = start(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/tmp")
                resource.setrlimit(resource.RLIMIT_DATA, before)
        self.processes.append(process)
        expected = step.expect or 0

        def ended(code: int) -> None:
            said: dict[str, str | float] = {"t_s": start_t_s, "step": number, "node": step.node}
            said |= {"command": step.command, "end_t_s": self.context.epoch.now_s(), "exit_code": code}
            self.records.write(**said)
            self.left -= step.required
            if code == NOT_FOUND != expected and not self.broken:
                self.broken = f"event {number}: the shell found no such command (exit code {NOT_FOUND}): {step.command}"
            elif step.required and code != expected:
                why = SHORT if SHORT_OF.search(Path(log.name).read_bytes()[-LAST_BYTES:]) else ""
                found = f"event {number}: {ending(code)}{why} in place of {expected}: {step.command}"
                self.reason = self.reason or found

        def give_up() -> None:
            if process.poll() is None:
                self.reason = self.reason or f"event {number}: the timeout ran out: {step.command}"
                process.send_signal(signal.SIGTERM)

        self.context.loop.on_exit(process, ended)
        self.context.loop.at(self.context.now_ns() + step.timeout_ns, give_up)
