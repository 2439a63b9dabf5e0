"""Links of the plan: the topology's directions with the scenario's overrides, errors and their seeds."""

from __future__ import annotations

import json
from dataclasses import replace

from scpslab.core.seeds import stream
from scpslab.documents.quantities import limit_of
from scpslab.plan import links
from scpslab.plan.cell import Impairment
from scpslab.plan.disciplines import Queue, without_settings
from scpslab.plan.error_models import NO_MODEL, Errors
from scpslab.plan.network import NetworkPlan
from scpslab.plan.serial_links import SerialDirection
from scpslab.scenario import Cell, model
from scpslab.scenario.disciplines import DISCIPLINES
from scpslab.scenario.errors import MODELS

from scpslab.kinds.errors.none.plan import NoErrors

# Gaps of a vector before it repeats: at 5e-5 that is 1.3 Gbit, a hundred transfers of the report.
VECTOR_ERRORS = 65_536


def with_overrides(network: NetworkPlan, cell: Cell) -> NetworkPlan:
    """The network with what the scenario says of every direction that it names, but for what goes wrong there."""

    def packets(link: links.Link) -> links.Link:
        first, second = link.directions
        return replace(link, directions=(_direction(link.name, first, cell), _direction(link.name, second, cell)))

    return replace(
        network,
        links=tuple(packets(link) for link in network.links),
        serial_links=tuple(
            replace(link, directions=(_serial(link.name, link.directions[0], cell), _serial(link.name, link.directions[1], cell)))
            for link in network.serial_links
        ),
    )


def _serial(link: str, planned: SerialDirection, cell: Cell) -> SerialDirection:
    given = cell.model.links.get(link, {}).get(planned.name)
    if given is None:
        return planned
    return replace(
        planned,
        rate_bps=given.rate if given.rate is not None else planned.rate_bps,
        delay_ns=given.delay if given.delay is not None else planned.delay_ns,
    )


def _direction(link: str, planned: links.Direction, cell: Cell) -> links.Direction:
    given = cell.model.links.get(link, {}).get(planned.name)
    if given is None:
        return planned
    delay_ns = given.delay if given.delay is not None else planned.delay_ns
    return replace(
        planned,
        rate_bps=given.rate if given.rate is not None else planned.rate_bps,
        overhead_bytes=given.overhead if given.overhead is not None else planned.overhead_bytes,
        delay_ns=delay_ns,
        delay_table=_delay_table(given, delay_ns) if given.delay_table else planned.delay_table,
        jitter_ns=given.jitter or planned.jitter_ns,
        queue=plan_queue(planned.queue or without_settings(), given.queue) if given.queue is not None else planned.queue,
    )


def _delay_table(given: model.Direction, delay_ns: int) -> tuple[tuple[int, int], ...]:
    steps = tuple((step.at, step.delay) for step in given.delay_table or ())
    return steps if steps[0][0] == 0 else ((0, delay_ns), *steps)


def plan_impairments(network: NetworkPlan, cell: Cell) -> tuple[Impairment, ...]:
    """What the scenario says that goes wrong, direction by direction."""
    places = [(link.name, direction.name) for link in network.all_links for direction in link.directions]
    found = (_impairment(given, cell, place) for place in places if (given := cell.model.links.get(place[0], {}).get(place[1])) is not None)
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


def plan_queue(planned: Queue, given: model.Queue) -> Queue:
    """The topology's queue with the scenario's words on top, and every number that its discipline needs."""
    limits = limit_of(given.limit) if given.limit is not None else (planned.limit_bytes, planned.limit_packets)
    queue = replace(
        planned,
        discipline=given.discipline or planned.discipline,
        limit_bytes=limits[0],
        limit_packets=limits[1],
        ecn=given.ecn if given.ecn is not None else planned.ecn,
    )
    return replace(queue, settings=DISCIPLINES[queue.discipline].settings(given.of(queue.discipline), queue))


def plan_errors(errors: model.Errors, cell: Cell, place: tuple[str, str]) -> Errors:
    """The plan's `errors`. The seed depends on repeat, place, model and settings, not on the stack: what is compared meets the same errors (ADR 0011)."""
    chosen = MODELS[errors.model]
    drawn_from = {name: getattr(errors.settings, name) for name in chosen.drawn_from()}
    seed = stream(cell.scenario.seed, "errors", *place, errors.model, json.dumps(drawn_from, sort_keys=True), cell.repeat)
    has_errors = chosen.has_errors(errors.settings)
    return Errors(
        model=errors.model if has_errors else NO_MODEL,
        action=errors.action,
        settings=chosen.plan(errors.settings, cell.scenario.path.parent) if has_errors else NoErrors(),
        seed=seed,
        vector_errors=VECTOR_ERRORS,
        drop_packets=tuple(sorted(set(errors.drop_packets))),
        drop_min_bytes=errors.drop_min_bytes,
        outages=tuple(sorted((outage.from_, outage.to) for outage in errors.outages)),
    )
