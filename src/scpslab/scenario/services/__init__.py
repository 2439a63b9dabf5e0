"""Daemons of nodes, as scenarios and planning know them: a folder a kind in scpslab.kinds.

Some are named by scenarios, others the lab has of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias, Union

from pydantic import Field

from scpslab.core.kinds import Layer
from scpslab.scenario.services.base import Kind, Service, Site

KINDS: Layer[Kind] = Layer("services", "scenario")

if TYPE_CHECKING:
    AnyService: TypeAlias = Service
else:
    AnyService = Annotated[
        Union[tuple(kind.model for kind in KINDS.values() if kind.model)],  # noqa: UP007 (made while the program runs)
        Field(discriminator="kind"),
    ]

__all__ = ["KINDS", "AnyService", "Kind", "Service", "Site"]
