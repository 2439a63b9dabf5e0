"""What cells of one network have in common: a template is set up once, and its cells go on from there (docs/decisions/0018).

It is the network of a plan, and the space that its cells may need. Whatever the network's set-up reads is in it, so that equal templates are equal
networks. It is computed from the plan alone, never from what ran before.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from scpslab import plan as plans
from scpslab.core import strict_json
from scpslab.lab.space import Space
from scpslab.plan import NetworkPlan, Plan, schema

# The file in a guest's cell folder that says: set this up, and wait for cells.
FILE = "template.json"


@dataclass(frozen=True)
class Template:
    """A network to set up, and the space that its cells may need in the stages of the links."""

    network: NetworkPlan
    space: Space

    @classmethod
    def of(cls, plan: Plan, vectors: Path) -> Self:
        """The template of a plan whose vectors of bit errors are in a folder."""
        return cls(plan.network, Space.of(plan, vectors))

    @property
    def id(self) -> str:
        """Hash of all that the template is, and what seeds the random numbers of its guest until a cell's own seed does."""
        return hashlib.sha256(json.dumps(self.write(), sort_keys=True).encode()).hexdigest()

    def write(self) -> dict[str, Any]:
        """What the file's JSON is to say."""
        return {"network": schema.write(self.network), "space": schema.write(self.space)}

    def text(self) -> str:
        """The template as its file has it."""
        return json.dumps(self.write(), indent=1) + "\n"

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """The template that a file's content states.

        Raises:
            PlanError: it is none.
        """
        fields = strict_json.loads(content)
        return cls(plans.read_network(fields["network"]), schema.read(Space, fields["space"]))
