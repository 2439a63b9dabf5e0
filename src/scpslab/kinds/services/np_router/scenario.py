"""The programs of routers of SCPS-NP: each node of that kind has one, which the lab starts.

`routers` of a scenario has its settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from scpslab.scenario.services import Service, Site

from scpslab.kinds.services.np_router.plan import NpRouterService

if TYPE_CHECKING:
    from scpslab.scenario.model import ScenarioFile


class NpRouter(Service):
    """Scenarios do not name it."""

    @classmethod
    def of_lab(cls, site: Site) -> Iterator[NpRouterService]:
        """One for each router."""
        cell = site.cell
        for router in site.np.routers:
            yield site.np.service(router, cell.model.router(router), cell.scenario.seed, cell.repeat)

    @classmethod
    def own(cls, model: ScenarioFile, nodes: Mapping[str, str]) -> Mapping[str, str]:
        """One on each router, whose name it has."""
        return {name: name for name, kind in nodes.items() if kind == "scps-router"}


KIND = NpRouter
