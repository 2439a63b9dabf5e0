"""What a run records of topologies of the user's own: their files, their parameters, and every network that its cells
use.

With the networks the plans can be made again anywhere without running the files, which may be a stranger's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError

from scpslab.core.errors import ScenarioError
from scpslab.core.folders import TOPOLOGIES as NAME
from scpslab.documents.parts import Part
from scpslab.plan import links
from scpslab.plan.serial_links import SerialDirection, SerialLink
from scpslab.plan.topology import Direction, Network, Parameter, Parameters, Queue, Serial
from scpslab.scenario.cells import Cell
from scpslab.scenario.load import Scenario
from scpslab.scenario.model import Values as AxisOfValues
from scpslab.scenario.topologies import (
    OnDisk,
    OwnTopology,
    Topologies,
    Topology,
    TopologyError,
    Values,
    is_path,
    of_the_project,
    wrong_with,
)

FORMAT: Literal[1] = 1
AGAIN = "Export the run again."
OF_QUEUES = ("limit_bytes", "limit_packets", "discipline", "ecn")


class RecordedParameter(Part):
    """A parameter as its topology declares it."""

    kind: Literal["rate", "duration", "size", "count"]
    default: int | None
    doc: str
    least: int
    most: int | None


class RecordedFile(Part):
    """A topology's file: its digest, and its parameters by name."""

    sha256: str
    parameters: dict[str, RecordedParameter]


class Description(Part):
    """A network as its topology describes it, node by node and link by link."""

    name: str
    nodes: tuple[dict[str, Any], ...]
    links: tuple[dict[str, Any], ...]
    routes: tuple[tuple[str, str, str], ...]
    roles: dict[str, str]

    def network(self) -> Network:
        """The network; ValueError, KeyError or TypeError for one that cannot be."""
        network = Network(self.name, routes=list(self.routes), roles=self.roles)
        add = {"host": network.host, "router": network.router, "scps-router": network.scps_router}
        for node in self.nodes:
            if node["kind"] == "switch":
                network.switch(node["name"], node["mirror_to"])
            else:
                add[node["kind"]](node["name"])
        for link in self.links:
            said = link | {key: _direction(link[key]) for key in ("forward", "reverse")}
            if serial := said.pop("serial"):
                lines = {key: value for key, value in said.items() if key not in ("mtu_bytes", "via")}
                network.serial_link(**lines, serial=Serial(**serial))
            else:
                network.link(**said)
        return network

    @classmethod
    def of(cls, network: Network) -> Self:
        """What is recorded of a network."""
        nodes = (
            {"name": node.name, "kind": node.kind, "mirror_to": getattr(node, "mirror_to", None)}
            for node in network.nodes
        )
        packets = ({**_link(link), "via": link.via, "serial": None} for link in network.links)
        serial = ({**_link(link), "via": None, "serial": _serial(link)} for link in network.serial_links)
        return cls(
            name=network.name,
            nodes=tuple(nodes),
            links=(*packets, *serial),
            routes=tuple(network.routes),
            roles=network.roles,
        )


def _direction(said: Mapping[str, Any]) -> Direction:
    queue = said["queue"]
    return Direction(**{**said, "queue": Queue(**queue) if queue else None})


def _link(link: links.Link | SerialLink) -> dict[str, Any]:
    (a, b), (forward, reverse) = link.ends, link.directions
    return {
        "name": link.name,
        "a": a.node,
        "b": b.node,
        "a_ip": a.ip,
        "b_ip": b.ip,
        "forward": _said(forward),
        "reverse": _said(reverse),
        "mtu_bytes": link.mtu_bytes,
    }


def _said(direction: links.Direction | SerialDirection) -> dict[str, Any]:
    of_packets = direction if isinstance(direction, links.Direction) else None
    queue = of_packets.queue if of_packets else None
    return {
        "name": direction.name,
        "rate_bps": direction.rate_bps,
        "overhead_bytes": of_packets.overhead_bytes if of_packets else 0,
        "queue": {key: getattr(queue, key) for key in OF_QUEUES} if queue else None,
        "delay_ns": direction.delay_ns,
    }


def _serial(link: SerialLink) -> dict[str, Any]:
    ppp = link.ppp
    serial = Serial(
        link.bits_per_byte,
        link.buffer_bytes,
        link.vector_bits,
        link.mtu_bytes,
        ppp.asyncmap if ppp else 0,
        ppp.header_compression if ppp else False,
        is_np=ppp is None,
    )
    return asdict(serial)


class RecordedNetwork(Part):
    """A network: the topology and the values of its parameters in base units, and what the topology described for
    them.
    """

    topology: str
    parameters: dict[str, int | None]
    network: Description


