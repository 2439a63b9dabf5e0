"""A run folder as it lies on disk: its manifest and its cells, read and never written.

What is missing or cannot be read is a ResultError that names the file; a cell without status.json did not end and
counts as failed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from scpslab import plan as plans
from scpslab.analysis.capture import read_packets
from scpslab.analysis.viewpoints import capture_near
from scpslab.core import own_kinds
from scpslab.core.contents import LARGEST_RECORDS, content_of
from scpslab.core.errors import ResultError
from scpslab.core.kinds import Registry
from scpslab.core.strict_json import JsonObject
from scpslab.measure.connections import Connection, Floats, Seen, split_connections
from scpslab.measure.packets import read
from scpslab.measure.record import Record
from scpslab.measure.states import States
from scpslab.measure.states import read as read_states
from scpslab.plan import Plan, PlanError
from scpslab.plan.workloads import Traffic
from scpslab.runs import AGAIN, CampaignFolder, CellFiles, RunFolder, is_campaign
from scpslab.runs.cell import check_format, json_object
from scpslab.runs.run import Manifest

T = TypeVar("T")
# A cell that is there counts as finished, whatever its files say.
AFRESH = f"Remove the folder of the cell. {AGAIN}"


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
        mine = [
            connection
            for connection in self.connections
            if (connection.server_ip, connection.server_port) == (workload.to_ip, workload.port)
        ]
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

    def records(self, name: str) -> list[JsonObject]:
        """The lines of records/<name>.jsonl; none when there is no such file.

        Raises:
            ResultError: a line is not a JSON object (a last line cut short is left out).
        """
        path = CellFiles(self.folder).record(name)
        if not path.is_file():
            return []
        try:
            lines = content_of(path, LARGEST_RECORDS).decode("utf-8", "replace").split("\n")
        except OSError as error:
            raise ResultError(f"{path}: found {error.strerror}; expected one JSON object a line. {AFRESH}") from error
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
                raise ResultError(
                    f"{path}:{number}: found no JSON ({error}); expected one JSON object a line. {AFRESH}"
                ) from error
            if not isinstance(fields, dict):
                raise ResultError(
                    f"{path}:{number}: found {type(fields).__name__}; expected one JSON object a line. {AFRESH}"
                )
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
        """The kernel's state of each connection of TCP; none where that was not recorded."""
        return self._once("states", lambda: read_states(CellFiles(self.folder).states))

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
        return Record(read(self.packets_file), self.plan.network) if self.packets_file.is_file() else None

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
    if not folder.is_dir():
        raise ResultError(f"{folder}: found no such folder; expected a run folder.")
    if is_campaign(folder):
        runs = ", ".join(run.path.name for run in CampaignFolder(folder).runs())
        raise ResultError(
            f"{folder}: found a campaign; expected one of its runs: {runs}. Choose one of these; "
            "claims and report take campaigns too."
        )
    run = RunFolder(folder)
    # A run that has none, or one of a newer program, is none to read.
    run.manifest()
    cells = run.planned_cells()
    if not cells:
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
