"""Kind `losses`: what the stages of a link's direction decided of its packets."""

from __future__ import annotations

from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name
from scpslab.scenario.probes import AtDirection


class Losses(AtDirection, kind="losses"):
    """One line for each packet of a direction that was lost or damaged, with the cause: records/NAME.jsonl."""

    kind: Literal["losses"] = key(says="The kind of probe.", example="losses")
    name: Name | None = key(None, says="Name of the record. Default: losses-LINK-DIRECTION.", example="hop-losses")
    link: str = key(says="Link.", example="hop")
    direction: Name = key(says="Direction.", example="forward")
