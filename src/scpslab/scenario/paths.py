"""Paths into a scenario's data, such as `links.hop.*.errors.ber` or `workloads.transfer.size`: how sweeps, variants and --set name a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scpslab.documents.places import one_of
from scpslab.documents.yaml_lines import KeyPath, dotted, read_value
from scpslab.topology.description import Network

OVERRIDE = re.compile(r"([A-Za-z*][\w.*-]*)=(.+)", re.DOTALL)


class PathError(ValueError):
    """A path that leads nowhere; the message says where it ends."""


def set_value(data: dict[str, Any], path: str, value: Any, network: Network) -> list[KeyPath]:
    """Puts `value` at every place the path names and returns the key paths that changed. `*` means every direction, link or host.

    Raises:
        PathError: a list has no item of that name, or the path goes through a plain value.
    """
    parts = tuple(path.split("."))
    if not all(parts):
        raise PathError(f'found the path "{path}"; expected words with single dots between them')
    return _set(data, parts, (), value, network)


def _set(here: Any, rest: tuple[str, ...], done: KeyPath, value: Any, network: Network) -> list[KeyPath]:
    part, left = rest[0], rest[1:]
    changed: list[KeyPath] = []
    if isinstance(here, dict):
        for key in _meant(part, done, here, network):
            if not left:
                here[key] = value
                changed.append((*done, key))
                continue
            if here.get(key) is None:
                here[key] = {}
                changed.append((*done, key))
            changed += _set(here[key], left, (*done, key), value, network)
    elif isinstance(here, list):
        for index, item in _items(here, part, done):
            if not left:
                raise PathError(f'found the end after "{part}"; expected a key of it, such as {dotted(done)}.{part}.{next(iter(item), "size")}')
            changed += _set(item, left, (*done, index), value, network)
    else:
        raise PathError(f'found "{part}" after {dotted(done)}, which is a plain value; expected no further key')
    return changed


def _items(here: list[Any], part: str, done: KeyPath) -> list[tuple[int, dict[str, Any]]]:
    named = [(index, item, str(item.get("name", item.get("kind", "")))) for index, item in enumerate(here) if isinstance(item, dict)]
    found = [(index, item) for index, item, name in named if part in ("*", name)]
    if not found:
        raise PathError(f'found "{part}" after {dotted(done)}; {one_of(part, [name for _, _, name in named])}'.removesuffix("."))
    return found


def _meant(part: str, done: KeyPath, here: Mapping[str, Any], network: Network) -> list[str]:
    """The keys that a part of a path stands for: itself, or all that `*` means there."""
    if part != "*":
        return [part]
    if done == ("hosts",):
        # Hosts that the scenario does not name stay as they are: a monitor is no party of the experiment.
        return list(here)
    if done == ("links",):
        return [link.name for link in network.links if link.via or link.serial]
    if len(done) == 2 and done[0] == "links":
        return [direction.name for link in network.links if link.name == done[1] for direction in (link.forward, link.reverse)]
    raise PathError(f'found "*" after {dotted(done) or "nothing"}; expected it for hosts, links, directions, workloads or probes')


def read_override(text: str) -> tuple[str, Any]:
    """`key=value` of a --set option; the value is read as in a scenario file.

    Raises:
        PathError: not of that form.
    """
    match = OVERRIDE.fullmatch(text)
    if not match:
        raise PathError(f'found "{text}"; expected KEY=VALUE, such as workloads.transfer.size="100 kB"')
    try:
        return match[1], read_value(match[2])
    except ValueError as error:
        raise PathError(f'found "{match[2]}" ({error}); expected a value as in a scenario file') from error
