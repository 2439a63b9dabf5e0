"""Kind `policy`: a transfer whose sender is told what to send, and when, by a Python file of the user's."""

from __future__ import annotations

from typing import ClassVar, Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.scenario.programs import ProgramFile, Programmed
from scpslab.scenario.workloads import REQUIRED, timeout_key


class Policy(Programmed, kind="policy"):
    """A transfer of datagrams.

    Which packet is sent at what time, and sent again, is decided by a Python file of yours ([policies](policies.md)).
    """

    named_by: ClassVar = "policy"

    kind: Literal["policy"] = key(says="The kind of workload.", example="policy")
    policy: ProgramFile = key(
        says="The Python file with the class Policy, in the folder of the scenario file.", example="policy.py"
    )
    size: Size = key(says="Bytes to send.", example="1 MB")
    packet: Size = key("1000 B", says="IP length of a full packet, headers included.", example="1000 B")
    port: Port = key(5003, says="UDP port.", example=5003)
    timeout: PositiveDuration = timeout_key("300 s")
    required: bool = REQUIRED
