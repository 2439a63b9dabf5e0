"""Paths into a scenario's data, such as `links.hop.*.errors.ber` or `workloads.transfer.size`: how sweeps, variants and
--set name a value. Items of a list without names are counted from 1: `events.1.at`.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scpslab.core.choices import choice
from scpslab.core.names import node_and_link
from scpslab.core.problems import KeyPath, UnfitError, dotted
from scpslab.documents.document import Places
from scpslab.documents.yaml_lines import read_value
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.topology import Network

# The kind of workload that stands for other people's traffic: who sends it is no party of the experiment.
CROSS_TRAFFIC = "background"
# What a YAML file says, before a model has read it.
Data = dict[str, Any]
# Keys that change which cells run or what is recorded of them, but not what a cell is.
FREE = ("title", "source", "description", "repeats", "seed", "limits", "probes", "checks", "skip", "sweep")
OVERRIDE = re.compile(r"([A-Za-z*][\w.*-]*)=(.+)", re.DOTALL)


# Lists of named parts that a case, a variant or --set can leave out by the word off, which YAML 1.1 reads as false; and
# what marks such a part until then.
SECTIONS: tuple[KeyPath, ...] = (("workloads",), ("probes",), ("services",))
OFF = (False, None, "off")
OR_OFF = ', or the word "off" to leave it out'
LEFT_OUT = "(left out)"


class PathError(UnfitError):
    """A path that leads nowhere; the message says where it ends."""


def set_value(data: Data, path: str, value: Any, network: Network) -> list[KeyPath]:
    """Puts `value` at every place the path names and returns the key paths that changed.

    `*` means every direction, link or host.

    Raises:
        PathError: the path names no place: a list has no item of that name, `*` stands for nothing, or the path goes
            through a plain value.
    """
    parts = tuple(path.split("."))
    if not all(parts):
        raise PathError(f'the path "{path}"', "words with single dots between them")
    return _set(data, parts, (), value, _Stars(network, _parties(data, network)))


def mapping_at(data: Data, place: Iterable[str]) -> Data:
    """The mapping at a place, made where there is nothing.

    Where something else stands, it stays, and the mapping is in no data: whoever reads them says what is wrong.
    """
    for key in place:
        if data.get(key) is None:
            data[key] = {}
        data = data[key] if isinstance(data[key], dict) else {}
    return data


def leaves_out(place: KeyPath, value: Any) -> bool:
    """Whether a value at a place leaves a part of a list out."""
    return place[:-1] in SECTIONS and any(value is word or value == word for word in OFF if type(value) is type(word))


def without_left_out(data: Mapping[str, Any], places: Places) -> tuple[Data, Places]:
    """The data without the parts that were left out, and the places of the others, which keep their lines."""
    found = dict(data)
    for section in (str(at[0]) for at in SECTIONS):
        parts = found.get(section)
        listed = parts if isinstance(parts, list) else []
        if gone := [index for index, part in enumerate(listed) if isinstance(part, dict) and LEFT_OUT in part]:
            found[section] = [part for index, part in enumerate(listed) if index not in gone]
            places = places.without(section, gone)
    return found, places


def places_of(data: Mapping[str, Any], path: str, network: Network) -> list[KeyPath]:
    """The key paths that a path names, in data that stays as it is.

    Raises:
        PathError: it names none.
    """
    changed = set_value(copy.deepcopy(dict(data)), path, None, network)
    # Parts of the file that were not there count as changed too; the places themselves are the deepest.
    return [place for place in changed if len(place) == len(path.split("."))]


def below(place: KeyPath, value: Any) -> list[tuple[KeyPath, Any]]:
    """The plain values in a value that stands at a place, each with its own."""
    if not isinstance(value, dict) or not value:
        return [(place, value)]
    return [leaf for key, inner in value.items() for leaf in below((*place, key), inner)]


def value_at(data: Any, place: KeyPath) -> Any:
    """What stands at a place; nothing stands below a plain value."""
    for key in place:
        try:
            data = data[key]
        except (IndexError, KeyError, TypeError):
            return None
    return data


@dataclass(frozen=True)
class _Stars:
    """What `*` can stand for in a scenario's data."""

    network: Network
    hosts: list[str]

    def keys(self, done: KeyPath) -> list[str]:
        """The keys that `*` stands for after these."""
        if done == ("hosts",):
            return self.hosts
        if done == ("routers",):
            return _some([node.name for node in self.network.nodes if node.kind == "scps-router"], "*", done, [])
        links = self.network.all_links
        if done == ("links",):
            studied = [link.name for link in links if isinstance(link, SerialLink) or link.via]
            return _some(studied, "*", done, [])
        if len(done) == 2 and done[0] == "links":
            directions = [direction.name for link in links if link.name == done[1] for direction in link.directions]
            return _some(directions, str(done[1]), ("links",), [link.name for link in links])
        raise PathError(
            f'"*" after {dotted(done) or "nothing"}', "it for hosts, routers, links, directions, workloads or probes"
        )


