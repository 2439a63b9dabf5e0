"""What a scenario file may say: strict and frozen, unknown keys refused, units mandatory.

Begin with ScenarioFile, at the end.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from scpslab.core import units
from scpslab.core.problems import UnfitError
from scpslab.documents.document import as_tuples
from scpslab.documents.parts import OneOf, Part, PartOfKinds, Version, key
from scpslab.documents.quantities import (
    AxisValue,
    Count,
    Duration,
    Name,
    PositiveDuration,
    Precedence,
    Probability,
    QueueLimit,
    Rate,
    Seconds,
    Seed,
    Size,
    SizeOrZero,
    TopologyName,
)
from scpslab.documents.yaml_lines import Form
from scpslab.plan import error_models
from scpslab.plan.cell import LatePackets as Late
from scpslab.plan.cell import Policer as Shaper
from scpslab.plan.disciplines import DISCIPLINES as PLANNED
from scpslab.plan.packs import MOST_PACKAGES
from scpslab.scenario.disciplines import DISCIPLINES
from scpslab.scenario.errors import MODELS, ErrorModel
from scpslab.scenario.events import Event
from scpslab.scenario.kinds import planned_from
from scpslab.scenario.packs import FolderName, PackageName
from scpslab.scenario.paths import Data
from scpslab.scenario.probes import Probe
from scpslab.scenario.profiles.planning import ProfileKeys
from scpslab.scenario.services import AnyService
from scpslab.scenario.stacks import DEFAULT, STACKS, Host, HostPart
from scpslab.scenario.workloads import Workload

FORM = Form("a scenario", "kind, topology, workloads", "docs/scenario-reference.md")
# Gaps of a vector before it repeats: at 5e-5 that is 1.3 Gbit, a hundred transfers of the report.
VECTOR_ERRORS = 65_536


class Outage(Part):
    """A period in which nothing arrives.

    Attributes:
        from_: Start, counted from the epoch.
        to: End, counted from the epoch.
    """

    from_: Duration = key(alias="from", example="10 s")
    to: Duration = key(example="12 s")

    @model_validator(mode="after")
    def _has_length(self) -> Self:
        if self.to <= self.from_:
            raise UnfitError(f'an outage from "{self.from_.text}" to "{self.to.text}"', "its end after its start")
        return self


class Errors(PartOfKinds):
    """Stage 3 of a direction: bit errors, drop lists and outages.

    Settings that the chosen model has no use for are ignored, so that a sweep can go from model to model. On a serial
    link the wrong bits are changed in the byte stream, whatever `action` says, and PPP finds them; `drop_packets` and
    packet are for links of packets.

    Attributes:
        model: The model that gives the distances between bit errors, or between lost packets (packet).
        action: drop: the frame check discards a packet with errors; flip: its bits are changed, and checksums must
            detect the change.
        drop_packets: Drop these packets of the direction, counted from 1.
        drop_min_bytes: For drop_packets and packet, count only packets of at least this size on the wire: data, not
            acknowledgements.
        outages: Periods in which nothing arrives.
    """

    KINDS: ClassVar = MODELS

    model: Annotated[str, OneOf(MODELS)] = key("independent", example="clustered")
    action: Literal["drop", "flip"] = key("drop", example="flip")
    drop_packets: tuple[Count, ...] = key((), example=[10, 11, 40])
    drop_min_bytes: SizeOrZero = key("0 B", example="500 B")
    outages: tuple[Outage, ...] = key((), example=[{"from": "10 s", "to": "12 s"}])

    @model_validator(mode="after")
    def _complete(self) -> Self:
        self.settings.check_complete()
        return self

    def at_rate(self, ber: float) -> Errors:
        """The same with independent errors at a rate."""
        said = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return Errors.model_validate(as_tuples(said | {"model": "independent", "ber": ber}))

    @property
    def settings(self) -> ErrorModel:
        """What is said of the chosen model."""
        settings: ErrorModel = self.of(self.model)
        return settings

    def plan(self, folder: Path, seed: str) -> error_models.Errors:
        """Its part of the plan; `folder` is the scenario's."""
        name = self.model if self.settings.has_errors() else error_models.NO_MODEL
        return planned_from(
            error_models.Errors,
            self,
            model=name,
            settings=self.of(name).plan(name, folder),
            seed=seed,
            vector_errors=VECTOR_ERRORS,
            drop_packets=tuple(sorted(set(self.drop_packets))),
            drop_min_bytes=self.drop_min_bytes,
            outages=tuple(sorted((outage.from_, outage.to) for outage in self.outages)),
        )


