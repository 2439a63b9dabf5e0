"""Kind `background`: FY97's generator of datagrams."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from scpslab.core.problems import Problem
from scpslab.documents.parts import exactly_one_of, key
from scpslab.documents.quantities import Port, PositiveDuration, Rate, Size, Start
from scpslab.plan.paths import slowest
from scpslab.plan.workloads import IP_UDP_HEADERS_BYTES
from scpslab.scenario.workloads import Setting, Surroundings, Traffic, start_key

# All rates are one word of a command, in which Linux takes 128 KiB; and the generator's own limit.
MOST_DRAWS, LARGEST_BYTES = 10_000, 65_000


class Background(Traffic, kind="background"):
    """FY97's congestion generator: UDP at a uniform random rate, drawn again every few seconds.

    Ends with the last required workload.

    Attributes:
        kind: The kind of workload.
        level: Congestion level in percent of the slowest hop on the path: rates are drawn from 0 to (level - 100) %.
        max_rate: Upper end of the drawn rates, instead of a level.
        redraw: Time for which each drawn rate is held.
        packet: IP packet size.
        port: UDP port.
    """

    is_load: ClassVar = True

    kind: Literal["background"] = key(example="background")
    level: float | None = key(None, least=100, most=1000, example=150.0)
    max_rate: Rate | None = key(None, example="1 Mbit/s")
    redraw: PositiveDuration = key("5 s", example="5 s")
    packet: Size = key("1452 B", example="1452 B")
    port: Port = key(5002, example=5002)
    start: Start = start_key("0 s")

    _has_one_rate = exactly_one_of("level", "max_rate")

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        most = min(around.mtu_bytes, LARGEST_BYTES)
        headers = IP_UDP_HEADERS_BYTES + around.further_bytes
        if not headers < self.packet <= most:
            expected = f"{headers + 1} B to {most} B by the MTU of {around.mtu_bytes} B"
            yield Problem(("packet",), f'"{self.packet.text}"', expected, "Correct the value.")
        draws = around.lab_time // self.redraw
        if draws > MOST_DRAWS:
            found = f'"{self.redraw.text}", {draws} rates in limits.lab_time'
            yield Problem(("redraw",), found, f"at most {MOST_DRAWS}", "Redraw less often.")
        if self.level is not None and around.slowest_bps is None:
            expected = f"a slowest hop between {self.from_} and {self.to}"
            yield Problem(("level",), "a level on a way without a rate", expected, "Use max_rate.")

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """The draws depend on repeat and name only: every stack meets the same traffic, and a higher level is the same
        pattern, scaled.
        """
        hop = slowest(setting.way(self.from_, self.to))
        rate_bps = hop.direction.rate_bps or 0 if hop else 0
        most_bps = self.max_rate if self.max_rate is not None else round(rate_bps * ((self.level or 100) - 100) / 100)
        # The stream has the name that the kind once had, so that the draws are what they were.
        draws = setting.draws("congestion", self.name, -(-setting.virtual_ns // self.redraw))
        return {
            **super().derived(setting),
            # It is never waited for: it ends with the last required workload.
            "required": False,
            "max_rate_bps": most_bps,
            "rates_bps": tuple(int(value * most_bps) for value in draws),
        }
