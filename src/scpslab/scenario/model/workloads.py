"""What generates traffic: one class a kind, one line in Workload."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scpslab import units
from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Duration, Name, Port, PositiveDuration, Rate, Size, SizeOrZero
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


class Endpoint(Traffic):
    """A transfer by the programs of the hosts' images, whatever they speak ([images/CONTRACT.md](../images/CONTRACT.md)); it needs `containers: docker`."""

    kind: Literal["endpoint"] = key(says="The kind of workload.", example="endpoint")
    size: Size = key(says="Bytes to send.", example="4000000 B")
    port: Port = key(5001, says="Port of the receiver.", example=5001)
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


class Fp(Traffic):
    """A file, or a record of it, by SCPS-FP: `scps fp` and `scps fpd`, over what carries transport on each host, timed as the client reports it."""

    kind: Literal["fp"] = key(says="The kind of workload.", example="fp")
    size: Size = key(says="Bytes of the file; of the one there already, for a record.", example="100 kB")
    command: Literal["get", "put", "read", "insert", "replace", "delete"] = key(
        "get",
        says="get, read: the receiving host has the client; put, insert, replace, delete: the sending host has it. "
        "read and the edits move one record of a file that is there already.",
        example="put",
    )
    record: Size = key("512 B", says="Bytes of the record that is read, inserted, replaced or deleted.", example="2 kB")
    mode: Literal["active", "passive"] = key(
        "active", says="Who opens the data connection: the server (PORT, as the programs of the period) or the client.", example="passive"
    )
    port: Port = key(2121, says="Port of the control connection.", example=2121)
    auto_restart: bool = key(False, says="Automatic restart: a transfer that breaks goes on by itself from what is stored.", example=True)
    bets: bool = key(False, says="Best effort on data connections (SCPS-TP): gaps are filled instead of awaited.", example=True)
    stop: Literal["none", "interrupt", "abort", "kill-client", "kill-server"] = key(
        "none",
        says="What happens in the middle of a get or put: the user interrupts and resumes it, aborts and repeats it, or a program is killed; "
        "another client then resumes, or another server takes its place.",
        example="interrupt",
    )
    stop_at: Size | None = key(
        None, says="Bytes moved when it happens; if not given, drawn for each repeat between a twentieth and three quarters of the file.", example="50 kB"
    )
    data_timeout: PositiveDuration = key("60 s", says="How long nothing may move on a data connection, whole seconds (DATATIMEOUT).", example="20 s")
    reply_timeout: PositiveDuration = key("60 s", says="How long the client waits for a reply, whole seconds (REPLYTIMEOUT).", example="20 s")
    restart_delay: PositiveDuration = key("5 s", says="First pause before an automatic restart, whole seconds; it doubles (RESTARTDELAY).", example="2 s")
    segment: Size | None = key(None, says="Data bytes per segment of SCPS-TP; not given: what the smallest MTU on the way holds.", example="512 B")
    patience: PositiveDuration = key("900 s", says="When it is given up; the cell then counts as incomplete.", example="900 s")
    required: bool = key(True, says="Whether the cell waits for it, and is incomplete when it does not complete.", example=True)

    @property
    def from_client(self) -> bool:
        """Whether the sending host has the client."""
        return self.command not in ("get", "read")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        size, record = units.parse("size", self.size), units.parse("size", self.record)
        if self.command in ("read", "replace", "delete") and record > size:
            raise ValueError(f'found a record of "{self.record}" in a file of "{self.size}"; expected one that fits into it')
        if self.stop != "none" and self.command not in ("get", "put"):
            raise ValueError(f"found stop {self.stop} with {self.command}; expected it with get or put")
        if self.stop_at is not None and units.parse("size", self.stop_at) >= size:
            raise ValueError(f'found stop_at "{self.stop_at}" in a file of "{self.size}"; expected less than the file')
        for name in ("data_timeout", "reply_timeout", "restart_delay"):
            if units.parse("duration", getattr(self, name)) % 10**9:
                raise ValueError(f'found {name} "{getattr(self, name)}"; expected whole seconds')
        return self


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


Workload = Annotated[Bulk | Endpoint | Ftp | Fp | Iperf3 | Ping | CongestionTraffic, Field(discriminator="kind")]
