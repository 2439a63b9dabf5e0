"""A run folder as it lies on disk: its manifest and its cells, read and never written.

What is missing or cannot be read is a ResultError that names the file; a cell without status.json did not end and
counts as failed.

At the end is from where an experiment is looked at: the capture that sees all packets of a host, the hop that its
throughput is compared with.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from scpslab import plan as plans
from scpslab.analysis.capture import read_packets
from scpslab.core import own_kinds
from scpslab.core.addresses import ip_of
from scpslab.core.contents import LARGEST_RECORDS, content_of
from scpslab.core.errors import ResultError, ScenarioError
from scpslab.core.kinds import Registry
from scpslab.core.problems import UnfitError
from scpslab.core.strict_json import JsonObject
from scpslab.documents.yaml_lines import Form, read_yaml
from scpslab.measure.connections import Connection, Floats, Seen, split_connections
from scpslab.measure.packets import read
from scpslab.measure.record import Record
from scpslab.measure.states import States
from scpslab.measure.states import read as read_states
from scpslab.plan import Plan, PlanError
from scpslab.plan.cell import stretches_of
from scpslab.plan.events import LinkStep
from scpslab.plan.flows import is_rerouted, ways
from scpslab.plan.links import FOR_EVER_NS, Direction
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import Hop, slowest
from scpslab.plan.probes import Observer
from scpslab.plan.profiles import Profile
from scpslab.plan.serial_links import SerialDirection
from scpslab.plan.workloads import Traffic
from scpslab.runs import AGAIN, CampaignFolder, CellFiles, RunFolder, is_campaign
from scpslab.runs.run import VECTORS, Manifest, check_format, json_object

T = TypeVar("T")
# A cell that is there counts as finished, whatever its files say.
AFRESH = f"Remove the folder of the cell. {AGAIN}"
RESOLVED_FORM = Form("the resolved scenario's", "kind and title", "docs/results.md")


class Transfer(Traffic):
    """A planned workload whose data can be followed: one with a port."""

    port: int


@dataclass(frozen=True)
class View:
    """What a place saw: packets, and their connections by the time of their first packet. `zero_ns`: the epoch among
    the packets' times.
    """

    packets: Seen
    zero_ns: int | None

    @cached_property
    def connections(self) -> list[Connection]:
        """As `split_connections` gives them."""
        return split_connections(self.packets, self.zero_ns)

    @cached_property
    def t_s(self) -> Floats:
        """The packets' times since the epoch."""
        return (self.packets.t_ns - (self.zero_ns or 0)) / 1e9

    def connection(self, workload: Transfer) -> Connection | None:
        """The TCP connection to the port of `workload` (the one with the most payload); None when it is not there."""
        end = (workload.to_ip, workload.port)
        mine = [one for one in self.connections if (one.server_ip, one.server_port) == end]
        return max(mine, key=lambda connection: int(connection.payload_bytes.sum()), default=None)


