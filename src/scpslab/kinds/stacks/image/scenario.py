"""Stack `image`: a Docker image of somebody else's that keeps images/CONTRACT.md.

Workloads of the kinds endpoint and program use it; the kernel's TCP is there as it comes.
"""

from typing import Annotated, Literal

from scpslab.core.names import IMAGE
from scpslab.documents.parts import Spelt, key
from scpslab.documents.quantities import Size
from scpslab.scenario.stacks import HostPart, NodePlan, OwnImage

from scpslab.kinds.stacks.kernel.scenario import PRESETS, sysctls

SPELT = Spelt(IMAGE, "the name of an image as Docker has it, such as vendor/stack:1.0")


class ImageHost(HostPart, kind="image"):
    """A host that is an image of yours ([images/CONTRACT.md](../images/CONTRACT.md)).

    Needs `containers: docker`; supports `endpoint` and `program` workloads.

    Attributes:
        stack: The stack: the programs of an image.
        image: The name of the image in this machine's Docker.
        options: Further arguments for the image's roles (SCPSLAB_OPTIONS).
        device: Whether the image makes a network device of its own; it then gets /dev/net/tun and NET_ADMIN.
        memory: Most memory that the container may use.
    """

    stack: Literal["image"] = key(example="image")
    image: Annotated[str, SPELT] = key(example="vendor/stack:1.0")
    options: str = key("", example="--window 4M")
    device: bool = key(False, example=True)
    memory: Size = key("256 MiB", example="512 MiB")

    def plan(self) -> NodePlan:
        """A program in the image that uses the kernel's TCP finds that of preset `modern`."""
        return NodePlan(
            stack="image",
            sysctls=sysctls(PRESETS["modern"]),
            timestamps=PRESETS["modern"].timestamps,
            image=OwnImage(self.image, self.memory, self.device, self.options),
        )
