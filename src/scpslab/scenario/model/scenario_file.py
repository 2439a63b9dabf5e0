"""The scenario file as a whole."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from scpslab.core import units
from scpslab.documents.parts import Part, Version, key
from scpslab.documents.quantities import AxisValue, Name, PositiveDuration, Seed, Size, TopologyName
from scpslab.scenario.model.links import Direction
from scpslab.scenario.model.script import Step
from scpslab.scenario.model.sweep import Axis
from scpslab.scenario.probes import Probe
from scpslab.scenario.services import AnyService
from scpslab.scenario.stacks import DEFAULT, STACKS, Host, HostPart
from scpslab.scenario.workloads import Workload


class Limits(Part):
    """The limits of a cell: time after which a hanging cell is ended, and memory of its guest."""

    virtual: PositiveDuration = key(
        "3600 s", says="Longest lab time; a cell that needs more has failed.", example="3600 s"
    )
    wall: PositiveDuration = key("600 s", says="Longest wall time; a cell that needs more has failed.", example="600 s")
    memory: Size = key("512 MiB", says="Memory of the guest, captures included.", example="512 MiB")
    lateness: PositiveDuration | None = key(
        None,
        says="In engines with real time: a cell has failed if more than 1 % of its clock ticks come later than "
        "this. Default: 5 ms.",
        example="20 ms",
    )


class RouterSettings(Part):
    """A router of SCPS-NP. The queues are those of each of its interfaces: 16 levels of precedence, the highest served
    first.
    """

    queue_limit: int = key(
        100, says="Packets that are too many for an interface's queues.", least=1, most=100_000, example=100
    )
    queue_purge: int = key(20, says="Packets that are discarded then.", least=1, most=100_000, example=20)
    discard: Literal["lowest-oldest", "lowest-newest", "newest"] = key(
        "lowest-oldest",
        says="Which ones: of the lowest precedence the oldest or the newest, or the newest of all.",
        example="newest",
    )
    default_precedence: int = key(0, says="Precedence of packets that name none.", least=0, most=15, example=5)
    sp: dict[Name, Literal["required", "accepted", "none"]] = key(
        {},
        says="From interfaces (`lan`, or a serial link) to what they carry of SCPS-SP: "
        "nothing that it does not protect, everything, or nothing that it "
        "protects. Default: accepted.",
        example={"modem": "required"},
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.queue_purge > self.queue_limit:
            raise ValueError(
                f"found queue_purge {self.queue_purge} above queue_limit {self.queue_limit}; expected at most the limit"
            )
        return self


class Check(Part):
    """A bound for a metric of results.csv in every cell; `scpslab run` names the cells that violate it, and exits with
    1.
    """

    metric: str = key(says="A column of results.csv.", example="utilization")
    of: Name | None = key(None, says="The workload, if several have the metric.", example="transfer")
    at_least: float | str | None = key(
        None, says="Lower bound: a number in the column's unit, or a quantity with its unit.", example=0.9
    )
    at_most: float | str | None = key(
        None, says="Upper bound: a number in the column's unit, or a quantity with its unit.", example="30 s"
    )

    @model_validator(mode="after")
    def _has_bound(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("found no bound; expected at_least, at_most or both")
        for bound in (self.at_least, self.at_most):
            if isinstance(bound, str) and not any(_reads(kind, bound) for kind in units.KINDS):
                raise ValueError(
                    f'found the bound "{bound}"; expected a number, or a quantity such as '
                    f"{', '.join(units.EXAMPLES.values())}"
                )
        return self


def _reads(kind: str, text: str) -> bool:
    try:
        units.parse(kind, text)
    except units.UnitError:
        return False
    return True


class Variant(Part):
    """A named version of a scenario with fewer cells or other values, chosen as SCENARIO:VARIANT."""

    title: str | None = key(None, says="Title. Default: unchanged.", example="The same in a minute")
    set: dict[str, Any] = key(
        {}, says="From each path to its value, as with --set.", example={"workloads.transfer.size": "100 kB"}
    )
    sweep: dict[str, Annotated[tuple[AxisValue, ...], Field(min_length=1)]] = key(
        {}, says="From each axis to the values or case labels that it keeps.", example={"ber": [0, 1e-5]}
    )
    repeats: int | None = key(None, says="Repeats. Default: unchanged.", least=1, most=10_000, example=2)
    evidence: bool = key(
        False,
        says="Whether claims may use its cells: true if the variant runs under the paper's conditions, only with "
        "fewer cells.",
        example=True,
    )


class ScenarioFile(Part):
    """An experiment: a topology, its hosts and links, workloads, probes, and a sweep."""

    kind: Literal["scenario"] = key(says="The kind of file.", example="scenario")
    version: Version = key(says="Version of the format.", example=1)
    title: Annotated[str, Field(min_length=1)] = key(says="One line.", example="Corruption at 2 Mbit/s")
    source: str = key(
        "", says="The source of the experiment, such as a paper's figure.", example="MITRE FY97 report, Fig 4"
    )
    description: str = key(
        "",
        says="The question of the experiment, and the expected answer.",
        example="4,000,000 bytes over the geostationary hop.",
    )
    topology: TopologyName = key(
        says="A topology of the project (scpslab list --what topologies), or the path of a Python file of your own, "
        "from the scenario's folder.",
        example="./mine.py",
    )
    parameters: dict[str, AxisValue] = key(
        {}, says="Parameters of the topology; the others keep their defaults.", example={"data_rate": "9600 bit/s"}
    )
    links: dict[str, dict[str, Direction]] = key(
        {},
        says="From each link and direction to the overrides of the topology.",
        example={"hop": {"data": {"rate": "1 Mbit/s"}}},
    )
    routes: dict[str, dict[str, str]] | None = key(
        None,
        says="From each host or router to its routes, which replace those of the topology: "
        "from a destination (a node, NODE.LINK, a prefix, default) to "
        "the link that packets take, or to the neighbour that gets them ([paths](paths.md)).",
        example={"home": {"server": "phone"}},
    )
    hosts: dict[str, Host] = key(
        {},
        says="From each host to its stack and settings. Default: a kernel host with the preset modern.",
        example={"ws1": {"preset": "fy97-reno"}},
    )
    routers: dict[str, RouterSettings] = key(
        {},
        says="From each router of SCPS-NP to its settings. Default: those of the reference implementation.",
        example={"ws5": {"queue_limit": 50}},
    )
    services: tuple[AnyService, ...] = key(
        (),
        says="Daemons on nodes. They start before the epoch in this order, each when the one before is ready, and "
        "run until the cell ends.",
        example=[
            {
                "kind": "command",
                "name": "web",
                "node": "ws2",
                "command": "python3 -m http.server 8080",
                "ready_port": 8080,
            }
        ],
    )
    workloads: tuple[Workload, ...] = key(
        (),
        says="Sources of traffic; at least one, unless there is a script.",
        example=[{"kind": "bulk", "name": "transfer", "from": "ws1", "to": "ws2", "size": "4 MB"}],
    )
    probes: tuple[Probe, ...] = key((), says="What observes.", example=[{"kind": "capture", "node": "ws2"}])
    script: tuple[Step, ...] | None = key(
        None,
        says="Steps while the cell runs: changes of links, and commands in nodes.",
        example=[{"do": "link", "at": "5 s", "link": "hop", "ber": 1e-5}],
    )
    sweep: dict[Name, Axis] = key(
        {},
        says="Axes; every combination of their values is a point.",
        example={"ber": {"set": ["links.hop.*.errors.ber"], "values": [0, 1e-5]}},
    )
    skip: tuple[dict[str, AxisValue], ...] = key(
        (), says="Combinations of axis values that do not run.", example=[{"errors": "clustered", "ber": 0}]
    )
    repeats: int = key(
        1, says="Repeats of every point, each with random streams of its own.", least=1, most=10_000, example=5
    )
    seed: Seed = key(1, says="Root of all random streams.", example=1997)
    limits: Limits = key(Limits(), says="Limits of time and memory.", example={"virtual": "4000 s", "wall": "600 s"})
    containers: Literal["process", "docker"] = key(
        "process",
        says="Kind of nodes: process trees with namespaces of their own, or Docker containers of images/ (slower to "
        "start).",
        example="docker",
    )
    checks: tuple[Check, ...] = key(
        (), says="Bounds that the results must keep.", example=[{"metric": "utilization", "at_least": 0.5}]
    )
    variants: dict[Name, Variant] = key(
        {},
        says="Named versions with fewer cells or other values, chosen as SCENARIO:VARIANT.",
        example={"demo": {"repeats": 2}},
    )

    def host(self, name: str) -> HostPart:
        """What carries transport on a host; one that is not named is a modern kernel."""
        return self.hosts.get(name) or STACKS[DEFAULT].model_validate({})

    def router(self, name: str) -> RouterSettings:
        """The settings of a router of SCPS-NP."""
        return self.routers.get(name) or RouterSettings()