@dataclass(frozen=True)
class RunCell:
    """One cell of a run.

    `epoch_realtime_ns` is the instant that `t_s` = 0 stands for; None when the cell never got there.

    `cut_short` has a sentence for each capture that was read and ends in the middle of a packet. `views` are those in
    memory, and the record of packets; None: each is made whenever it is asked for.
    """

    folder: Path
    plan: Plan
    status: str
    reason: str
    epoch_realtime_ns: int | None
    cut_short: set[str] = field(default_factory=set, compare=False)
    views: dict[object, Any] | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """The cell's name, such as "stack=fy97-reno,ber=1e-06,r1"."""
        return self.plan.cell.id

    def table(self, profile: Profile) -> str | None:
        """The table of a profile, which is in the plan or among the files of the run; None where it is not there."""
        if profile.table is not None or profile.sha256 is None:
            return profile.table
        try:
            content = content_of(self.folder.parent.parent / VECTORS / profile.sha256)
        except OSError:
            return None
        is_it = hashlib.sha256(content).hexdigest() == profile.sha256
        return content.decode("utf-8", "replace") if is_it else None

    def records(self, name: str) -> list[JsonObject]:
        """The lines of records/<name>.jsonl; none when there is no such file.

        Raises:
            ResultError: a line is not a JSON object (a last line cut short is left out).
        """
        path, expected = CellFiles(self.folder).record(name), f"expected one JSON object a line. {AFRESH}"
        if not path.is_file():
            return []
        try:
            lines = content_of(path, LARGEST_RECORDS).decode("utf-8", "replace").split("\n")
        except OSError as error:
            raise ResultError(f"{path}: found {error.strerror}; {expected}") from error
        records: list[JsonObject] = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                fields = json.loads(line)
            except (ValueError, RecursionError) as error:
                if number == len(lines):
                    # No line feed at the end: the writer was ended in the middle of this line.
                    break
                raise ResultError(f"{path}:{number}: found no JSON ({error}); {expected}") from error
            if not isinstance(fields, dict):
                raise ResultError(f"{path}:{number}: found {type(fields).__name__}; {expected}")
            records.append(fields)
        return records

    @property
    def packets_file(self) -> Path:
        """The record of the cell's packets, whether it is there or not."""
        return CellFiles(self.folder).packets

    def capture_file(self, probe: str) -> Path:
        """The file of a capture probe, whether it is there or not."""
        return CellFiles(self.folder).capture(probe)

    @property
    def states(self) -> tuple[States, ...]:
        """The state of each connection of TCP and SCPS-TP; none where that was not recorded."""
        return self._once("states", self._read_states)

    @property
    def senders(self) -> tuple[States, ...]:
        """The states of connections over links: that of a program with the gateway of its own host is none."""
        inside = {ip for ip, *_ in self.plan.cell.own_addresses(self.plan.network)}
        return tuple(one for one in self.states if one.lost is None or ip_of(one.local) not in inside)

    def _read_states(self) -> tuple[States, ...]:
        files = CellFiles(self.folder)
        of_gateways = (read_states(files.gateway_states(one.name), one.node) for one in self.plan.cell.services)
        return tuple(chain(*map(read_states, files.states), *of_gateways))

    @property
    def record(self) -> Record | None:
        """The record of its packets; None without one."""
        return self._once("record", self._read_record)

    def view(self, node: str, *, behind_queue: bool = False) -> View | None:
        """What a node saw of the links: by the record of packets, or, at a serial line and without a record, by a
        capture that saw all packets, on the node or on the monitor of its switch; None without any.

        By the record, what it sent is seen as it left its sockets, or, `behind_queue`, its own queue, where captures
        stand.
        """
        record = self.record
        if record is not None and record.has(node):
            return self._once((node, behind_queue), lambda: View(record.seen_at(node, behind_queue=behind_queue), 0))
        return self.captured(node)

    def captured(self, node: str) -> View | None:
        """The same by a capture, which alone has the options of TCP; None without one."""
        probe = capture_near(self.plan, node)
        return self._once(probe.name, lambda: self._read_capture(probe.name)) if probe else None

    def _once(self, key: object, make: Callable[[], T]) -> T:
        if self.views is None:
            return make()
        if key not in self.views:
            self.views[key] = make()
        found: T = self.views[key]
        return found

    def _read_record(self) -> Record | None:
        if not self.packets_file.is_file():
            return None
        programs = {ip: node for ip, node, _ in self.plan.cell.own_addresses(self.plan.network)}
        return Record(read(self.packets_file), self.plan.network, programs)

    def _read_capture(self, probe: str) -> View | None:
        path = self.capture_file(probe)
        if not path.is_file():
            return None
        packets = read_packets(path)
        if packets.is_truncated:
            self.cut_short.add(cut_short(path))
        return View(packets, self.epoch_realtime_ns)


def cut_short(path: Path) -> str:
    """What is said of a capture that ends in the middle of a packet."""
    return (
        f"{path}: found a capture that ends in the middle of a packet; expected a whole one: "
        f"what follows is not counted. {AFRESH}"
    )