class DelayStep(Part):
    """One step of a time-varying delay.

    Attributes:
        at: Time of the step, counted from the epoch.
        delay: One-way delay from then on.
    """

    at: Duration = key(example="5 s")
    delay: Duration = key(example="300 ms")


class Queue(PartOfKinds):
    """The queue of stage 1. Missing keys keep the topology's values.

    Attributes:
        discipline: Queue discipline.
        limit: Most that may wait: bytes on the wire, packets, or bandwidth-delay products: rate of the direction times
            delay of the link, both ways, with which a cell begins.
        ecn: Mark packets instead of dropping them.
    """

    KINDS: ClassVar = DISCIPLINES

    discipline: Annotated[str, OneOf(DISCIPLINES)] | None = key(None, example="red")
    limit: QueueLimit | None = key(None, example="0.25 BDP")
    ecn: bool | None = key(None, example=True)

    @classmethod
    def said_by_kinds(cls, key: str) -> str:
        """What disciplines say of it; at `ecn`, which can mark."""
        if key == "ecn":
            return f" ({', '.join(name for name, settings in PLANNED.items() if settings.MARKS)})"
        return "".join(f"; {name}: {kind.says[key]}" for name, kind in DISCIPLINES.items() if key in kind.says)


class Policer(Part):
    """A token bucket without a queue: a packet that it has no credit for is dropped, with the cause `policed`.

    Attributes:
        rate: Rate at which credit comes, for bytes on the wire.
        burst: Most credit, at least a full packet; the bucket is full at first.
    """

    rate: Rate = key(example="10 Mbit/s")
    burst: Size = key(example="15 kB")


class LatePackets(Part):
    """Packets that are under way for longer than others, which overtake them.

    Attributes:
        packets: Numbers of the packets, counted from 1 as they leave the queue.
        by: By how much longer.
        min_bytes: Count only packets of at least this size on the wire: data, not acknowledgements.
    """

    packets: Annotated[tuple[Count, ...], Field(min_length=1)] = key(example=[10, 11])
    by: PositiveDuration = key(example="40 ms")
    min_bytes: SizeOrZero = key("0 B", example="500 B")


class Direction(Part):
    """Overrides of one direction of a link.

    Missing keys keep the topology's values. Asymmetric links have overrides for each direction.

    A serial link has `rate` (baud), `delay` and `errors`; everything else is a parameter of its topology.

    Attributes:
        rate: Rate of the serialiser.
        overhead: Framing bytes of each packet on the wire, in addition to its IP length.
        queue: The queue before the serialiser.
        delay: One-way delay; only on links that go through a relay, and on serial links.
        delay_table: A delay that changes in steps, in ascending order of time; packets are reordered only if jitter
            asks for it.
        jitter: Jitter: the delay of each packet is drawn, up to this much less or more, so that packets overtake each
            other.
        duplicate: Probability that a delivered packet is delivered twice.
        profile: What the direction does over time (docs/profiles.md).
        policer: A policer before the queue.
        aggregate: Packets wait in the queue and leave together, at multiples of this time, counted from the epoch. It
            needs a rate and a drop-tail queue.
        late: Packets that arrive later than others.
        errors: Bit errors, drop lists and outages at the receiving end.
    """

    rate: Rate | None = key(None, example="2 Mbit/s")
    overhead: SizeOrZero | None = key(None, example="4 B")
    queue: Queue | None = key(None, example={"discipline": "red", "limit": "132.5 kB"})
    delay: Duration | None = key(None, example="265 ms")
    delay_table: Annotated[tuple[DelayStep, ...], Field(max_length=100_000)] = key(
        (), example=[{"at": "5 s", "delay": "300 ms"}]
    )
    jitter: Duration | None = key(None, example="20 ms")
    duplicate: Probability | None = key(None, example=0.01)
    profile: ProfileKeys | None = key(None, example={"file": "profiles/pass.csv"})
    policer: Policer | None = key(None, example={"rate": "10 Mbit/s", "burst": "15 kB"})
    aggregate: PositiveDuration | None = key(None, example="20 ms")
    late: LatePackets | None = key(None, example={"packets": [10], "by": "40 ms"})
    errors: Errors | None = key(None, example={"model": "independent", "ber": 1e-6})

    def shaping(self) -> dict[str, Any]:
        """Policer, aggregate and late packets, as the plan has them."""
        policer, late = self.policer, self.late
        return {
            "policer": policer and Shaper(rate_bps=policer.rate, burst_bytes=policer.burst),
            "aggregate_ns": self.aggregate,
            "late": late and Late(packets=tuple(sorted({*late.packets})), by_ns=late.by, min_bytes=late.min_bytes),
        }


