"""Kind `tcp_info`: a node's transport connections over time."""

from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, ProbeInterval
from scpslab.scenario.probes import Observer


class TcpInfo(Observer, kind="tcp_info"):
    """Samples of the kernel's own view of a node's TCP connections: records/NAME.jsonl.

    Attributes:
        kind: The kind of probe.
        name: Name of the record. Default: tcp-NODE.
        node: Where.
        interval: Time between two samples.
    """

    kind: Literal["tcp_info"] = key(example="tcp_info")
    name: Name | None = key(None, example="sender")
    node: Name = key(example="ws1")
    interval: ProbeInterval = key("100 ms", example="100 ms")

    @property
    def default_name(self) -> str:
        """The node."""
        return f"tcp-{self.node}"
