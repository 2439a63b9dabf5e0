"""Kind `policy`: a transfer whose sender is told what to send, and when, by a Python file of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from scpslab.core.errors import ScenarioError
from scpslab.documents.parts import Spelt, key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.stacks import KERNEL
from scpslab.plan.values import LONGEST_TEXT
from scpslab.scenario.workloads.base import Kind, Setting, Surroundings, Traffic, at_receiver, common
from scpslab.scenario.workloads.in_time import fits_in_time, ns_to_send

from scpslab.kinds.workloads.policy import plan as planned

SPELT = Spelt(f"^{planned.FILE}$", "the name of a Python file: letters, digits, - and _, then .py")


class Policy(Traffic):
    """A transfer of datagrams.

    Which packet is sent at what time, and sent again, is decided by a Python file of yours ([policies](policies.md)).
    """

    kind: Literal["policy"] = key(says="The kind of workload.", example="policy")
    policy: Annotated[str, SPELT] = key(
        says="The Python file with the class Policy, in the folder of the scenario file.", example="policy.py"
    )
    size: Size = key(says="Bytes to send.", example="1 MB")
    packet: Size = key("1000 B", says="IP length of a full packet, headers included.", example="1000 B")
    port: Port = key(5003, says="UDP port.", example=5003)
    patience: PositiveDuration = key(
        "300 s", says="Time after which the transfer is given up; the cell then counts as incomplete.", example="300 s"
    )
    required: bool = key(
        True,
        says="Whether the cell waits for the workload, and is incomplete if the workload does not complete.",
        example=True,
    )


def problems(workload: Policy, around: Surroundings) -> Iterator[Problem]:
    """What does not fit."""
    if around.in_containers:
        yield (
            ("kind",),
            "found policy with nodes that are containers; expected processes. Leave out containers: docker.",
        )
    for end in (workload.sender, workload.receiver):
        if around.host(end).carrier is not KERNEL:
            yield (
                ("kind",),
                (
                    f"found policy with the stack {around.host(end).stack} on {end}; "
                    "expected kernel, which carries its datagrams. Remove the stack."
                ),
            )
    packet_bytes = workload.packet
    if not planned.LEAST_PACKET_BYTES <= packet_bytes <= around.mtu_bytes:
        yield (
            ("packet",),
            (
                f'found "{workload.packet.text}"; expected {planned.LEAST_PACKET_BYTES} B to {around.mtu_bytes} B, '
                "the MTU of the path. Correct the value."
            ),
        )
    try:
        read_policy(around.folder / workload.policy)
    except ScenarioError as error:
        yield ("policy",), str(error)
    yield from fits_in_time(workload, around)


def read_policy(path: Path) -> str:
    """The text of a policy; it is read and not run.

    Raises:
        ScenarioError: there is no such file, or it is no Python.
    """
    try:
        # A device or a pipe would be read for ever, and a link could lead to a file that is not for others: a plan
        # holds the text.
        if path.is_symlink() or not path.is_file():
            raise ScenarioError(
                f'found no ordinary file "{path.name}" beside the scenario; expected a Python file with the class '
                "Policy. Correct the name."
            )
        code = path.read_bytes()[: 4 * LONGEST_TEXT + 1].decode()
    except OSError as error:
        raise ScenarioError(
            f"{path.name}: found {error.strerror}; expected a Python file that can be read. Change its rights."
        ) from error
    except UnicodeDecodeError as error:
        raise ScenarioError(
            f"{path.name}: found bytes that are not UTF-8; expected a Python file. Save it as UTF-8."
        ) from error
    if len(code) > LONGEST_TEXT or "\0" in code:
        raise ScenarioError(
            f"{path.name}: found more than {LONGEST_TEXT} characters, or NUL; "
            "expected a Python file with the class Policy. Make it shorter."
        )
    return code.replace("\r\n", "\n")


def plan(workload: Policy, setting: Setting) -> planned.Policy:
    """Its part of a plan."""
    return planned.Policy(
        **common(workload),
        required=workload.required,
        to_ip=setting.addresses[workload.to],
        bytes_=workload.size,
        packet_bytes=workload.packet,
        port=workload.port,
        file=workload.policy,
        code=read_policy(setting.folder / workload.policy),
        payload_seed=setting.seed("payload", workload.name),
        patience_ns=workload.patience,
        from_ip=setting.source(workload.from_, workload.to),
    )


def least_packets(workload: planned.Policy, _rate_bps: int | None, _mtu_bytes: int) -> int:
    """Full packets for its bytes."""
    return -(-workload.bytes_ // workload.segment_bytes)


KIND = Kind(
    model=Policy,
    plan=plan,
    problems=problems,
    serves=at_receiver,
    busy_ns=ns_to_send,
    least_packets=least_packets,
    needs_file=True,
)
