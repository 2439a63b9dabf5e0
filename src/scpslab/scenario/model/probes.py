"""What observes: one class a kind, one line in Probe."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Name, PositiveDuration, Size


class Capture(Part):
    """tcpdump on one interface of a node, nanosecond time stamps: captures/NAME.pcap."""

    kind: Literal["capture"] = key(says="The kind of probe.", example="capture")
    name: Name | None = key(None, says="Name of the file; the node's name if not given.", example="sink")
    node: Name = key(says="Where.", example="ws2")
    link: str | None = key(None, says="On the node's interface to this link; its first interface if not given.", example="hop")
    snaplen: Size = key("96 B", says="Bytes kept of each packet: 96 hold all headers and options.", example="96 B")
    filter: str = key("", says="tcpdump filter.", example="tcp port 5001")


class TcpInfo(Part):
    """Samples of the kernel's own view of a node's TCP connections: records/NAME.jsonl."""

    kind: Literal["tcp_info"] = key(says="The kind of probe.", example="tcp_info")
    name: Name | None = key(None, says="Name of the record; tcp-NODE if not given.", example="sender")
    node: Name = key(says="Where.", example="ws1")
    interval: PositiveDuration = key("100 ms", says="Time between two samples.", example="100 ms")


class QueueDepth(Part):
    """Samples of what waits or is under way in a stage of a link's direction: records/NAME.jsonl."""

    kind: Literal["queue"] = key(says="The kind of probe.", example="queue")
    name: Name | None = key(None, says="Name of the record; queue-LINK-DIRECTION if not given.", example="router-1")
    link: str = key(says="Link.", example="hop")
    direction: Name = key(says="Direction.", example="data")
    stage: Literal["queue", "delay"] = key("queue", says="Stage 1, the buffer before the serialiser, or stage 2, what is on its way.", example="queue")
    interval: PositiveDuration = key("100 ms", says="Time between two samples.", example="100 ms")


class Verdicts(Part):
    """One line for every packet of a direction that did not pass unharmed, with its cause: records/NAME.jsonl."""

    kind: Literal["verdicts"] = key(says="The kind of probe.", example="verdicts")
    name: Name | None = key(None, says="Name of the record; verdicts-LINK-DIRECTION if not given.", example="losses")
    link: str = key(says="Link.", example="hop")
    direction: Name = key(says="Direction.", example="data")


Probe = Annotated[Capture | TcpInfo | QueueDepth | Verdicts, Field(discriminator="kind")]


def name_of(probe: Capture | TcpInfo | QueueDepth | Verdicts) -> str:
    """The name that a probe's file has."""
    if probe.name:
        return probe.name
    match probe:
        case Capture():
            return probe.node
        case TcpInfo():
            return f"tcp-{probe.node}"
        case _:
            return f"{probe.kind}-{probe.link}-{probe.direction}"
