"""Kind `policy`: a transfer whose sender is told what to send, and when, by a Python file of the user's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from scpslab.core.errors import ScenarioError
from scpslab.documents.parts import Spelt, key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.values import LONGEST_TEXT
from scpslab.scenario.workloads import REQUIRED, Setting, Surroundings, Transfer, timeout_key

from scpslab.kinds.workloads.policy.plan import FILE, LEAST_PACKET_BYTES

SPELT = Spelt(f"^{FILE}$", "the name of a Python file: letters, digits, - and _, then .py")


class Policy(Transfer):
    """A transfer of datagrams.

    Which packet is sent at what time, and sent again, is decided by a Python file of yours ([policies](policies.md)).
    """

    needs_file: ClassVar = True

    kind: Literal["policy"] = key(says="The kind of workload.", example="policy")
    policy: Annotated[str, SPELT] = key(
        says="The Python file with the class Policy, in the folder of the scenario file.", example="policy.py"
    )
    size: Size = key(says="Bytes to send.", example="1 MB")
    packet: Size = key("1000 B", says="IP length of a full packet, headers included.", example="1000 B")
    port: Port = key(5003, says="UDP port.", example=5003)
    timeout: PositiveDuration = timeout_key("300 s")
    required: bool = REQUIRED

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        if not LEAST_PACKET_BYTES <= self.packet <= around.mtu_bytes:
            expected = f"expected {LEAST_PACKET_BYTES} B to {around.mtu_bytes} B, the MTU of the path"
            yield ("packet",), f'found "{self.packet.text}"; {expected}. Correct the value.'
        try:
            read_policy(around.folder / self.policy)
        except ScenarioError as error:
            yield ("policy",), str(error)
        yield from super().problems(around)

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """The file's text goes with the plan."""
        return {
            **super().derived(setting),
            "file": self.policy,
            "code": read_policy(setting.folder / self.policy),
            "from_ip": setting.source(self.from_, self.to),
        }


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


KIND = Policy
