"""Kind `endpoint`: a transfer by the programs of the hosts' images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.stacks import SCPS
from scpslab.scenario.workloads import REQUIRED, Setting, Surroundings, Transfer, patience_key

from scpslab.kinds.workloads.endpoint import plan as planned


class Endpoint(Transfer):
    """A transfer by the programs of the hosts' images, with any protocol ([images/CONTRACT.md](../images/CONTRACT.md)).

    Needs `containers: docker`.
    """

    knows_images: ClassVar = True

    kind: Literal["endpoint"] = key(says="The kind of workload.", example="endpoint")
    size: Size = key(says="Bytes to send.", example="4000000 B")
    port: Port = key(5001, says="Port of the receiver.", example=5001)
    patience: PositiveDuration = patience_key("3000 s", "the sender gives up")
    required: bool = REQUIRED

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        if not around.in_containers:
            found = "found endpoint with nodes that are processes; expected containers"
            yield ("kind",), f"{found}. Add containers: docker, or use kind bulk."
        for end in (self.sender, self.receiver):
            if around.host(end).carrier is SCPS:
                found = f"found endpoint with the stack {around.host(end).stack} on {end}"
                yield ("kind",), f"{found}; expected image or kernel. Use kind bulk."
        yield from super().problems(around)

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


KIND = Endpoint