def _parties(data: Mapping[str, Any], network: Network) -> list[str]:
    """The hosts of an experiment: all of the topology, but no bystander (monitor, source of cross traffic) unless the
    scenario says something of it.
    """
    given = data.get("hosts")
    said = set(given) if isinstance(given, dict) else set()
    workloads = data.get("workloads")
    for workload in workloads if isinstance(workloads, list) else ():
        if isinstance(workload, dict) and workload.get("kind") != CROSS_TRAFFIC:
            ends = (workload.get("from"), workload.get("to"))
            said |= {node_and_link(end)[0] for end in ends if isinstance(end, str)}
    return [
        node.name
        for node in network.nodes
        if node.kind == "host" and (node.name in said or node.name not in network.bystanders())
    ]


def _some(found: list[str], part: str, done: KeyPath, known: list[str]) -> list[str]:
    """What was found, which must be something."""
    if not found:
        raise PathError(f'"{part}" after {dotted(done)}, which matches nothing', *choice(part, known))
    return found


def _set(here: Any, rest: tuple[str, ...], done: KeyPath, value: Any, stars: _Stars) -> list[KeyPath]:
    part, left = rest[0], rest[1:]
    changed: list[KeyPath] = []
    if isinstance(here, dict):
        for key in stars.keys(done) if part == "*" else [part]:
            if not left:
                here[key] = _own(value)
                changed.append((*done, key))
                continue
            if here.get(key) is None:
                here[key] = [] if (*done, key) in SECTIONS else {}
                changed.append((*done, key))
            changed += _set(here[key], left, (*done, key), value, stars)
    elif isinstance(here, list):
        if not left and done in SECTIONS and isinstance(value, dict) and part not in ("*", *_names(here)):
            return [_added(here, part, done, value)]
        for index, item in _items(here, part, done):
            if not left and leaves_out((*done, part), value):
                item[LEFT_OUT] = True
                changed.append((*done, index))
                continue
            if not left:
                example = f"{dotted(done)}.{part}.{next(iter(item), 'size')}"
                raise PathError(
                    f'the end after "{part}"', f"a key of it, such as {example}{OR_OFF if done in SECTIONS else ''}"
                )
            changed += _set(item, left, (*done, index), value, stars)
    else:
        raise PathError(f'"{part}" after {dotted(done)}, which is a plain value', "no further key")
    return changed


def _own(value: Any) -> Any:
    """A copy that other paths may change; what cases hold as tuples are lists again."""
    if isinstance(value, dict):
        return {key: _own(inner) for key, inner in value.items()}
    return [_own(inner) for inner in value] if isinstance(value, list | tuple) else value


def _added(here: list[Any], part: str, done: KeyPath, value: Data) -> KeyPath:
    """A new part of a list, of that name."""
    if value.get("name", part) != part:
        raise PathError(f'the name "{value["name"]}" at {dotted((*done, part))}', f'"{part}", or no name')
    here.append({"name": part, **_own(value)})
    return (*done, len(here) - 1)


def _names(here: list[Any]) -> list[str]:
    return [
        str(one.get("name", one.get("kind", number))) for number, one in enumerate(here, 1) if isinstance(one, dict)
    ]


def _items(here: list[Any], part: str, done: KeyPath) -> list[tuple[int, Data]]:
    named = zip(((at, item) for at, item in enumerate(here) if isinstance(item, dict)), _names(here), strict=True)
    found = [place for place, name in named if part in ("*", name)]
    if not found:
        raise PathError(f'"{part}" after {dotted(done)}', *choice(part, _names(here)))
    return found


def changes_conditions(override: str) -> bool:
    """Whether a `KEY=VALUE` of --set sets something else than which cells run and what is recorded of them."""
    key, _, value = override.partition("=")
    section, *rest = key.strip().split(".")
    return section not in FREE or (section == "sweep" and (len(rest) != 1 or value.lstrip().startswith("{")))


def read_override(text: str) -> tuple[str, Any]:
    """`key=value` of a --set option; the value is read as in a scenario file.

    Raises:
        PathError: not of that form.
    """
    match = OVERRIDE.fullmatch(text)
    if not match:
        raise PathError(f'"{text}"', 'KEY=VALUE, such as workloads.transfer.size="100 kB"')
    try:
        return match[1], read_value(match[2])
    except UnfitError as error:
        raise PathError(f'"{match[2]}" (found {error.problem.found})', "a value as in a scenario file") from error
