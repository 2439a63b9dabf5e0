"""Links of the plan: the topology's directions with the scenario's overrides, errors and their seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from scpslab import units
from scpslab.documents.quantities import queue_limit
from scpslab.scenario import Cell
from scpslab.scenario.model import Direction, Errors, Queue
from scpslab.seeds import stream

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


def apply_overrides(links: list[dict[str, Any]], cell: Cell) -> None:
    """Applies what the scenario says to every direction it names."""
    for link in links:
        given: Mapping[str, Direction] = cell.model.links.get(link["name"], {})
        for direction in link["directions"]:
            if direction["name"] in given:
                _override(direction, given[direction["name"]], cell, (link["name"], direction["name"]))


def _override(planned: dict[str, Any], given: Direction, cell: Cell, place: tuple[str, str]) -> None:
    if given.rate is not None:
        planned["rate_bps"] = units.parse("rate", given.rate)
    if given.overhead is not None:
        planned["overhead_bytes"] = units.parse("size", given.overhead)
    if given.delay is not None:
        planned["delay_ns"] = units.parse("duration", given.delay)
    if given.delay_table:
        steps = [[units.parse("duration", step.at), units.parse("duration", step.delay)] for step in given.delay_table]
        planned["delay_table"] = steps if steps[0][0] == 0 else [[0, planned["delay_ns"]], *steps]
    if given.jitter is not None or given.duplicate:
        planned["disorder"] = {
            "jitter_ns": units.parse("duration", given.jitter) if given.jitter is not None else 0,
            "duplicate": given.duplicate or 0.0,
            "seed": stream(cell.scenario.seed, "disorder", *place, cell.repeat),
        }
    if given.queue is not None:
        planned["queue"] = _queue(planned["queue"], given.queue)
    if given.errors is not None:
        planned["errors"] = plan_errors(given.errors, cell, place)


def _queue(planned: dict[str, Any] | None, given: Queue) -> dict[str, Any]:
    """The plan's queue with the scenario's words on top, and every number that its discipline needs."""
    limits = queue_limit(given.limit) if given.limit is not None else (planned["limit_bytes"], planned["limit_packets"]) if planned else (None, None)
    discipline = given.discipline or (planned["discipline"] if planned else "drop-tail")
    ecn = given.ecn if given.ecn is not None else bool(planned and planned["ecn"])
    queue: dict[str, Any] = {"discipline": discipline, "limit_bytes": limits[0], "limit_packets": limits[1]}
    red = dict.fromkeys(("red_min_bytes", "red_max_bytes", "red_probability"))
    codel = dict.fromkeys(("codel_target_ns", "codel_interval_ns"))
    if discipline == "red":
        # Floyd's advice for RED: from a quarter to a half of the buffer, one packet in ten at the upper end.
        room = limits[0] if limits[0] is not None else (limits[1] or 0) * FULL_PACKET_BYTES
        red = {
            "red_min_bytes": units.parse("size", given.red_min) if given.red_min else room // 4,
            "red_max_bytes": units.parse("size", given.red_max) if given.red_max else room // 2,
            "red_probability": 0.1 if given.red_probability is None else given.red_probability,
        }
    if discipline == "codel":
        # RFC 8289 §4.4: 5 ms and 100 ms, for round trips of the Internet; a geostationary hop needs the scenario's own.
        codel = {
            "codel_target_ns": units.parse("duration", given.codel_target or "5 ms"),
            "codel_interval_ns": units.parse("duration", given.codel_interval or "100 ms"),
        }
    return {**queue, **red, **codel, "ecn": ecn}


def plan_errors(errors: Errors, cell: Cell, place: tuple[str, str]) -> dict[str, Any]:
    """The plan's `errors`. The seed depends on repeat, place, model and settings, not on the stack: what is compared meets the same errors (ADR 0011)."""
    settings: dict[str, Any] = {name: getattr(errors, name) for name in MODEL_SETTINGS[errors.model]}
    seed = stream(cell.scenario.seed, "errors", *place, errors.model, json.dumps(settings, sort_keys=True), cell.repeat)
    if errors.model == "vector-file":
        path = (cell.scenario.path.parent / str(errors.file)).resolve()
        settings = {"file": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    quiet = settings.get("ber") == 0
    return {
        "model": "none" if quiet else errors.model,
        "action": errors.action,
        "settings": {} if quiet else settings,
        "seed": seed,
        "vector_errors": VECTOR_ERRORS,
        "drop_packets": sorted(set(errors.drop_packets)),
        "drop_min_bytes": units.parse("size", errors.drop_min_bytes),
        "outages": sorted([units.parse("duration", outage.from_), units.parse("duration", outage.to)] for outage in errors.outages),
    }
