"""Workload `policy`: a transfer of datagrams whose sender is told what to send, and when, by a Python program."""

from typing import Literal

from scpslab.plan.programs import Programmed

# Segment, copy and time before the data (lab.py).
DATA_HEADER_BYTES = 16


class Policy(Programmed, kind="policy"):
    """A transfer whose sender asks the program `code`, which the scenario has in the file `file`.

    `packet_bytes` is the IP length of a full packet.
    """

    kind: Literal["policy"] = "policy"

    @property
    def segment_bytes(self) -> int:
        """Bytes of data in a full packet."""
        return self.packet_bytes - self.header_bytes - DATA_HEADER_BYTES
