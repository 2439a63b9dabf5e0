"""Kind `verdicts`: what the stages of a link's direction decided of its packets."""

from __future__ import annotations

from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name
from scpslab.scenario.probes import AtDirection


class Verdicts(AtDirection):
    """One line for each packet of a direction that was lost or damaged, with the cause: records/NAME.jsonl."""

    kind: Literal["verdicts"] = key(says="The kind of probe.", example="verdicts")
    name: Name | None = key(None, says="Name of the record. Default: verdicts-LINK-DIRECTION.", example="losses")
    link: str = key(says="Link.", example="hop")
    direction: Name = key(says="Direction.", example="forward")


KIND = Verdicts
