"""What cells of one network have in common, and what each has besides: a template is set up once, and its cells go on from there (docs/decisions/0018).

The template of a plan is the plan with everything taken out that is applied later: which cell it is, bit errors, seeds, workloads, probes, script, limits,
and what routers of SCPS-NP are told. Whatever the network's set-up reads is in it, so that equal templates are equal networks. It is computed from the plan
alone, never from what ran before.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from scpslab import plan as plans
from scpslab.core import strict_json
from scpslab.lab.space import Space
from scpslab.plan import Plan, schema
from scpslab.plan.cell import CellKey, Limits
from scpslab.plan.links import Direction as LinkDirection
from scpslab.plan.links import Disorder, Link
from scpslab.plan.nodes import ScpsRouter
from scpslab.plan.serial_links import SerialLink

# The file in a guest's cell folder that says: set this up, and wait for cells.
FILE = "template.json"
NO_SEED = "0" * 64
# Time until the network is up. Serial links that negotiate at 50 baud take minutes of it.
VIRTUAL_S, WALL_S = 86_400, 3_600


@dataclass(frozen=True)
class Template:
    """A network to set up, and the space that its cells may need in the stages of the links."""

    plan: Plan
    space: Space

    @classmethod
    def of(cls, plan: Plan, vectors: Path) -> Self:
        """The template of a plan whose vectors of bit errors are in a folder."""
        memory = plan.limits.memory_mib
        stripped = replace(
            plan,
            nodes=tuple(_bare_router(node) if isinstance(node, ScpsRouter) else node for node in plan.nodes),
            cell=CellKey(id="template", scenario="template", axes={}, repeat=1, kernel_seed=NO_SEED),
            limits=Limits(virtual_s=VIRTUAL_S, wall_s=WALL_S, memory_mib=memory),
            links=tuple(_bare(link) for link in plan.links),
            serial_links=tuple(_bare_serial(link) for link in plan.serial_links),
            workloads=(),
            probes=(),
            script=None,
            services=None,
            mininet=None,
        )
        return cls(stripped, Space.of(plan, vectors))

    @property
    def id(self) -> str:
        """Hash of all that the template is, and what seeds the random numbers of its guest until a cell's own seed does."""
        return hashlib.sha256(json.dumps(self.write(), sort_keys=True).encode()).hexdigest()

    def write(self) -> dict[str, Any]:
        """What the file's JSON is to say."""
        return {"plan": plans.write(self.plan), "space": schema.write(self.space)}

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
        return cls(plans.read(fields["plan"]), schema.read(Space, fields["space"]))


def _bare_router(router: ScpsRouter) -> ScpsRouter:
    """Its program starts in the cell, so that what it is told is the cell's."""
    return replace(router, seed=0, default_precedence=0, hosts=(), next_hops=(), interfaces=())


def _bare(link: Link) -> Link:
    first, second = (_bare_direction(direction) for direction in link.directions)
    return replace(link, directions=(first, second))


def _bare_serial(link: SerialLink) -> SerialLink:
    first, second = (replace(direction, errors=None) for direction in link.directions)
    return replace(link, directions=(first, second))


def _bare_direction(direction: LinkDirection) -> LinkDirection:
    return replace(direction, errors=None, disorder=_bare_disorder(direction.disorder))


def _bare_disorder(disorder: Disorder | None) -> Disorder | None:
    """Jitter is part of the delay stage; the seed that it is drawn from is the cell's."""
    return replace(disorder, duplicate=0.0, seed=NO_SEED) if disorder and disorder.jitter_ns else None
