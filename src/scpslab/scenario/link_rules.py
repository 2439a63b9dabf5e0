"""What must hold of the links of a scenario: directions that exist, quantities that they can have, what error models and disciplines ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scpslab.core import units
from scpslab.core.choices import one_of
from scpslab.documents.quantities import PositiveDuration, limit_of
from scpslab.documents.yaml_lines import KeyPath
from scpslab.plan import disciplines
from scpslab.plan.topology import description as topology
from scpslab.scenario.disciplines import DISCIPLINES, MARKING
from scpslab.scenario.errors import MODELS
from scpslab.scenario.model import Direction, Queue, ScenarioFile

Problem = tuple[KeyPath, str]
LONGEST_DELAY_NS = 2**31 * 1000  # netem keeps it in 64 bits; half an hour is beyond Mars
LARGEST_OVERHEAD_BYTES = 65_535  # RFC 791 §3.1, Total Length
SMALLEST_PACKET_BYTES = 28  # IP and UDP (RFC 791 §3.1, RFC 768)


def problems(model: ScenarioFile, network: topology.Network, folder: Path) -> Iterator[Problem]:
    """Everything that does not fit; `folder` is where data files are looked for."""
    links = {link.name: link for link in network.links}
    yield from _described(model, network)
    for name, directions in model.links.items():
        if name not in links:
            yield ("links", name), f'found "{name}"; {one_of(name, links)}'
            continue
        known = {direction.name: direction for direction in (links[name].forward, links[name].reverse)}
        for direction, given in directions.items():
            at: KeyPath = ("links", name, direction)
            if direction not in known:
                yield at, f'found "{direction}"; {one_of(direction, known)}'
                continue
            rules = _serial_direction(given) if links[name].serial else _direction(given, known[direction], links[name].via is not None)
            for key, text in [*rules, *_errors(given, folder)]:
                yield (*at, *key), text


def _described(model: ScenarioFile, network: topology.Network) -> Iterator[Problem]:
    """What does not fit of the topology's own quantities, where the scenario has none in their place."""
    for link in network.links:
        for described in (link.forward, link.reverse):
            given = model.links.get(link.name, {}).get(described.name) or Direction()
            if given.delay is None and (text := too_long(described.delay_ns)):
                yield ("parameters",), f"{link.name}.{described.name}: {text}"
            if link.serial is not None:
                continue
            if given.queue is None and (text := _no_room(described.queue.limit_bytes if described.queue else None)):
                yield ("parameters",), f"{link.name}.{described.name}: {text}"
            if given.rate is None and described.rate_bps is not None and described.rate_bps % 8:
                yield ("parameters",), f"found {described.rate_bps} bit/s on {link.name}; expected a multiple of 8 bit/s. Change it by a few bit/s."


def too_long(delay_ns: int) -> str:
    """What is wrong with a delay, "" if nothing is."""
    if delay_ns <= LONGEST_DELAY_NS:
        return ""
    return f"found a delay of {units.text('duration', delay_ns)}; expected at most {units.text('duration', LONGEST_DELAY_NS)}. Correct the value."


def _no_room(limit_bytes: int | None) -> str:
    """What is wrong with a queue's limit, "" if nothing is."""
    if limit_bytes is None or limit_bytes >= SMALLEST_PACKET_BYTES:
        return ""
    return f"found a queue of {limit_bytes} B, which drops every packet; expected at least {SMALLEST_PACKET_BYTES} B. Raise the limit."


def _serial_direction(given: Direction) -> Iterator[Problem]:
    """A serial line has no packets before PPP finds them: only its rate, delay, bit errors and outages can be said."""
    for key in ("overhead", "queue"):
        if getattr(given, key) is not None:
            yield (key,), f"found {key} on a serial link; expected rate, delay and errors only. Use the topology's parameters."
    if given.delay is not None and (text := too_long(given.delay)):
        yield ("delay",), text
    if given.delay_table:
        yield ("delay_table",), "found delays in steps on a serial link; expected one delay. Use delay."
    if given.errors is not None and MODELS[given.errors.model].planned.NAMES_PACKETS:
        yield ("errors", "model"), f"found {given.errors.model} on a serial link, which knows bytes only; expected bit errors. Choose another model."
    if given.errors is not None and given.errors.drop_packets:
        yield ("errors", "drop_packets"), "found a drop list on a serial link, which knows bytes only; expected bit errors or outages. Use a vector file."