class Values(Part):
    """An axis of values: each value is set at all paths.

    Attributes:
        set: Paths at which each value is set.
        values: The values.
    """

    set: Annotated[tuple[str, ...], Field(min_length=1)] = key(example=["links.hop.*.errors.ber"])
    values: Annotated[tuple[AxisValue, ...], Field(min_length=1)] = key(example=[0, 1e-6, 1e-5])


class Cases(Part):
    """An axis of named cases: each sets several paths.

    Attributes:
        cases: From each label to {path: value}.
    """

    cases: Annotated[dict[str, dict[str, Any]], Field(min_length=1)] = key(example={"bbr": {"hosts.*.preset": "bbr"}})


def _tag(value: Any) -> str:
    given = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return "of cases" if "cases" in given else "of values"


# A tag is no key, so that places in messages are those of the file.
Axis = Annotated[Annotated[Values, Tag("of values")] | Annotated[Cases, Tag("of cases")], Discriminator(_tag)]


def axis_values(axis: Values | Cases) -> tuple[AxisValue, ...]:
    """The values or case labels of an axis."""
    return tuple(axis.cases) if isinstance(axis, Cases) else axis.values


def settings_at(axis: Values | Cases, value: AxisValue) -> Data:
    """The paths that an axis sets at one of its values."""
    return dict(axis.cases[str(value)]) if isinstance(axis, Cases) else dict.fromkeys(axis.set, value)


class Limits(Part):
    """The limits of a cell: time after which a hanging cell is ended, and memory of its guest.

    Attributes:
        lab_time: Longest lab time, in whole seconds, counted from when probes and services begin to start, before the
            epoch; a cell that needs more has failed.
        wall_time: Longest wall time, in whole seconds; a cell that needs more has failed.
        memory: Memory of the guest, captures included.
        lateness: In engines with real time: a cell has failed if more than 1 % of its clock ticks come later than this.
            Default: 5 ms.
    """

    lab_time: Seconds = key("3600 s", example="3600 s")
    wall_time: Seconds = key("600 s", example="600 s")
    memory: Size = key("512 MiB", example="512 MiB")
    lateness: PositiveDuration | None = key(None, example="20 ms")


class RouterSettings(Part):
    """A router of SCPS-NP. The queues are those of each of its interfaces: 16 levels of precedence, the highest served
    first.

    Attributes:
        queue_limit: Packets that are too many for an interface's queues.
        queue_purge: Packets that are discarded then.
        discard: Which ones: of the lowest precedence the oldest or the newest, or the newest of all.
        default_precedence: Precedence of packets that name none.
        sp: From interfaces (`lan`, or a serial link) to what they carry of SCPS-SP: nothing that it does not protect,
            everything, or nothing that it protects. Default: accepted.
    """

    queue_limit: int = key(100, least=1, most=100_000, example=100)
    queue_purge: int = key(20, least=1, most=100_000, example=20)
    discard: Literal["lowest-oldest", "lowest-newest", "newest"] = key("lowest-oldest", example="newest")
    default_precedence: Precedence = key(0, example=5)
    sp: dict[Name, Literal["required", "accepted", "none"]] = key({}, example={"modem": "required"})

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.queue_purge >= self.queue_limit:
            raise UnfitError(
                f"queue_purge {self.queue_purge} and queue_limit {self.queue_limit}", "less than the limit"
            )
        return self