@dataclass(frozen=True)
class Run:
    """A run folder: the cells that are there, at least one, in the order of the sweep."""

    folder: Path
    cells: tuple[RunCell, ...]

    @property
    def id(self) -> str:
        """The folder's name: scenario and hash."""
        return self.folder.name

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        return self.cells[0].plan.cell.scenario


def manifest_of(folder: Path) -> Manifest:
    """The manifest of a run; one that says nothing where the folder has none."""
    run = RunFolder(folder)
    return run.manifest() if run.manifest_file.is_file() else Manifest()


def open_run(folder: Path) -> Run:
    """Reads the manifest and every cell's plan and status.

    Raises:
        ResultError: no run, an unreadable file, or one of another format.
    """
    return Run(folder, tuple(sorted(map(open_cell, cell_folders(folder)), key=order)))


def cell_folders(folder: Path) -> list[Path]:
    """The folders of a run's cells, at least one, in no order.

    Raises:
        ResultError: no run, or one without cells.
    """
    if is_campaign(folder):
        runs = ", ".join(run.path.name for run in CampaignFolder(folder).runs())
        advice = "Choose one of these; claims and report take campaigns too."
        raise ResultError(f"{folder}: found a campaign; expected one of its runs: {runs}. {advice}")
    run = RunFolder(folder)
    # A run that has none, or one of a newer program, is none to read.
    run.manifest()
    if not (cells := run.planned_cells()):
        raise ResultError(f"{run.cells}: found no cell with a plan.json; expected at least one. {AGAIN}")
    return [cell.path for cell in cells]


def add_kinds(run: RunFolder) -> None:
    """Lets the kinds beside the scenario of one's own run be found."""
    beside = run.beside()
    if beside != run.path and (kinds := beside / own_kinds.NAME).is_dir():
        Registry.add(kinds.resolve())


def open_cell(folder: Path) -> RunCell:
    """Reads a cell's plan and status.

    Raises:
        ResultError: one of them cannot be read.
    """
    path = CellFiles(folder).plan
    fields = json_object(path)
    check_format(path, fields.get("format", plans.FORMAT), plans.FORMAT)
    try:
        plan = plans.read(fields)
    except PlanError:
        add_kinds(RunFolder(folder.parent.parent))
        try:
            plan = plans.read(fields)
        except PlanError as error:
            raise ResultError(f"{path}: {error}. {AFRESH}") from error
    status = CellFiles(folder).status()
    return RunCell(folder, plan, status.status, status.reason, status.epoch_realtime_ns)


def order(cell: RunCell) -> tuple[object, ...]:
    """Sort key of the cells: axis by axis, numbers by size.

    The order in which cells ended must not show.
    """
    return place(cell.plan.cell.axes.values(), cell.plan.cell.repeat, cell.id)


def place(axes: Iterable[object], repeat: object, cell_id: object) -> tuple[object, ...]:
    """The same of a cell's axes, repeat and name."""
    return ([natural(str(value)) for value in axes], repeat, cell_id)


def natural(text: str) -> tuple[tuple[int, float, str], ...]:
    """Sort key of a text in which numbers (also 1e-06) stand in the order of their size."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", text)
    return tuple((1, float(part), "") if index % 2 else (0, 0.0, part) for index, part in enumerate(parts) if part)


def resolved_fields(path: Path) -> Mapping[str, object]:
    """The scenario that was run, as its folder says it; nothing where it does not.

    Raises:
        ResultError: the file cannot be read by the rules of a person's file, which know no aliases.
    """
    try:
        return read_yaml(path, RESOLVED_FORM)[0] if path.is_file() else {}
    except ScenarioError as error:
        raise ResultError(f"{error} {AGAIN}") from error


def bottleneck(plan: Plan, workload: Traffic) -> Hop | None:
    """The slowest hop on a workload's way; None when none of its hops is limited, or routes change."""
    return None if is_rerouted(plan) else slowest(ways(plan, workload)[0])


# From a profile to its table; None where that is not at hand.
Tables = Callable[[Profile], str | None]