def _errors(given: Direction, folder: Path) -> Iterator[Problem]:
    if given.errors is not None:
        for name, model in MODELS.items():
            yield from ((("errors", *key), text) for key, text in model.problems(given.errors.of(name), folder))


def _direction(given: Direction, described: topology.Direction, has_relay: bool) -> Iterator[Problem]:
    if not has_relay and given.delay is not None:
        yield ("delay",), "found a delay on a link without a relay; expected a link that goes through a switch. Put the delay on such a link."
    if not has_relay and given.delay_table:
        yield ("delay_table",), "found delays on a link without a relay; expected a link that goes through a switch. Put them on such a link."
    if given.overhead is not None and given.overhead > LARGEST_OVERHEAD_BYTES:
        yield ("overhead",), f'found "{given.overhead.text}"; expected at most {LARGEST_OVERHEAD_BYTES} B, the length of the largest packet. Correct the value.'
    if given.jitter is not None:
        yield from _jitter(given.jitter, given, described, has_relay)
    times = [step.at for step in given.delay_table]
    if times != sorted(set(times)):
        yield ("delay_table",), "found steps out of order; expected times that ascend. Sort them."
    delays = [delay for delay in (given.delay, *(step.delay for step in given.delay_table)) if delay is not None]
    if text := too_long(max(delays, default=0)):
        yield ("delay",), text
    if given.rate is not None and given.rate % 8:
        yield ("rate",), f'found "{given.rate.text}"; expected a multiple of 8 bit/s. Change it by a few bit/s.'
    limited = given.rate is not None or described.rate_bps is not None
    if given.queue is not None and not limited:
        yield ("queue",), "found a queue on a direction without a rate; expected a rate too. Add rate."
    if given.rate is not None and described.queue is None and (given.queue is None or given.queue.limit is None):
        yield ("rate",), "found a rate on a direction that has no queue yet; expected the queue's limit too. Add queue: {limit: …}."
    yield from _queue(given, described)


def _jitter(jitter: PositiveDuration, given: Direction, described: topology.Direction, has_relay: bool) -> Iterator[Problem]:
    least = min((delay for delay in (*(step.delay for step in given.delay_table), given.delay) if delay is not None), default=described.delay_ns)
    if not has_relay:
        yield ("jitter",), "found jitter on a link without a relay; expected a link that goes through a switch. Put it on such a link."
    elif jitter > least:
        yield ("jitter",), f'found "{jitter.text}"; expected at most the delay of {units.text("duration", least)}. Correct the value.'
    elif not disciplines.DISCIPLINES[_discipline(given, described)].SERIALISES:
        yield ("jitter",), "found jitter behind a managed queue, whose packets stage 2 keeps in order; expected a drop-tail queue. Remove one of them."


def _queue(given: Direction, described: topology.Direction) -> Iterator[Problem]:
    queue = given.queue
    if queue is None:
        return
    name = _discipline(given, described)
    if queue.limit is not None and (text := _no_room(limit_of(queue.limit)[0])):
        yield ("queue", "limit"), text
    if queue.ecn and not DISCIPLINES[name].marks:
        yield ("queue", "ecn"), f"found ECN marking on a queue of discipline {name}; expected discipline {_either(MARKING)}. Choose one of these."
    for key, text in DISCIPLINES[name].problems(queue.of(name), _room_bytes(queue, described)):
        yield ("queue", *key), text


def _room_bytes(queue: Queue, described: topology.Direction) -> int | None:
    if queue.limit is not None:
        limits = limit_of(queue.limit)
    elif described.queue is not None:
        limits = described.queue.limit_bytes, described.queue.limit_packets
    else:
        return None
    return disciplines.without_settings(limit_bytes=limits[0], limit_packets=limits[1]).room_bytes


def _discipline(given: Direction, described: topology.Direction) -> str:
    return str((given.queue and given.queue.discipline) or (described.queue.discipline if described.queue else disciplines.DEFAULT))


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def serialises(model: ScenarioFile, link: topology.Link, direction: topology.Direction) -> bool:
    """Whether a direction has a serialiser whose rate can change, with the queue that the scenario gives it."""
    given = model.links.get(link.name, {}).get(direction.name)
    rated = direction.rate_bps is not None or (given is not None and given.rate is not None)
    return rated and disciplines.DISCIPLINES[_discipline(given or Direction(), direction)].SERIALISES
