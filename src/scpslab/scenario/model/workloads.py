"""What generates traffic: one class a kind, one line in Workload."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scpslab.parts import Part, key
from scpslab.quantities import Duration, Name, Port, PositiveDuration, Rate, Size, SizeOrZero
from scpslab.stacks.kernel import Congestion


class Traffic(Part):
    """What every workload says."""

    name: Name = key(says="Name of the workload and of its record.", example="transfer")
    from_: Name = key(alias="from", says="Host that sends.", example="ws1")
    to: Name = key(says="Host that receives.", example="ws2")
    start: Duration = key("1 s", says="When it starts, since the network came up.", example="1 s")


class Bulk(Traffic):
    """A bulk transfer over TCP, measured at both ends as the FY97 report did: first data packet at the sink to the acknowledgement of the last."""

    kind: Literal["bulk"] = key(says="The kind of workload.", example="bulk")
    size: Size = key(says="Bytes to send.", example="4000000 B")
    segment: Size = key(
        "1400 B", says="Data bytes per segment, headers and options not counted. Below 76 bytes the topology's MTU must force it.", example="512 B"
    )
    congestion: Congestion | None = key(None, says="Congestion control of this transfer; the sending host's if not given.", example="vegas")
    port: Port = key(5001, says="TCP port.", example=5001)
    patience: PositiveDuration = key("3000 s", says="When the sender gives up; the cell then counts as incomplete.", example="3000 s")
    required: bool = key(True, says="Whether the cell waits for it, and is incomplete when it does not complete.", example=True)


class Iperf3(Traffic):
    """iperf3, one client and one server; its own JSON result is the record."""

    kind: Literal["iperf3"] = key(says="The kind of workload.", example="iperf3")
    duration: PositiveDuration | None = key(None, says="How long to send, whole seconds.", example="60 s")
    size: Size | None = key(None, says="Bytes to send, instead of a duration.", example="4 MB")
    udp_rate: Rate | None = key(None, says="UDP at this rate instead of TCP.", example="1 Mbit/s")
    parallel: int = key(1, says="Parallel streams.", least=1, most=128, example=4)
    reverse: bool = key(False, says="The receiving host sends.", example=True)
    segment: Size | None = key(None, says="TCP segment or UDP datagram size; the programs' own choice if not given.", example="1400 B")
    congestion: Congestion | None = key(None, says="Congestion control of this flow; the sending host's if not given.", example="bbr")
    port: Port = key(5201, says="Port.", example=5201)
    patience: PositiveDuration = key("3000 s", says="When to give up.", example="300 s")
    required: bool = key(True, says="Whether the cell waits for it.", example=True)

    @model_validator(mode="after")
    def _has_one_end(self) -> Self:
        if (self.duration is None) == (self.size is None):
            raise ValueError(f"found {'neither' if self.size is None else 'both'} of duration and size; expected exactly one of them")
        return self


class Ftp(Traffic):
    """A file by FTP over the kernel's TCP, vsftpd and curl, timed as the client reports it (the NMSU papers' ftp)."""

    kind: Literal["ftp"] = key(says="The kind of workload.", example="ftp")
    size: Size = key(says="Bytes of the file.", example="100 kB")
    command: Literal["get", "put"] = key("get", says="get: the receiving host has the client; put: the sending host has it.", example="put")
    mode: Literal["active", "passive"] = key(
        "active", says="Who opens the data connection: the server (PORT, as clients of the period) or the client.", example="passive"
    )
    port: Port = key(21, says="TCP port of the control connection.", example=21)
    patience: PositiveDuration = key("900 s", says="When a transfer is given up; the cell then counts as incomplete.", example="900 s")
    required: bool = key(True, says="Whether the cell waits for it, and is incomplete when it does not complete.", example=True)


class Ping(Traffic):
    """ping: round trips without a transport."""

    kind: Literal["ping"] = key(says="The kind of workload.", example="ping")
    count: int = key(10, says="Echo requests.", least=1, most=1_000_000, example=10)
    interval: PositiveDuration = key("1 s", says="Time between two.", example="1 s")
    payload: SizeOrZero = key("56 B", says="Payload bytes of a request.", example="56 B")
    required: bool = key(True, says="Whether the cell waits for it.", example=True)


class CongestionTraffic(Traffic):
    """FY97's congestion generator: UDP at a uniform random rate, redrawn every few seconds. It ends with the last required workload."""

    kind: Literal["congestion"] = key(says="The kind of workload.", example="congestion")
    level: float | None = key(
        None, says="Congestion level in percent of the slowest hop on the way: rates are drawn from 0 to (level - 100) %.", least=100, most=1000, example=150.0
    )
    max_rate: Rate | None = key(None, says="Upper end of the drawn rates, instead of a level.", example="1 Mbit/s")
    redraw: PositiveDuration = key("5 s", says="How long a rate is held.", example="5 s")
    packet: Size = key("1452 B", says="IP packet size.", example="1452 B")
    port: Port = key(5002, says="UDP port.", example=5002)
    start: Duration = key("0 s", says="When it starts, since the network came up.", example="0 s")

    @model_validator(mode="after")
    def _has_one_rate(self) -> Self:
        if (self.level is None) == (self.max_rate is None):
            raise ValueError(f"found {'neither' if self.level is None else 'both'} of level and max_rate; expected exactly one of them")
        return self


Workload = Annotated[Bulk | Ftp | Iperf3 | Ping | CongestionTraffic, Field(discriminator="kind")]
