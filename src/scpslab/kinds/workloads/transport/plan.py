"""Workload `transport`: a transfer whose two ends are a Python program each, which make and read its datagrams."""

from typing import Annotated, Literal

from scpslab.plan.programs import Programmed
from scpslab.plan.schema import Range
from scpslab.plan.values import Amount

# The sending program gets all bytes at its start, and has 128 MiB of memory.
MOST_BYTES = 4_000_000


class Transport(Programmed, kind="transport"):
    """A transfer by the classes Sender and Receiver of `code`, which the scenario has in the file `file`.

    `packet_bytes` is the IP length of the largest packet. The receiver reads its datagrams at `read_rate_bps` (null: at
    once) from a buffer of `buffer_bytes`.
    """

    kind: Literal["transport"] = "transport"
    bytes_: Annotated[int, Range(1, MOST_BYTES)]
    buffer_bytes: Amount
    read_rate_bps: Amount | None
