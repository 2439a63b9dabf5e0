"""What goes wrong on the links of a plan: errors, jitter and duplicates, with their seeds."""

from __future__ import annotations

import json

from scpslab.core.seeds import stream
from scpslab.plan.cell import Impairment
from scpslab.plan.error_models import MODELS, NO_MODEL, Errors
from scpslab.plan.network import NetworkPlan
from scpslab.scenario import Cell, model

# Gaps of a vector before it repeats: at 5e-5 that is 1.3 Gbit, a hundred transfers of the report.
VECTOR_ERRORS = 65_536


def plan_impairments(network: NetworkPlan, cell: Cell) -> tuple[Impairment, ...]:
    """What the scenario says that goes wrong, direction by direction."""
    places = [(link.name, direction.name) for link in network.all_links for direction in link.directions]
    found = (
        _impairment(given, cell, place)
        for place in places
        if (given := cell.model.links.get(place[0], {}).get(place[1])) is not None
    )
    return tuple(impairment for impairment in found if impairment is not None)


def _impairment(given: model.Direction, cell: Cell, place: tuple[str, str]) -> Impairment | None:
    is_drawn = given.jitter is not None or bool(given.duplicate)
    if given.errors is None and not is_drawn:
        return None
    return Impairment(
        link=place[0],
        direction=place[1],
        errors=plan_errors(given.errors, cell, place) if given.errors is not None else None,
        duplicate=given.duplicate or None,
        seed=stream(cell.scenario.seed, "disorder", *place, cell.repeat) if is_drawn else None,
    )


def plan_errors(errors: model.Errors, cell: Cell, place: tuple[str, str]) -> Errors:
    """The plan's `errors`.

    The seed depends on repeat, place, model and settings, not on the stack: what is compared meets the same errors (ADR
    0011).
    """
    settings = errors.settings
    drawn_from = {name: getattr(settings, name) for name in settings.drawn_from()}
    seed = stream(
        cell.scenario.seed, "errors", *place, errors.model, json.dumps(drawn_from, sort_keys=True), cell.repeat
    )
    has_errors = settings.has_errors()
    return Errors(
        model=errors.model if has_errors else NO_MODEL,
        action=errors.action,
        settings=settings.plan(cell.scenario.path.parent) if has_errors else MODELS[NO_MODEL](),
        seed=seed,
        vector_errors=VECTOR_ERRORS,
        drop_packets=tuple(sorted(set(errors.drop_packets))),
        drop_min_bytes=errors.drop_min_bytes,
        outages=tuple(sorted((outage.from_, outage.to) for outage in errors.outages)),
    )
