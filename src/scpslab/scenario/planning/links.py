"""Links of the plan: the topology's directions with the scenario's overrides, errors and their seeds."""

from __future__ import annotations

import json
from dataclasses import replace

from scpslab.core.seeds import stream
from scpslab.documents.quantities import limit_of
from scpslab.plan import links
from scpslab.plan.disciplines import Queue, without_settings
from scpslab.plan.error_models import NO_MODEL, Errors
from scpslab.plan.serial_links import SerialDirection
from scpslab.plan.topology.layout import Layout
from scpslab.scenario import Cell, model
from scpslab.scenario.disciplines import DISCIPLINES
from scpslab.scenario.errors import MODELS

from scpslab.kinds.errors.none.plan import NoErrors

# Gaps of a vector before it repeats: at 5e-5 that is 1.3 Gbit, a hundred transfers of the report.
VECTOR_ERRORS = 65_536


def with_overrides(network: Layout, cell: Cell) -> Layout:
    """The network with what the scenario says of every direction that it names."""

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
        errors=plan_errors(given.errors, cell, (link, planned.name)) if given.errors is not None else planned.errors,
    )


def _direction(link: str, planned: links.Direction, cell: Cell) -> links.Direction:
    given = cell.model.links.get(link, {}).get(planned.name)
    if given is None:
        return planned
    place = (link, planned.name)
    delay_ns = given.delay if given.delay is not None else planned.delay_ns
    return replace(
        planned,
        rate_bps=given.rate if given.rate is not None else planned.rate_bps,
        overhead_bytes=given.overhead if given.overhead is not None else planned.overhead_bytes,
        delay_ns=delay_ns,
        delay_table=_delay_table(given, delay_ns) if given.delay_table else planned.delay_table,
        disorder=_disorder(given, cell, place) if given.jitter is not None or given.duplicate else planned.disorder,
        queue=plan_queue(planned.queue or without_settings(), given.queue) if given.queue is not None else planned.queue,
        errors=plan_errors(given.errors, cell, place) if given.errors is not None else planned.errors,
    )


def _delay_table(given: model.Direction, delay_ns: int) -> tuple[tuple[int, int], ...]:
    steps = tuple((step.at, step.delay) for step in given.delay_table or ())
    return steps if steps[0][0] == 0 else ((0, delay_ns), *steps)


def _disorder(given: model.Direction, cell: Cell, place: tuple[str, str]) -> links.Disorder:
    return links.Disorder(
        jitter_ns=given.jitter if given.jitter is not None else 0,
        duplicate=given.duplicate or 0.0,
        seed=stream(cell.scenario.seed, "disorder", *place, cell.repeat),
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
    return replace(queue, **DISCIPLINES[queue.discipline].settings(given, queue))


def plan_errors(errors: model.Errors, cell: Cell, place: tuple[str, str]) -> Errors:
    """The plan's `errors`. The seed depends on repeat, place, model and settings, not on the stack: what is compared meets the same errors (ADR 0011)."""
    chosen = MODELS[errors.model]
    drawn_from = {name: getattr(errors, name) for name in chosen.drawn_from()}
    seed = stream(cell.scenario.seed, "errors", *place, errors.model, json.dumps(drawn_from, sort_keys=True), cell.repeat)
    has_errors = chosen.has_errors(errors)
    return Errors(
        model=errors.model if has_errors else NO_MODEL,
        action=errors.action,
        settings=chosen.plan(errors, cell.scenario.path.parent) if has_errors else NoErrors(),
        seed=seed,
        vector_errors=VECTOR_ERRORS,
        drop_packets=tuple(sorted(set(errors.drop_packets))),
        drop_min_bytes=errors.drop_min_bytes,
        outages=tuple(sorted((outage.from_, outage.to) for outage in errors.outages)),
    )
