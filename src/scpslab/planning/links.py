"""Links of the plan: the topology's directions with the scenario's overrides, errors and their seeds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from scpslab import units
from scpslab.documents.quantities import queue_limit
from scpslab.plan import error_models, links
from scpslab.plan.serial_links import SerialDirection
from scpslab.scenario import Cell
from scpslab.scenario.model import Direction, Errors, Queue
from scpslab.seeds import stream
from scpslab.topology.layout import Layout

# Gaps of a vector before it repeats: at 5e-5 that is 1.3 Gbit, a hundred transfers of the report.
VECTOR_ERRORS = 65_536
# What each error model reads; registry and reading order of errormodels/.
MODEL_SETTINGS = {
    "none": (),
    "independent": ("ber",),
    "clustered": ("ber", "mean_errors_per_burst", "mean_gap_in_burst"),
    "gilbert-elliott": ("p_good_bad", "p_bad_good", "ber_good", "ber_bad"),
    "vector-file": (),
}
FULL_PACKET_BYTES = 1500
NO_QUEUE = links.Queue(
    discipline="drop-tail",
    limit_bytes=None,
    limit_packets=None,
    red_min_bytes=None,
    red_max_bytes=None,
    red_probability=None,
    codel_target_ns=None,
    codel_interval_ns=None,
    ecn=False,
)


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
        rate_bps=units.parse("rate", given.rate) if given.rate is not None else planned.rate_bps,
        delay_ns=units.parse("duration", given.delay) if given.delay is not None else planned.delay_ns,
        errors=plan_errors(given.errors, cell, (link, planned.name)) if given.errors is not None else planned.errors,
    )


def _direction(link: str, planned: links.Direction, cell: Cell) -> links.Direction:
    given = cell.model.links.get(link, {}).get(planned.name)
    if given is None:
        return planned
    place = (link, planned.name)
    delay_ns = units.parse("duration", given.delay) if given.delay is not None else planned.delay_ns
    return replace(
        planned,
        rate_bps=units.parse("rate", given.rate) if given.rate is not None else planned.rate_bps,
        overhead_bytes=units.parse("size", given.overhead) if given.overhead is not None else planned.overhead_bytes,
        delay_ns=delay_ns,
        delay_table=_delay_table(given, delay_ns) if given.delay_table else planned.delay_table,
        disorder=_disorder(given, cell, place) if given.jitter is not None or given.duplicate else planned.disorder,
        queue=plan_queue(planned.queue or NO_QUEUE, given.queue) if given.queue is not None else planned.queue,
        errors=plan_errors(given.errors, cell, place) if given.errors is not None else planned.errors,
    )


def _delay_table(given: Direction, delay_ns: int) -> tuple[tuple[int, int], ...]:
    steps = tuple((units.parse("duration", step.at), units.parse("duration", step.delay)) for step in given.delay_table or ())
    return steps if steps[0][0] == 0 else ((0, delay_ns), *steps)


def _disorder(given: Direction, cell: Cell, place: tuple[str, str]) -> links.Disorder:
    return links.Disorder(
        jitter_ns=units.parse("duration", given.jitter) if given.jitter is not None else 0,
        duplicate=given.duplicate or 0.0,
        seed=stream(cell.scenario.seed, "disorder", *place, cell.repeat),
    )


def plan_queue(planned: links.Queue, given: Queue) -> links.Queue:
    """The topology's queue with the scenario's words on top, and every number that its discipline needs."""
    limits = queue_limit(given.limit) if given.limit is not None else (planned.limit_bytes, planned.limit_packets)
    queue = replace(
        planned,
        discipline=given.discipline or planned.discipline,
        limit_bytes=limits[0],
        limit_packets=limits[1],
        ecn=given.ecn if given.ecn is not None else planned.ecn,
    )
    if queue.discipline == "red":
        # Floyd's advice for RED: from a quarter to a half of the buffer, one packet in ten at the upper end.
        room = limits[0] if limits[0] is not None else (limits[1] or 0) * FULL_PACKET_BYTES
        return replace(
            queue,
            red_min_bytes=units.parse("size", given.red_min) if given.red_min else room // 4,
            red_max_bytes=units.parse("size", given.red_max) if given.red_max else room // 2,
            red_probability=0.1 if given.red_probability is None else given.red_probability,
        )
    if queue.discipline == "codel":
        # RFC 8289 §4.4: 5 ms and 100 ms, for round trips of the Internet; a geostationary hop needs the scenario's own.
        return replace(
            queue,
            codel_target_ns=units.parse("duration", given.codel_target or "5 ms"),
            codel_interval_ns=units.parse("duration", given.codel_interval or "100 ms"),
        )
    return queue


def plan_errors(errors: Errors, cell: Cell, place: tuple[str, str]) -> error_models.Errors:
    """The plan's `errors`. The seed depends on repeat, place, model and settings, not on the stack: what is compared meets the same errors (ADR 0011)."""
    settings: dict[str, Any] = {name: getattr(errors, name) for name in MODEL_SETTINGS[errors.model]}
    seed = stream(cell.scenario.seed, "errors", *place, errors.model, json.dumps(settings, sort_keys=True), cell.repeat)
    if errors.model == "vector-file":
        path = (cell.scenario.path.parent / str(errors.file)).resolve()
        settings = {"file": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    model = "none" if settings.get("ber") == 0 else errors.model
    return error_models.Errors(
        model=model,
        action=errors.action,
        settings=error_models.MODELS[model](**(settings if model != "none" else {})),
        seed=seed,
        vector_errors=VECTOR_ERRORS,
        drop_packets=tuple(sorted(set(errors.drop_packets))),
        drop_min_bytes=units.parse("size", errors.drop_min_bytes),
        outages=tuple(sorted((units.parse("duration", outage.from_), units.parse("duration", outage.to)) for outage in errors.outages)),
    )
