"""Kind `congestion`: FY97's generator of datagrams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import model_validator

from scpslab.documents.parts import key
from scpslab.documents.quantities import Duration, Port, PositiveDuration, Rate, Size
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.headers import IP_UDP_HEADERS_BYTES
from scpslab.plan.ways import slowest
from scpslab.scenario.workloads.base import Kind, Setting, Surroundings, Traffic, at_receiver, common

from scpslab.kinds.workloads.congestion import plan as planned

MOST_DRAWS = 1_000_000


class CongestionTraffic(Traffic):
    """FY97's congestion generator: UDP at a uniform random rate, drawn again every few seconds.

    Ends with the last required workload.
    """

    kind: Literal["congestion"] = key(says="The kind of workload.", example="congestion")
    level: float | None = key(
        None,
        says="Congestion level in percent of the slowest hop on the path: rates are drawn from 0 to (level - 100) %.",
        least=100,
        most=1000,
        example=150.0,
    )
    max_rate: Rate | None = key(None, says="Upper end of the drawn rates, instead of a level.", example="1 Mbit/s")
    redraw: PositiveDuration = key("5 s", says="Time for which each drawn rate is held.", example="5 s")
    packet: Size = key("1452 B", says="IP packet size.", example="1452 B")
    port: Port = key(5002, says="UDP port.", example=5002)
    start: Duration = key(
        "0 s", says="Start time, counted from the epoch (the moment when the network is up).", example="0 s"
    )

    @model_validator(mode="after")
    def _has_one_rate(self) -> Self:
        if (self.level is None) == (self.max_rate is None):
            raise ValueError(
                f"found {'neither' if self.level is None else 'both'} of level and max_rate; "
                "expected exactly one of them"
            )
        return self


def problems(workload: CongestionTraffic, around: Surroundings) -> Iterator[Problem]:
    """What does not fit."""
    packet, mtu = workload.packet, around.mtu_bytes
    if not IP_UDP_HEADERS_BYTES < packet <= mtu:
        yield (
            ("packet",),
            (
                f'found "{workload.packet.text}"; expected {IP_UDP_HEADERS_BYTES + 1} B to the MTU of {mtu} B. '
                "Correct the value."
            ),
        )
    draws = around.virtual // workload.redraw
    if draws > MOST_DRAWS:
        yield (
            ("redraw",),
            (
                f'found "{workload.redraw.text}", {draws} rates in limits.virtual; expected at most {MOST_DRAWS}. '
                "Redraw less often."
            ),
        )
    if workload.level is not None and around.slowest_bps is None:
        yield (
            ("level",),
            (
                f"found a level on a way without a rate; expected a slowest hop between {workload.from_} and "
                f"{workload.to}. Use max_rate."
            ),
        )


def plan(workload: CongestionTraffic, setting: Setting) -> planned.Congestion:
    """The draws depend on repeat and name only: every stack meets the same traffic, and a higher level is the same
    pattern, scaled.
    """
    hop = slowest(setting.way(workload.from_, workload.to))
    rate_bps = hop.direction.rate_bps or 0 if hop else 0
    most_bps = (
        workload.max_rate if workload.max_rate is not None else round(rate_bps * ((workload.level or 100) - 100) / 100)
    )
    redraw_ns = workload.redraw
    draws = -(-setting.virtual_ns // redraw_ns)
    return planned.Congestion(
        **common(workload),
        # It is never waited for: it ends with the last required workload.
        required=False,
        to_ip=setting.addresses[workload.to],
        max_rate_bps=most_bps,
        redraw_ns=redraw_ns,
        packet_bytes=workload.packet,
        rates_bps=tuple(int(value * most_bps) for value in setting.draws("congestion", workload.name, draws)),
        port=workload.port,
    )


KIND = Kind(model=CongestionTraffic, plan=plan, problems=problems, serves=at_receiver, is_load=True)
