"""The programs of routers of SCPS-NP: each node of that kind has one, which the lab starts.

`routers` of a scenario has its settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from scpslab.scenario.services.base import Kind, Site

from scpslab.kinds.services.np_router.plan import NpRouterService

if TYPE_CHECKING:
    from scpslab.scenario.model import ScenarioFile


def of_lab(site: Site) -> tuple[NpRouterService, ...]:
    """One for each router."""
    cell = site.cell
    return tuple(
        site.np.service(router, cell.model.router(router), cell.scenario.seed, cell.repeat)
        for router in site.np.routers
    )


def own_names(_model: ScenarioFile, nodes: Mapping[str, str]) -> Iterable[str]:
    """Those of the nodes."""
    return (name for name, kind in nodes.items() if kind == "scps-router")


KIND = Kind(of_lab=of_lab, own_names=own_names)