def rates_of(
    plan: Plan, link: str, direction: Direction | SerialDirection, tables: Tables | None = None
) -> tuple[tuple[int, int], ...]:
    """A direction's rates: until when each holds (ns since the epoch), and bit/s (of a serial link baud). None of it is
    known of a direction without a rate, where a profile has delivery opportunities, and without its table.
    """
    impairment = plan.cell.impairment(link, direction.name)
    profile = impairment.profile if impairment else None
    if direction.rate_bps is None:
        return ()
    if profile is not None and profile.paces and isinstance(direction, Direction):
        text = tables(profile) if tables else profile.table
        return () if text is None else _of_table(text, profile, direction)
    changed = stretches_of(plan.cell, link, direction) if isinstance(direction, Direction) else ()
    return changed or ((FOR_EVER_NS, direction.rate_bps),)


def _of_table(text: str, profile: Profile, direction: Direction) -> tuple[tuple[int, int], ...]:
    from scpslab.scenario.profiles.planning import of_text, pairs_of  # noqa: PLC0415  # few cells have one

    try:
        said = pairs_of(of_text(text, "profile", profile.repeat_ns), direction, profile)
    except UnfitError:
        return ()
    return tuple(said[".rates"]) if not said[".chances"] else ()


def steady_bps(plan: Plan, hop: Hop | None) -> int | None:
    """A hop's rate where it is known and stays what it is."""
    rates = rates_of(plan, hop.link.name, hop.direction) if hop else ()
    return rates[0][1] if len(rates) == 1 else None


def bottleneck_bps(
    plan: Plan, workload: Traffic, span_s: tuple[float, float] | None = None, tables: Tables | None = None
) -> float | None:
    """The rate of the slowest hop on a workload's way; None when none is limited, or one is not known.

    Where events or profiles change rates, it is the least mean rate of a hop over a span of time at the receiving host
    (seconds since the epoch); None when the span is not known.
    """
    way = ways(plan, workload)[0] if not is_rerouted(plan) else []
    limited = [place for place, hop in enumerate(way) if hop.direction.rate_bps is not None]
    rates = {place: rates_of(plan, way[place].link.name, way[place].direction, tables) for place in limited}
    if not rates or not all(rates.values()):
        return None
    if all(len(mine) == 1 for mine in rates.values()):
        return min(mine[0][1] for mine in rates.values())
    if span_s is None or span_s[1] <= span_s[0]:
        return None
    means: list[float] = []
    for place, mine in rates.items():
        later_ns = sum(after.delay_ns for after in way[place:])
        begins, end = from_ns, to_ns = [t_s * 1e9 - later_ns for t_s in span_s]
        carried = 0.0
        for until_ns, rate_bps in mine:
            end = min(max(until_ns, from_ns), to_ns)
            carried, begins = carried + rate_bps * (end - begins), end
        means.append(carried / (to_ns - from_ns))
    return min(means)


def has_one_delay(plan: Plan, workload: Traffic) -> bool:
    """Whether every packet of a workload's data is under way for as long as the others."""
    steps = (step for step in plan.cell.events if isinstance(step, LinkStep) and step.change == "delay")
    moved = {(step.link, one) for step in steps for one in step.directions}
    for hop in ways(plan, workload)[0]:
        own, impairment = hop.direction, plan.cell.impairment(*hop.place)
        if (isinstance(own, Direction) and (own.jitter_ns or own.delay_table is not None)) or hop.place in moved:
            return False
        if impairment and (impairment.late or (impairment.profile and "delay" in impairment.profile.columns)):
            return False
    return True


def capture_near(plan: Plan, node: str) -> Observer | None:
    """The capture that sees all packets of a host: on the host itself, or on the monitor of its switch."""
    mirrors = {switch.name: switch.mirror_to for switch in plan.network.nodes if isinstance(switch, Switch)}
    directions = (direction for link in plan.network.links for direction in link.directions)
    monitors = [mirrors.get(direction.to) for direction in directions if direction.from_ == node]
    whole = [probe for probe in plan.cell.probes if probe.captures_all]
    return next((probe for place in (node, *monitors) for probe in whole if probe.captured_node == place), None)
