"""Scenarios that tests run, and what their cells left."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import dpkt

from scpslab.analysis.capture import read_packets
from scpslab.analysis.run import RunCell, open_cell
from scpslab.analysis.table import read_results
from scpslab.engine import CellRun
from scpslab.engine.base import Engine
from scpslab.measure.connections import Seen
from scpslab.plan import Plan
from scpslab.running import RunOptions, run_scenario
from scpslab.running.runner import RunResult
from scpslab.runs import CellFiles
from scpslab.runs.run import json_object
from scpslab.setup import silent

HEAD = "kind: scenario\nversion: 1\ntitle: A test's\n"
HOP = "topology: point_to_point\n"


class Cell(RunCell):
    """A cell that has ended."""

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The cell in a folder."""
        return cls(**vars(open_cell(folder)))

    @property
    def completed(self) -> Self:
        """The same cell, which was completed."""
        assert self.status == "completed", self.reason
        return self

    @property
    def virtual_s(self) -> float:
        """How long it took, in virtual time."""
        return float(json_object(CellFiles(self.folder).status_file)["virtual_s"])

    @property
    def environment(self) -> dict[str, Any]:
        """What it ran on, by node."""
        return dict(json_object(CellFiles(self.folder).environment)["nodes"])

    def line(self, record: str, **fields: Any) -> dict[str, Any]:
        """The only line of a record with these fields."""
        (found,) = self.lines(record, **fields)
        return found

    def lines(self, record: str, **fields: Any) -> list[dict[str, Any]]:
        """The lines of a record with these fields."""
        return [line for line in self.records(record) if fields.items() <= line.items()]

    def account(self, direction: str = "forward", link: str = "hop") -> dict[str, Any]:
        """The account of a direction of a link."""
        return self.line("accounting", link=link, direction=direction)

    def log(self, name: str) -> str:
        """A log."""
        return (self.folder / "logs" / f"{name}.log").read_text()

    def packets(self, probe: str) -> Seen:
        """The packets of a capture."""
        return read_packets(self.capture_file(probe))

    def options(self, probe: str, kind: int) -> list[tuple[int, int, int]]:
        """A TCP option of a capture's packets that have it, as dpkt reads them: ports, and the first four octets."""
        with self.capture_file(probe).open("rb") as file:
            captured = dpkt.pcap.Reader(file)
            framed = {dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet, dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL}
            outer = framed.get(captured.datalink())
            packets = [outer(frame).data if outer else dpkt.ip.IP(frame) for _, frame in captured]
        segments = [packet.data for packet in packets if isinstance(getattr(packet, "data", None), dpkt.tcp.TCP)]
        options = ((segment, *option) for segment in segments for option in dpkt.tcp.parse_opts(segment.opts))
        return [(one.sport, one.dport, int.from_bytes(value[:4], "big")) for one, is_, value in options if is_ == kind]

    def arrival_s(self, probe: str) -> Any:
        """Times of a capture's packets since the epoch, s."""
        return (self.packets(probe).t_ns - self.epoch_realtime_ns) / 1e9


@dataclass(frozen=True)
class Ran:
    """A run that has ended, and how many cells ended how."""

    result: RunResult

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.result.folder

    @property
    def ended(self) -> tuple[int, int, int]:
        """How many cells were completed, incomplete and failed."""
        return self.result.completed, self.result.incomplete, self.result.failed

    @property
    def cells(self) -> list[Cell]:
        """The cells, by name."""
        return [Cell.of(folder) for folder in sorted((self.folder / "cells").iterdir())]

    @property
    def cell(self) -> Cell:
        """The only cell."""
        (cell,) = self.cells
        return cell

    def by(self, axis: str) -> dict[str, Cell]:
        """The cells by their value on an axis."""
        return {cell.plan.cell.axes[axis]: cell for cell in self.cells}

    @property
    def rows(self) -> tuple[dict[str, str], ...]:
        """The rows of results.csv."""
        return read_results(self.folder).rows

    @property
    def row(self) -> dict[str, str]:
        """The only row of results.csv."""
        (row,) = self.rows
        return row

    @property
    def digests(self) -> dict[str, str]:
        """Digests of every file of the cells and of results.csv."""
        return digests(self.folder, ["cells", "results.csv"])


@dataclass(frozen=True)
class Lab:
    """Runs scenarios; each run is in a folder of its own below this one."""

    folder: Path

    def __call__(self, scenario: str | Path, *overrides: str, **options: Any) -> Ran:
        """Runs a scenario by name, file, or text without a head; one cell at a time, without earlier results."""
        if "\n" in str(scenario):
            (path := self.folder / "scenario.yaml").write_text(whole(str(scenario)))
            scenario = path
        number = len(list(self.folder.glob("run-*")))
        kept = {"out": self.folder / f"run-{number}", "jobs": 1, "use_cache": False}
        return Ran(run_scenario(str(scenario), RunOptions(**(kept | options), overrides=list(overrides))))


def cases(axis: str, of: Mapping[str, str]) -> str:
    """An axis of a sweep, as YAML has it, and so the keys that each case sets."""
    return f"{axis}: {{cases: {{{', '.join(f'{name}: {keys}' for name, keys in of.items())}}}}}"


def whole(text: str) -> str:
    """A scenario's text with its head, on the network of two hosts and a hop if it names none."""
    return HEAD + ("" if "topology:" in text else HOP) + text


def run_plan(engine: Engine, plan: Plan, folder: Path) -> Cell:
    """Runs one plan."""
    engine.prepare(silent, [plan])
    engine.run(CellRun(plan, folder))
    return Cell.of(folder)


def digests(folder: Path, names: Iterable[str] = ("",)) -> dict[str, str]:
    """Digest of every file of a folder, or of some files and folders in it."""
    paths = (path for name in names for path in [folder / name, *(folder / name).rglob("*")])
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(paths)
        if path.is_file()
    }
