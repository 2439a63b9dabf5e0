"""Kind `iperf3`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import model_validator

from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Rate, Size
from scpslab.documents.yaml_lines import Problem
from scpslab.scenario.workloads.base import Kind, Setting, Surroundings, Traffic, at_receiver, common
from scpslab.scenario.workloads.in_time import SECOND_NS, ns_to_send, packets_to_send
from scpslab.scenario.workloads.unmodified import gateways_fit, kernel_setting

from scpslab.kinds.stacks.kernel.scenario import Congestion
from scpslab.kinds.workloads.iperf3 import plan as planned


class Iperf3(Traffic):
    """iperf3, one client and one server; its own JSON result is the record."""

    kind: Literal["iperf3"] = key(says="The kind of workload.", example="iperf3")
    duration: PositiveDuration | None = key(None, says="Time to send, in whole seconds.", example="60 s")
    size: Size | None = key(None, says="Bytes to send, instead of a duration.", example="4 MB")
    udp_rate: Rate | None = key(None, says="Send UDP at this rate instead of TCP.", example="1 Mbit/s")
    parallel: int = key(1, says="Parallel streams.", least=1, most=128, example=4)
    reverse: bool = key(False, says="Reverse the direction: the receiving host sends.", example=True)
    segment: Size | None = key(
        None, says="Size of TCP segments or UDP datagrams. Default: iperf3's own choice.", example="1400 B"
    )
    congestion: Congestion | None = key(
        None, says="Congestion control of this flow. Default: the sending host's.", example="bbr"
    )
    port: Port = key(5201, says="Port.", example=5201)
    patience: PositiveDuration = key("3000 s", says="Time after which iperf3 is ended.", example="300 s")
    required: bool = key(True, says="Whether the cell waits for the workload.", example=True)

    @model_validator(mode="after")
    def _has_one_end(self) -> Self:
        if (self.duration is None) == (self.size is None):
            raise ValueError(
                f"found {'neither' if self.size is None else 'both'} of duration and size; expected exactly one of them"
            )
        return self


def problems(workload: Iperf3, around: Surroundings) -> Iterator[Problem]:
    """What does not fit."""
    if workload.udp_rate is None:
        yield from gateways_fit(workload, "iperf3 over TCP", around)
        yield from kernel_setting(workload, "congestion", around)
        yield from kernel_setting(workload, "segment", around)
    if workload.duration is not None and workload.duration % 10**9:
        yield ("duration",), f'found "{workload.duration.text}"; expected whole seconds. Correct the value.'


def plan(workload: Iperf3, setting: Setting) -> planned.Iperf3:
    """Its part of a plan."""
    return planned.Iperf3(
        **common(workload),
        required=workload.required,
        to_ip=setting.addresses[workload.to],
        duration_ns=workload.duration,
        bytes_=workload.size,
        port=workload.port,
        congestion=workload.congestion,
        segment_bytes=workload.segment,
        reverse=workload.reverse,
        udp_rate_bps=workload.udp_rate,
        parallel=workload.parallel,
        patience_ns=workload.patience,
    )


def busy_ns(workload: planned.Iperf3, rate_bps: int | None) -> int:
    """Its time, or as long as its bytes take."""
    return workload.duration_ns or ns_to_send(workload, rate_bps)


def least_packets(workload: planned.Iperf3, rate_bps: int | None, mtu_bytes: int) -> int:
    """Full packets for its bytes, or as many as its rate (with TCP that of the slowest hop) lets it send in its
    time.
    """
    if workload.duration_ns is None:
        return packets_to_send(workload, rate_bps, mtu_bytes)
    sent_bps = workload.udp_rate_bps or rate_bps or 0
    return sent_bps * workload.duration_ns // SECOND_NS // 8 // (workload.segment_bytes or mtu_bytes)


def is_unmodified(workload: Iperf3) -> bool:
    """Over TCP; the kernel carries datagrams in any case."""
    return workload.udp_rate is None


KIND = Kind(
    model=Iperf3,
    plan=plan,
    problems=problems,
    serves=at_receiver,
    busy_ns=busy_ns,
    least_packets=least_packets,
    is_unmodified=is_unmodified,
)
