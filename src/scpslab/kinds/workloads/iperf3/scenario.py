"""Kind `iperf3`."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from scpslab.core.problems import Problem
from scpslab.documents.parts import exactly_one_of, key
from scpslab.documents.quantities import Port, PositiveDuration, Rate, Seconds, Size
from scpslab.scenario.workloads import Setting, Surroundings, Traffic, kernel_setting

from scpslab.kinds.stacks.kernel.scenario import Control


class Iperf3(Traffic, kind="iperf3"):
    """iperf3, one client and one server; its own JSON result is the record.

    Attributes:
        kind: The kind of workload.
        duration: Time to send, in whole seconds.
        size: Bytes to send, instead of a duration.
        udp_rate: Send UDP at this rate, that of all streams together, instead of TCP.
        parallel: Parallel streams.
        reverse: Reverse the direction: the receiving host sends.
        segment: Size of TCP segments or UDP datagrams. Default: iperf3's own choice.
        congestion_control: Congestion control of this flow. Default: the sending host's.
        port: Port.
        timeout: Time after which iperf3 is ended.
        required: Whether the cell waits for the workload.
    """

    unmodified: ClassVar[str] = "iperf3 over TCP"

    kind: Literal["iperf3"] = key(example="iperf3")
    duration: Seconds | None = key(None, example="60 s")
    size: Size | None = key(None, example="4 MB")
    udp_rate: Rate | None = key(None, example="1 Mbit/s")
    parallel: int = key(1, least=1, most=128, example=4)
    reverse: bool = key(False, example=True)
    segment: Size | None = key(None, example="1400 B")
    congestion_control: Control | None = key(None, example="bbr")
    port: Port = key(5201, example=5201)
    timeout: PositiveDuration = key("3000 s", example="300 s")
    required: bool = key(True, example=True)

    _has_one_end = exactly_one_of("duration", "size")

    @property
    def is_unmodified(self) -> bool:
        """Over TCP; the kernel carries datagrams in any case."""
        return self.udp_rate is None

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        yield from super().problems(around)
        if self.udp_rate is None:
            yield from kernel_setting(self, "congestion_control", around)
            yield from kernel_setting(self, "segment", around)

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """Its size, if it has one."""
        return {**super().derived(setting), "bytes_": self.size}
