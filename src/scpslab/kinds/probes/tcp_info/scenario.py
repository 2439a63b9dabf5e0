"""Kind `tcp_info`: a node's transport connections over time."""

from __future__ import annotations

from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, ProbeInterval
from scpslab.scenario.probes import Observer


class TcpInfo(Observer, kind="tcp_info"):
    """Samples of the kernel's own view of a node's TCP connections: records/NAME.jsonl."""

    kind: Literal["tcp_info"] = key(says="The kind of probe.", example="tcp_info")
    name: Name | None = key(None, says="Name of the record. Default: tcp-NODE.", example="sender")
    node: Name = key(says="Where.", example="ws1")
    interval: ProbeInterval = key("100 ms", says="Time between two samples.", example="100 ms")

    @property
    def default_name(self) -> str:
        """The node."""
        return f"tcp-{self.node}"
