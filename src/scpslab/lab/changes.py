"""Links that change while traffic flows: bit errors, delay, rate, down and up. A script does it, or a person at the prompt."""

from __future__ import annotations

import math
import random
import struct
import subprocess
from array import array
from typing import TYPE_CHECKING

from scpslab.lab.disciplines import DISCIPLINES
from scpslab.lab.space import GAPS_KEPT
from scpslab.lab.stages import ORDER_RATE, DirectionStages, Settled, slot_of
from scpslab.plan.error_models import Errors

from scpslab.kinds.errors.clustered.plan import Clustered
from scpslab.kinds.errors.independent.plan import Independent

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork

FOR_EVER_NS = 1 << 62
# Where the settings and state of an arrival are (stages.bpf.c, struct arrival), in words of 8 bytes.
GAP_OFFSET, GAP_COUNT, WINDOW_OFFSET, WINDOW_COUNT, GAP_AT, BITS_TO_ERROR, WINDOW_AT = 2, 3, 4, 5, 12, 13, 14


class ChangeError(ValueError):
    """A change that this direction cannot make; the message says why."""


def draw_gaps(ber: float, seed: str) -> array[int]:
    """Distances in bits from one error to the next, independent errors at `ber` (0: none)."""
    if not ber:
        return array("Q")
    draw = random.Random(seed)  # noqa: S311  # a channel, no secret
    scale = math.log1p(-ber)
    return array("Q", (1 + int(math.log(1.0 - draw.random()) / scale) for _ in range(GAPS_KEPT)))


class LinkChanges:
    """Changes of the links of a network whose stages keep room for them."""

    def __init__(self, network: LabNetwork, settled: Settled) -> None:
        self.network, self.stages, self.settled = network, network.stages, settled
        self.now = {(d.link, d.name): _first(d, settled.errors(d)) for d in network.directions}

    def direction(self, link: str, name: str) -> DirectionStages:
        """A direction. Raises ChangeError."""
        for direction in self.network.directions:
            if (direction.link, direction.name) == (link, name):
                return direction
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
        gaps = draw_gaps(ber, seed)
        room = self.settled.room[direction.arriving]
        # The program must never see half of it.
        self._put(direction, GAP_COUNT, 0)
        if gaps:
            self.stages.arrays["gaps"].write(room.gaps, gaps.tobytes())
            self._put(direction, GAP_OFFSET, room.gaps)
            self._put(direction, GAP_AT, 0)
            self._put(direction, BITS_TO_ERROR, gaps[0] - 1)
            self._put(direction, GAP_COUNT, len(gaps))

    def _delay(self, direction: DirectionStages, delay_ns: int) -> None:
        if direction.relay is None:
            raise ChangeError(f"link {direction.link}: found no delay stage; expected a link that goes through a switch")
        options = self.settled.delay_options(direction, delay_ns)
        # A delay that shrinks must not let packets overtake each other.
        self.network.change_delay(direction, options if "rate" in options or "seed" in options else f"{options} rate {ORDER_RATE}")

    def _rate(self, direction: DirectionStages, rate_bps: int) -> None:
        queue = direction.plan.queue
        if queue is None or not queue.serialises:
            raise ChangeError(f"link {direction.link} {direction.name}: found no serialiser with a drop-tail queue; expected one to change the rate of")
        if rate_bps < 8 or rate_bps % 8:
            raise ChangeError(f"link {direction.link}: found {rate_bps} bit/s; expected a multiple of 8 bit/s")
        name, place = self.network.names[direction.entering], self.network.places[direction.entering]
        where = [] if self.network.pid(place) is None else ["-n", place]
        serialiser = DISCIPLINES[queue.discipline].root(rate_bps, direction.plan.overhead_bytes, queue)
        words = ["qdisc", "change", "dev", name, "root", "handle", "1:", *serialiser.split()]
        subprocess.run(["tc", *where, *words], check=True, capture_output=True)
        self.stages.entries.write(slot_of(direction.entering), struct.pack("=Q", rate_bps // 8))

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
    settings = errors.settings if errors else None
    found: dict[str, int | float | str] = {"state": "up", "ber": settings.ber if isinstance(settings, Independent | Clustered) else 0}
    if plan.rate_bps:
        found["rate"] = plan.rate_bps
    if direction.relay is not None:
        found["delay"] = plan.delay_ns
    return found
