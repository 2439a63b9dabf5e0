"""The links of a scenario as planned, the topology's directions with the scenario's words on top; and what must hold.

A rule of what a plan can say is the plan's (plan/consistency.py): here are the keys by which a scenario says it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from scpslab.core.choices import one_of
from scpslab.documents.quantities import limit_of
from scpslab.documents.yaml_lines import KeyPath, Problem
from scpslab.plan import links
from scpslab.plan.consistency import delay_problems, direction_problems
from scpslab.plan.disciplines import Queue as PlannedQueue
from scpslab.plan.disciplines import without_settings
from scpslab.plan.network import NetworkPlan
from scpslab.plan.serial_links import SerialDirection, SerialLink
from scpslab.scenario.disciplines import DISCIPLINES
from scpslab.scenario.errors import MODELS
from scpslab.scenario.model import Direction, Queue, ScenarioFile

# From keys of a planned direction to those of a scenario; the others are the same.
KEYS = {
    "rate_bps": "rate",
    "overhead_bytes": "overhead",
    "delay_ns": "delay",
    "jitter_ns": "jitter",
    "limit_bytes": "limit",
}


def problems(model: ScenarioFile, network: NetworkPlan, folder: Path) -> Iterator[Problem]:
    """Everything that does not fit of the links of a scenario, planned in `network`; `folder` has its data files."""
    known = {link.name: link for link in network.all_links}
    for name, directions in model.links.items():
        if name not in known:
            yield ("links", name), f'found "{name}"; {one_of(name, known)}'
            continue
        names = [direction.name for direction in known[name].directions]
        for direction, given in directions.items():
            at: KeyPath = ("links", name, direction)
            if direction not in names:
                yield at, f'found "{direction}"; {one_of(direction, names)}'
                continue
            rules = _serial_keys(given) if isinstance(known[name], SerialLink) else ()
            yield from (((*at, *key), text) for key, text in (*rules, *_errors(given, folder)))
    yield from _planned(model, network)


def _planned(model: ScenarioFile, network: NetworkPlan) -> Iterator[Problem]:
    """What the plan's rules say of its directions, at the scenario's keys."""
    for link in network.links:
        for planned in link.directions:
            for key, text in direction_problems(planned, has_relay=link.via is not None):
                own = DISCIPLINES[planned.queue.discipline].planned_as if planned.queue else {}
                words = tuple({**KEYS, **own}.get(word, word) for word in key.split(".") if word != "settings")
                yield _placed(model, (link.name, planned.name), words, text)
    for serial in network.serial_links:
        for line in serial.directions:
            for _, text in delay_problems("delay_ns", line.delay_ns):
                yield _placed(model, (serial.name, line.name), ("delay",), text)


def _placed(model: ScenarioFile, place: tuple[str, str], key: KeyPath, text: str) -> Problem:
    """A problem of a direction at the scenario's own key, or where it has none, at the parameters of the topology."""
    given = model.links.get(place[0], {}).get(place[1]) or Direction()
    if getattr(given, str(key[0])):
        return ("links", *place, *key), text
    return ("parameters",), f"{'.'.join(place)}: {text}"


def _serial_keys(given: Direction) -> Iterator[Problem]:
    """A serial line has no packets before PPP finds them: only its rate, delay, bit errors and outages can be said."""
    for key in ("overhead", "queue"):
        if getattr(given, key) is not None:
            found = f"found {key} on a serial link"
            yield (key,), f"{found}; expected rate, delay and errors only. Use the topology's parameters."
    if given.delay_table:
        yield ("delay_table",), "found delays in steps on a serial link; expected one delay. Use delay."
    if given.errors is not None and MODELS[given.errors.model].planned.NAMES_PACKETS:
        found = f"found {given.errors.model} on a serial link, which knows bytes only"
        yield ("errors", "model"), f"{found}; expected bit errors. Choose another model."
    if given.errors is not None and given.errors.drop_packets:
        found = "found a drop list on a serial link, which knows bytes only"
        yield ("errors", "drop_packets"), f"{found}; expected bit errors or outages. Use a vector file."


def _errors(given: Direction, folder: Path) -> Iterator[Problem]:
    if given.errors is not None:
        for name in MODELS:
            yield from ((("errors", *key), text) for key, text in given.errors.of(name).problems(folder))


def with_overrides(network: NetworkPlan, scenario: ScenarioFile) -> NetworkPlan:
    """The network with what the scenario says of every direction that it names, but for what goes wrong there."""

    def packets(link: links.Link) -> links.Link:
        first, second = link.directions
        both = _direction(link.name, first, scenario), _direction(link.name, second, scenario)
        return replace(link, directions=both)

    def serial(link: SerialLink) -> SerialLink:
        first, second = link.directions
        return replace(link, directions=(_serial(link.name, first, scenario), _serial(link.name, second, scenario)))

    return replace(
        network,
        links=tuple(packets(link) for link in network.links),
        serial_links=tuple(serial(link) for link in network.serial_links),
    )


def _serial(link: str, planned: SerialDirection, scenario: ScenarioFile) -> SerialDirection:
    given = scenario.links.get(link, {}).get(planned.name)
    if given is None:
        return planned
    return replace(
        planned,
        rate_bps=given.rate if given.rate is not None else planned.rate_bps,
        delay_ns=given.delay if given.delay is not None else planned.delay_ns,
    )


def _direction(link: str, planned: links.Direction, scenario: ScenarioFile) -> links.Direction:
    given = scenario.links.get(link, {}).get(planned.name)
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
        queue=planned.queue if given.queue is None else plan_queue(planned.queue or without_settings(), given.queue),
    )


def _delay_table(given: Direction, delay_ns: int) -> tuple[tuple[int, int], ...]:
    steps = tuple((step.at, step.delay) for step in given.delay_table or ())
    return steps if steps[0][0] == 0 else ((0, delay_ns), *steps)


def plan_queue(planned: PlannedQueue, given: Queue) -> PlannedQueue:
    """The topology's queue with the scenario's words on top, and every number that its discipline needs."""
    limits = limit_of(given.limit) if given.limit is not None else (planned.limit_bytes, planned.limit_packets)
    queue = replace(
        planned,
        discipline=given.discipline or planned.discipline,
        limit_bytes=limits[0],
        limit_packets=limits[1],
        ecn=given.ecn if given.ecn is not None else planned.ecn,
    )
    return replace(queue, settings=given.of(queue.discipline).settings(queue))
