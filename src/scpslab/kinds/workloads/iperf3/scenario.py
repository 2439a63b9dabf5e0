"""Kind `iperf3`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from scpslab.core.problems import Problem
from scpslab.documents.parts import exactly_one_of, key
from scpslab.documents.quantities import Port, PositiveDuration, Rate, Seconds, Size
from scpslab.scenario.workloads import Setting, Surroundings, Traffic, gateways_fit, kernel_setting

from scpslab.kinds.stacks.kernel.scenario import Control


class Iperf3(Traffic, kind="iperf3"):
    """iperf3, one client and one server; its own JSON result is the record."""

    kind: Literal["iperf3"] = key(says="The kind of workload.", example="iperf3")
    duration: Seconds | None = key(None, says="Time to send, in whole seconds.", example="60 s")
    size: Size | None = key(None, says="Bytes to send, instead of a duration.", example="4 MB")
    udp_rate: Rate | None = key(
        None, says="Send UDP at this rate, that of all streams together, instead of TCP.", example="1 Mbit/s"
    )
    parallel: int = key(1, says="Parallel streams.", least=1, most=128, example=4)
    reverse: bool = key(False, says="Reverse the direction: the receiving host sends.", example=True)
    segment: Size | None = key(
        None, says="Size of TCP segments or UDP datagrams. Default: iperf3's own choice.", example="1400 B"
    )
    congestion_control: Control | None = key(
        None, says="Congestion control of this flow. Default: the sending host's.", example="bbr"
    )
    port: Port = key(5201, says="Port.", example=5201)
    timeout: PositiveDuration = key("3000 s", says="Time after which iperf3 is ended.", example="300 s")
    required: bool = key(True, says="Whether the cell waits for the workload.", example=True)

    _has_one_end = exactly_one_of("duration", "size")

    @property
    def is_unmodified(self) -> bool:
        """Over TCP; the kernel carries datagrams in any case."""
        return self.udp_rate is None

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        if self.udp_rate is None:
            yield from gateways_fit(self, "iperf3 over TCP", around)
            yield from kernel_setting(self, "congestion_control", around)
            yield from kernel_setting(self, "segment", around)

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """Its size, if it has one."""
        return {**super().derived(setting), "bytes_": self.size}
