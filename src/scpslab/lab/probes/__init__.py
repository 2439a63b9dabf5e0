"""What observes: one file a kind, one line in KINDS."""

from typing import Any

from scpslab.lab.probes.base import Probe
from scpslab.lab.probes.capture import Capture
from scpslab.lab.probes.queue import QueueDepth
from scpslab.lab.probes.tcp_info import TcpInfo
from scpslab.lab.probes.verdicts import VerdictLog

KINDS: dict[str, type[Probe[Any]]] = {"capture": Capture, "queue": QueueDepth, "tcp_info": TcpInfo, "verdicts": VerdictLog}
