"""What a run records of topologies of the user's own: their files, their parameters, and every network that its cells
use.

With the networks the plans can be made again anywhere without running the files, which may be a stranger's.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from scpslab import plan as plans
from scpslab.core.errors import ScenarioError
from scpslab.core.folders import TOPOLOGIES as NAME
from scpslab.documents.parts import Part
from scpslab.plan import schema
from scpslab.plan.topology import Link, Network, OneProduct, Parameter, Parameters
from scpslab.scenario import topologies
from scpslab.scenario.cells import Cell
from scpslab.scenario.load import Scenario
from scpslab.scenario.model import Values as AxisOfValues
from scpslab.scenario.paths import Data

FORMAT: Literal[2] = 2
AGAIN = "Export the run again."


class RecordedParameter(Part):
    """A parameter as its topology declares it.

    One that 0.4.0 has `moved_to` links is said there in the run's scenario.
    """

    kind: Literal["rate", "duration", "size", "count"]
    default: int | None
    doc: str
    least: int
    most: int | None
    moved_to: tuple[str, ...] = ()


class RecordedFile(Part):
    """A topology's file: its digest, and its parameters by name."""

    sha256: str
    parameters: dict[str, RecordedParameter]


class RecordedNetwork(Part):
    """A network: the topology and the values of its parameters in base units, and what the topology described for
    them, as a plan has it; `roles` as in a `Network`; `products`: the directions with a queue of one product; `former`:
    of directions the link, the name by which random streams know them, and the name.
    """

    topology: str
    parameters: dict[str, int | None]
    network: Data
    roles: Annotated[dict[str, str], Field(default_factory=dict)]
    products: tuple[tuple[str, str], ...] = ()
    former: tuple[tuple[str, str, str], ...] = ()

    def described(self) -> Network:
        """The network.

        Raises:
            TopologyError: it cannot be.
        """
        try:
            plan = plans.read_network(self.network)
            links = [self._following(link) for link in plan.links]
            streams = {(link, name): was for link, was, name in self.former}
            network = Network(plan.topology, [*plan.nodes], links, [*plan.serial_links], [], self.roles, streams)
            said = topologies.wrong_with(network)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            said = f"found {type(error).__name__}: {error}; expected a network as scpslab records it. {AGAIN}"
        if said:
            raise topologies.TopologyError(f"{NAME}: the network of {self.topology}: {said}")
        return network

    def _following(self, link: Link) -> Link:
        first, second = (
            replace(
                one, queue=OneProduct(discipline=one.queue.discipline, ecn=one.queue.ecn, settings=one.queue.settings)
            )
            if one.queue is not None and (link.name, one.name) in self.products
            else one
            for one in link.directions
        )
        return replace(link, directions=(first, second))


class Record(Part):
    """topologies.json of a run folder."""

    format: Literal[2]
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
    models = (scenario.model, *(cell.model for cell in cells))
    described = dict.fromkeys((model.topology, _values_of(scenario, model)) for model in models)
    networks = [(name, dict(values)) for name, values in described if topologies.is_path(name)]
    if not networks or not isinstance(scenario.topologies, topologies.OnDisk):
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
        "networks": [_recorded(renamed[name], values, files[name].describe(values)) for name, values in networks],
    }
    text = json.dumps(record, indent=1) + "\n"
    return OwnFiles({NAME: text.encode(), **{own.path.name: own.source for own in files.values()}}, renamed)


def _recorded(topology: str, values: topologies.Values, network: Network) -> dict[str, object]:
    return {
        "topology": topology,
        "parameters": values,
        "network": schema.write(network.plan()),
        "roles": network.roles,
        "former": [(link, was, name) for (link, name), was in network.streams.items()],
        "products": [
            (link.name, one.name)
            for link in network.links
            for one in link.directions
            if isinstance(one.queue, OneProduct)
        ],
    }


def _values_of(scenario: Scenario, model: Any) -> tuple[tuple[str, int | None], ...]:
    found = scenario.topologies.find(model.topology, scenario.path.parent)
    return tuple(found.parameters.read(model.parameters).items())


def _parameters(own: topologies.OwnTopology) -> dict[str, dict[str, object]]:
    return {name: asdict(parameter) for name, parameter in own.parameters.declared.items()}


class Recorded(topologies.Topologies):
    """Topologies as a run has recorded them. No file is run."""

    def __init__(self, content: bytes) -> None:
        """Raises TopologyError for anything but a record."""
        try:
            self.record = Record.model_validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(step) for step in first["loc"])
            raise topologies.TopologyError(
                f"{NAME}: {place}: found another value; expected one as scpslab records it ({first['msg']}). {AGAIN}"
            ) from error
        self._networks = [(one.topology, one.parameters, one.described()) for one in self.record.networks]

    def find(self, name: str, folder: Path) -> topologies.Topology:
        """The project's topology, or the record of one."""
        if not topologies.is_path(name):
            return topologies.of_the_project(name, folder)
        if name not in self.record.files:
            raise topologies.TopologyError(
                f'found "{name}", of which nothing is recorded; expected one of {", ".join(self.record.files)}. {AGAIN}'
            )
        declared = {
            key: Parameter(**parameter.model_dump(exclude={"moved_to"}))
            for key, parameter in self.record.files[name].parameters.items()
            if not parameter.moved_to
        }

        def describe(values: topologies.Values) -> Network:
            for topology, parameters, network in self._networks:
                if (topology, parameters) == (name, values):
                    return network
            raise topologies.TopologyError(
                f'found "{name}" with parameters of which no network is recorded; expected those of the run. {AGAIN}'
            )

        return topologies.Topology(Parameters(**declared), describe)
