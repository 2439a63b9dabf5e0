"""Workloads that run a Python file of the user's: what their plans have in common."""

import re
from collections.abc import Iterator
from typing import Annotated

from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.schema import Range, Text
from scpslab.plan.stacks import KERNEL, STACKS
from scpslab.plan.values import Ip, Period, PlainText, Port, WholeSeed
from scpslab.plan.workloads import Transfer

LEAST_PACKET_BYTES = 76
# No folder: what a plan holds of a file comes from the scenario's own folder.
FILE = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}\.py"


def is_program_name(text: str) -> bool:
    """Whether a text is the name of a program's file."""
    return re.fullmatch(FILE, text, re.ASCII) is not None


class Programmed(Transfer):
    """A transfer of datagrams that the program `code` decides on, which the scenario has in the file `file`.

    `packet_bytes` is the IP length of a full packet.
    """

    packet_bytes: Annotated[int, Range(LEAST_PACKET_BYTES, 65_535)]
    port: Port
    file: Annotated[str, Text("the name of a Python file, without a folder", is_program_name)]
    code: PlainText
    payload_seed: WholeSeed
    timeout_ns: Period
    from_ip: Ip

    @property
    def files(self) -> dict[str, str]:
        """The program."""
        return {self.file: self.code}

    @classmethod
    def between(cls, kind: str, from_: str, to: str, network: NetworkPlan) -> Iterator[Problem]:
        """Its ends are programs of the guest's own."""
        if network.containers == "docker":
            found = f"{kind} with nodes that are containers"
            yield Problem(("kind",), found, "processes", "Leave out containers: docker.")
        yield from super().between(kind, from_, to, network)

    @classmethod
    def instead_of(cls, stack: str) -> tuple[str, str] | None:
        """A gateway or an image would not carry its datagrams."""
        return None if STACKS[stack] is KERNEL else ("kernel, which carries its datagrams", "Remove the stack.")

    @property
    def header_bytes(self) -> int:
        """Those of UDP and IP (RFC 768, RFC 791 §3.1, RFC 8200 §3)."""
        return 8 + (40 if ":" in self.to_ip else 20)

    def least_packets(self, rate_bps: int | None, mtu_bytes: int) -> int:
        """Full packets for its bytes."""
        return -(-self.bytes_ // self.segment_bytes)

    @property
    def segment_bytes(self) -> int:
        """Bytes of data that a full packet has room for."""
        return self.packet_bytes - self.header_bytes