class Check(Part):
    """A bound for a metric of results.csv in every cell; `scpslab run` names the cells that violate it, and exits with
    1.

    Attributes:
        metric: A column of results.csv.
        of: The workload, if several have the metric.
        at_least: Lower bound: a number in the column's unit, or a quantity with its unit.
        at_most: Upper bound: a number in the column's unit, or a quantity with its unit.
    """

    metric: str = key(example="utilization")
    of: Name | None = key(None, example="transfer")
    at_least: float | str | None = key(None, example=0.9)
    at_most: float | str | None = key(None, example="30 s")

    @model_validator(mode="after")
    def _has_bound(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise UnfitError("no bound", "at_least, at_most or both")
        for bound in (self.at_least, self.at_most):
            if isinstance(bound, str) and not any(_reads(kind, bound) for kind in units.KINDS):
                raise UnfitError(
                    f'the bound "{bound}"', f"a number, or a quantity such as {', '.join(units.EXAMPLES.values())}"
                )
        return self


def _reads(kind: str, text: str) -> bool:
    try:
        units.parse(kind, text)
    except units.UnitError:
        return False
    return True


class Variant(Part):
    """A named version of a scenario with fewer cells or other values, chosen as SCENARIO:VARIANT.

    Attributes:
        title: Title. Default: that of the file, and the variant's name.
        set: From each path to its value, as with --set.
        sweep: From each axis to the values or case labels that it keeps.
        repeats: Repeats. Default: unchanged.
        evidence: Whether claims may use its cells: true if the variant runs under the paper's conditions, only with
            fewer cells.
    """

    title: str | None = key(None, example="The same in a minute")
    set: dict[str, Any] = key({}, example={"workloads.transfer.size": "100 kB"})
    sweep: dict[str, Annotated[tuple[AxisValue, ...], Field(min_length=1)]] = key({}, example={"ber": [0, 1e-5]})
    repeats: int | None = key(None, least=1, most=10_000, example=2)
    evidence: bool = key(False, example=True)


@cache
def _default_host() -> HostPart:
    return STACKS[DEFAULT].model_validate({})


class ScenarioFile(Part):
    """An experiment: a topology, its hosts and links, workloads, probes, and a sweep.

    Attributes:
        kind: The kind of file.
        version: Version of the format.
        title: One line. Default: the file's name.
        source: The source of the experiment, such as a paper's figure.
        description: The question of the experiment, and the expected answer.
        topology: A topology of the project (scpslab list topologies), or the path of a Python file of your own, from
            the scenario's folder.
        parameters: Parameters of the topology; the others keep their defaults.
        links: From each link and direction to the overrides of the topology.
        addresses: Family of all addresses. With ipv6 each address of the topology is the last four bytes of one in
            fd00::/96, and routes still name it as in IPv4; SCPS, gateways and serial links need ipv4.
        routes: From each host or router to its routes, which replace those of the topology: from a destination (a node,
            NODE.LINK, a prefix, default) to the link that packets take, or to the neighbour that gets them
            ([paths](paths.md)).
        routing: contacts: where profiles take links up and down, next hops to hosts follow: the routes' own path while
            it is up, else the one with the fewest links that is ([contacts](profiles.md#routes-that-follow-contacts)).
        hosts: From each host to its stack and settings. Default: a kernel host with the preset modern.
        routers: From each router of SCPS-NP to its settings. Default: those of the reference implementation.
        services: Daemons on nodes. They start before the epoch in this order, each when the one before is ready, and
            run until the cell ends.
        workloads: Sources of traffic; at least one, unless there are events.
        probes: What observes.
        packets: Whether the lab records every packet of every link, for `scpslab packets`, and a second model of the
            links has to explain each ([plan format](plan-format.md#the-record-of-packets)). Without, nothing else
            changes.
        events: What happens while the cell runs: links change, and commands run in nodes.
        sweep: Axes; every combination of their values is a point.
        skip: Combinations of axis values that do not run.
        repeats: Repeats of every point, each with random streams of its own. Where nothing is drawn, the first serves
            all.
        seed: Root of all random streams.
        limits: Limits of time and memory.
        containers: Kind of nodes: process trees with namespaces of their own, or Docker containers of images/ (slower
            to start).
        packages: Packages that nodes have besides the guest image, with what they need: `NAME` or `NAME=VERSION` of
            Debian 13, `pypi:NAME==VERSION` (wheels), `crate:NAME@VERSION` (compiled by your cargo). `scpslab pack
            build` fetches them; so does the first run ([programs](programs.md)).
        programs: A folder beside the scenario whose files nodes have in /opt/programs: executables (also those of its
            folder bin) are commands, and Python finds modules there, such as those of `pip install --target`.
        metric: The column of results.csv that tables, comparisons, points and reports show first. Default: the first
            telling one; user_s where a gateway is in the cell.
        checks: Bounds that the results must keep.
        variants: Named versions with fewer cells or other values, chosen as SCENARIO:VARIANT.
    """

    kind: Literal["scenario"] = key(example="scenario")
    version: Version = key(example=1)
    title: str = key("", example="Corruption at 2 Mbit/s")
    source: str = key("", example="MITRE FY97 report, Fig 4")
    description: str = key("", example="4,000,000 bytes over the geostationary hop.")
    topology: TopologyName = key(example="./mine.py")
    parameters: dict[str, AxisValue] = key({}, example={"mtu": "576 B"})
    links: dict[str, dict[str, Direction]] = key({}, example={"hop": {"forward": {"rate": "1 Mbit/s"}}})
    addresses: Literal["ipv4", "ipv6"] = key("ipv4", example="ipv6")
    routes: dict[str, dict[str, str]] | None = key(None, example={"home": {"server": "phone"}})
    routing: Literal["contacts"] | None = key(None, example="contacts")
    hosts: dict[str, Host] = key({}, example={"ws1": {"preset": "fy97-reno"}})
    routers: dict[str, RouterSettings] = key({}, example={"ws5": {"queue_limit": 50}})
    services: tuple[AnyService, ...] = key(
        (),
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
        (), example=[{"kind": "bulk", "name": "transfer", "from": "ws1", "to": "ws2", "size": "4 MB"}]
    )
    probes: tuple[Probe, ...] = key((), example=[{"kind": "capture", "node": "ws2"}])
    packets: bool = key(True, example=False)
    events: tuple[Event, ...] | None = key(None, example=[{"at": "5 s", "link": "hop", "ber": 1e-5}])
    sweep: dict[Name, Axis] = key({}, example={"ber": {"set": ["links.hop.*.errors.ber"], "values": [0, 1e-5]}})
    skip: tuple[dict[str, AxisValue], ...] = key((), example=[{"errors": "clustered", "ber": 0}])
    repeats: int = key(1, least=1, most=10_000, example=5)
    seed: Seed = key(1, example=1997)
    limits: Limits = key(Limits(), example={"lab_time": "4000 s", "wall_time": "600 s"})
    containers: Literal["process", "docker"] = key("process", example="docker")
    packages: Annotated[tuple[PackageName, ...], Field(max_length=MOST_PACKAGES)] = key(
        (), example=["ngtcp2-client", "ngtcp2-server"]
    )
    programs: FolderName | None = key(None, example="drivers")
    metric: str | None = key(None, example="user_s")
    checks: tuple[Check, ...] = key((), example=[{"metric": "utilization", "at_least": 0.5}])
    variants: dict[Name, Variant] = key({}, example={"demo": {"repeats": 2}})

    def host(self, name: str) -> HostPart:
        """What carries transport on a host; one that is not named is a modern kernel."""
        return self.hosts.get(name) or _default_host()

    def router(self, name: str) -> RouterSettings:
        """The settings of a router of SCPS-NP."""
        return self.routers.get(name) or RouterSettings()