class Record(Part):
    """topologies.json of a run folder."""

    format: Literal[1]
    files: dict[str, RecordedFile]
    networks: Annotated[tuple[RecordedNetwork, ...], Field(min_length=1)]


@dataclass(frozen=True)
class OwnFiles:
    """What a run keeps of its own topologies: contents by the name within the run folder, and the new name of each that
    the scenario names.
    """

    contents: Mapping[str, bytes]
    renamed: Mapping[str, str]


NONE = OwnFiles({}, {})


def own_files(scenario: Scenario, cells: Iterable[Cell]) -> OwnFiles:
    """The files that a run of these cells keeps.

    Raises:
        ScenarioError: two topologies' files have the same name.
    """
    described = list(
        dict.fromkeys(
            (model.topology, _values_of(scenario, model)) for model in (scenario.model, *(cell.model for cell in cells))
        )
    )
    networks = [(name, dict(values)) for name, values in described if is_path(name)]
    if not networks or not isinstance(scenario.topologies, OnDisk):
        return NONE
    folder = scenario.path.parent
    files = {name: scenario.topologies.file(name, folder) for name, _ in networks}
    renamed = {name: f"./{own.path.name}" for name, own in files.items()}
    if clash := next(
        (
            name
            for name, own in files.items()
            if any(own.path.name == other.path.name and own.source != other.source for other in files.values())
        ),
        None,
    ):
        raise ScenarioError(
            f"{scenario.places.of(('topology',))}: found two files named {PurePosixPath(clash).name}; "
            "expected names that differ. Rename one."
        )
    for axis, spec in scenario.model.sweep.items():
        if (
            isinstance(spec, AxisOfValues)
            and "topology" in spec.set
            and any(renamed.get(str(value), value) != value for value in spec.values)
        ):
            raise ScenarioError(
                f"{scenario.places.of(('sweep', axis))}: found paths as values; "
                "expected files beside the scenario, or cases. Use cases."
            )
    record = {
        "format": FORMAT,
        "files": {renamed[name]: {"sha256": own.sha256, "parameters": _parameters(own)} for name, own in files.items()},
        "networks": [
            {
                "topology": renamed[name],
                "parameters": values,
                "network": _recorded(files[name], values),
            }
            for name, values in networks
        ],
    }
    text = json.dumps(record, indent=1) + "\n"
    return OwnFiles({NAME: text.encode(), **{own.path.name: own.source for own in files.values()}}, renamed)


def _recorded(own: OwnTopology, values: Values) -> dict[str, Any]:
    return Description.of(own.describe(values)).model_dump()


def _values_of(scenario: Scenario, model: Any) -> tuple[tuple[str, int | None], ...]:
    found = scenario.topologies.find(model.topology, scenario.path.parent)
    return tuple(found.parameters.read(model.parameters).items())


def _parameters(own: OwnTopology) -> dict[str, dict[str, object]]:
    return {name: asdict(parameter) for name, parameter in own.parameters.declared.items()}


class Recorded(Topologies):
    """Topologies as a run has recorded them. No file is run."""

    def __init__(self, content: bytes) -> None:
        """Raises TopologyError for anything but a record."""
        try:
            self.record = Record.model_validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(step) for step in first["loc"])
            raise TopologyError(
                f"{NAME}: {place}: found another value; expected one as scpslab records it ({first['msg']}). {AGAIN}"
            ) from error
        self._networks: list[tuple[str, Mapping[str, int | None], Network]] = []
        for one in self.record.networks:
            try:
                network = one.network.network()
                said = wrong_with(network)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                said = f"found {type(error).__name__}: {error}; expected a network as scpslab records it. {AGAIN}"
            if said:
                raise TopologyError(f"{NAME}: the network of {one.topology}: {said}")
            self._networks.append((one.topology, one.parameters, network))

    def find(self, name: str, folder: Path) -> Topology:
        """The project's topology, or the record of one."""
        if not is_path(name):
            return of_the_project(name, folder)
        if name not in self.record.files:
            raise TopologyError(
                f'found "{name}", of which nothing is recorded; expected one of {", ".join(self.record.files)}. {AGAIN}'
            )
        declared = {
            key: Parameter(**parameter.model_dump()) for key, parameter in self.record.files[name].parameters.items()
        }

        def describe(values: Values) -> Network:
            for topology, parameters, network in self._networks:
                if (topology, parameters) == (name, values):
                    return network
            raise TopologyError(
                f'found "{name}" with parameters of which no network is recorded; expected those of the run. {AGAIN}'
            )

        return Topology(Parameters(**declared), describe)
