"""Kind `endpoint`: a transfer by the programs of the hosts' images."""

from collections.abc import Mapping
from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.scenario.workloads import REQUIRED, Setting, Transfer, timeout_key

from scpslab.kinds.workloads.endpoint import plan as planned


class Endpoint(Transfer, kind="endpoint"):
    """A transfer by the programs of the hosts' images, with any protocol ([images/CONTRACT.md](../images/CONTRACT.md)).

    Needs `containers: docker`.

    Attributes:
        kind: The kind of workload.
        size: Bytes to send.
        port: Port of the receiver.
    """

    kind: Literal["endpoint"] = key(example="endpoint")
    size: Size = key(example="4000000 B")
    port: Port = key(5001, example=5001)
    timeout: PositiveDuration = timeout_key("3000 s", "the sender gives up")
    required: bool = REQUIRED

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """The words for the images are those of the hosts."""
        from_, to = (
            image.options if (image := setting.hosts[host].image) else "" for host in (self.sender, self.receiver)
        )
        return {
            **super().derived(setting),
            "options": planned.EndOptions(from_=from_, to=to),
            "from_ip": setting.source(self.from_, self.to),
        }
