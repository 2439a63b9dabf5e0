"""Kind `policy`: a transfer whose sender is told what to send, and when, by a Python file of the user's."""

from typing import ClassVar, Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.scenario.workloads import REQUIRED, ProgramFile, Programmed, timeout_key


class Policy(Programmed, kind="policy"):
    """A transfer of datagrams.

    Which packet is sent at what time, and sent again, is decided by a Python file of yours ([policies](policies.md)).

    Attributes:
        kind: The kind of workload.
        policy: The Python file with the class Policy, in the folder of the scenario file.
        size: Bytes to send.
        packet: IP length of a full packet, headers included.
        port: UDP port.
    """

    named_by: ClassVar = "policy"

    kind: Literal["policy"] = key(example="policy")
    policy: ProgramFile = key(example="policy.py")
    size: Size = key(example="1 MB")
    packet: Size = key("1000 B", example="1000 B")
    port: Port = key(5003, example=5003)
    timeout: PositiveDuration = timeout_key("300 s")
    required: bool = REQUIRED
