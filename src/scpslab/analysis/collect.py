"""results.csv: one row per cell, rebuilt from plans, records and captures to the same bytes every time.

Columns: scenario, topology, cell, every swept axis, stack, repeat, seed, status, unmeasured, reason, then the metrics
in the order of their families. A cell that did not complete keeps its row with empty metrics: it is counted, never
averaged in.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from scpslab.analysis.metrics.base import Family, MetricColumn, Subject, Unknown, Value
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, families, of_plans
from scpslab.analysis.output import csv_text
from scpslab.analysis.run import RunCell, cell_folders, open_cell, place
from scpslab.core.contents import digest_of, sha256_of
from scpslab.core.kinds import Registry
from scpslab.core.project import PACKAGE
from scpslab.core.scratch import replace_text
from scpslab.plan import Plan
from scpslab.plan.stacks import STACKS
from scpslab.plan.workloads import Traffic
from scpslab.runs import CellFiles, RunFolder
from scpslab.runs.store import Store

BEFORE_AXES = ("scenario", "topology", "cell")
AFTER_AXES = ("stack", "repeat", "seed", "status", "unmeasured", "reason")
# Of these, an axis may be called stack alone.
OWN_COLUMNS = frozenset((*BEFORE_AXES, *AFTER_AXES)) - {"stack"}
DEFAULT_DECIMALS = 9
# The columns of a cell by family, each with its name in the table.
Columns = tuple[tuple[tuple[str, MetricColumn], ...], ...]


@dataclass(frozen=True)
class Row:
    """What the table needs of a cell: its axes, its values by column name, and the columns of each family that it has.

    `said`: what a person should know of its captures.
    """

    axes: dict[str, Value]
    values: dict[str, Value]
    columns: Columns
    said: tuple[str, ...] = ()


def row_of(cell: RunCell) -> Row:
    """The row of a cell, derived from its files."""
    values: dict[str, Value] = {**_identity(cell), **cell.plan.cell.axes}
    if cell.status == "completed":
        values |= measure(cell)
    return Row(dict(cell.plan.cell.axes), values, _columns(cell.plan), tuple(sorted(cell.cut_short)))


def derived(folder: Path) -> Row:
    """The row of the cell in a folder."""
    return row_of(open_cell(folder))


def collect(run_dir: Path, warn: Callable[[str], None] = lambda _: None, row: Callable[[Path], Row] = derived) -> Path:
    """Writes RUN/results.csv from the cells that are there; returns its path.

    `warn` hears of captures that were cut short; `row` gives the row of the cell in a folder.

    Raises:
        ResultError: no run, or a file of it that cannot be read.
    """
    path = RunFolder(run_dir).results
    text = rows_as_csv(map(row, cell_folders(run_dir)), warn)
    # A reader never sees half a table, and an interrupted run leaves the old one.
    replace_text(path, text)
    return path


def shapes_of(plans: Iterable[Plan]) -> Collection[Plan]:
    """One plan of each shape, in their order: their cells have the same columns."""
    # Cells of one shape share their network, and differ in errors and draws only, which have no columns of their own.
    shapes: dict[tuple[int, tuple[str, ...]], Plan] = {}
    for plan in plans:
        names = [workload.name for workload in plan.cell.workloads] + [service.name for service in plan.cell.services]
        shapes.setdefault((id(plan.network), tuple(names)), plan)
    return shapes.values()


def columns_of(plans: Iterable[Plan]) -> tuple[str, ...]:
    """The metrics that the table of these cells has, in its order."""
    return tuple(_merged([_columns(plan) for plan in shapes_of(plans)]))


def columns_by_workload(plan: Plan) -> dict[tuple[str, str], str]:
    """From each workload of a cell and metric that it has to the column: the bare name where no other workload has the
    metric, else `<workload>_<metric>`.
    """
    owned = [(workload.part_of, column.name) for family, workload in pairs_of(plan) for column in family.columns]
    owners = Counter(metric for _, metric in owned)
    return {(own, metric): metric if owners[metric] == 1 else f"{own}_{metric}" for own, metric in owned}


def rows_as_csv(rows_of_cells: Iterable[Row], warn: Callable[[str], None] = lambda _: None) -> str:
    """The text of results.csv.

    Of each cell only its row is kept: plans of a hundred thousand cells would need gigabytes.
    """
    # Columns of most cells are the same, and are kept once.
    known: dict[Columns, Columns] = {}
    of_cells: list[Row] = []
    for row in rows_of_cells:
        for said in row.said:
            warn(said)
        of_cells.append(replace(row, columns=known.setdefault(row.columns, row.columns)))
    # The order in which cells ended must not show.
    of_cells.sort(key=lambda row: place(row.axes.values(), row.values["repeat"], row.values["cell"]))
    axes = list(dict.fromkeys(axis for row in of_cells for axis in row.axes))
    columns = _merged([row.columns for row in of_cells])
    header = [*BEFORE_AXES, *axes, *(name for name in AFTER_AXES if name not in axes), *columns]
    rows: list[list[object]] = [[*header]]
    rows += [[_written(row.values.get(name), columns.get(name)) for name in header] for row in of_cells]
    return csv_text(rows)


def measure(cell: RunCell) -> dict[str, Value]:
    """All metrics of one cell by column name, of packets that are read once; `unmeasured`: why others have no value."""
    cell = replace(cell, views={})
    values: dict[str, Value] = {}
    without: dict[str, list[str]] = {}

    def take(name: str, value: Value, otherwise: str) -> None:
        value = Unknown(otherwise) if value is None else value
        if isinstance(value, Unknown):
            without.setdefault(value, []).append(name)
        else:
            values[name] = value

    names = columns_by_workload(cell.plan)
    ends = {line.get("name"): line.get("reason") for line in cell.records("lab") if line.get("event") == "workload"}
    subjects = {workload.name: Subject(cell, workload) for workload in cell.plan.cell.workloads}
    for family, workload in pairs_of(cell.plan):
        found = family.measure(subjects[workload.name])
        # A semicolon parts the reasons.
        unsaid = str(ends.get(workload.name) or f"the record of {workload.name} does not say it").replace(";", ",")
        for name in (column.name for column in family.columns):
            take(names[workload.part_of, name], found.get(name), family.empty.get(name, unsaid))
    for of_plan in of_plans():
        for name, value in of_plan.measure(cell).items():
            take(name, value, "no record says it")
    return values | {"unmeasured": "; ".join(f"{', '.join(columns)}: {why}" for why, columns in without.items())}


def _identity(cell: RunCell) -> dict[str, Value]:
    key = cell.plan.cell
    return {
        "scenario": key.scenario,
        "topology": cell.plan.network.topology,
        "cell": key.id,
        "stack": _stack(cell.plan),
        "repeat": key.repeat,
        "seed": key.kernel_seed,
        "status": cell.status,
        "reason": cell.reason,
    }


def _stack(plan: Plan) -> str:
    """What carries transport at the source of the first required workload, where no axis says it: "kernel reno"."""
    workload = next((item for item in plan.cell.workloads if item.required), None)
    if workload is None:
        return ""
    node = next(node for node in plan.network.speaking if node.name == workload.from_)
    if STACKS[node.stack].runs_scps:
        # Unmodified programs have that of the host's gateway.
        program, gateway = workload.sending_program, plan.cell.gateway_of(node.name)
        settings = program.settings if program else gateway.host_settings if gateway else None
        return f"{node.stack} {(settings or {}).get('preset', '')}".strip()
    return f"{node.stack} {workload.own_control or node.sysctls.get('net.ipv4.tcp_congestion_control', '')}".strip()


def pairs_of(plan: Plan) -> list[tuple[Family[Any], Traffic]]:
    """Each family with the workloads that it measures, in the order of the families."""
    return [
        (family, workload)
        for family in families()
        for workload in plan.cell.heads
        if family in DATA_FLOWS[workload.kind].families
    ]


def _columns(plan: Plan) -> Columns:
    """Metric columns of a cell: those of each family in their fixed order, then those of the cell."""
    names, pairs = columns_by_workload(plan), pairs_of(plan)

    def of(family: Family[Any]) -> tuple[tuple[str, MetricColumn], ...]:
        mine = [workload.part_of for measuring, workload in pairs if measuring is family]
        return tuple((names[name, column.name], column) for name in mine for column in family.columns)

    others = tuple((column.name, column) for of_plan in of_plans() for column in of_plan.columns(plan))
    return (*map(of, families()), others)


def _merged(cells: Sequence[Columns]) -> dict[str, MetricColumn]:
    """Metric columns of all cells, family by family."""
    distinct = list(dict.fromkeys(cells))
    return {
        name: column
        for family in range(len(families()) + 1)
        for columns in distinct
        for name, column in columns[family]
    }


def _written(value: Value, column: MetricColumn | None) -> Value:
    if isinstance(value, float) and column is not None:
        return f"{value:.{DEFAULT_DECIMALS if column.decimals is None else column.decimals}f}"
    return value


class Rows:
    """Rows of cells, kept in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def row(self, cell: Path, *, anew: bool = False) -> Row:
        """The row of the cell in a folder; `anew`: derived whatever is kept.

        Raises:
            ResultError: a file of the cell cannot be read.
        """
        try:
            key = _key(cell)
            return (None if anew else self._kept(key)) or self._derived(cell, key)
        except OSError:
            # Who reads that file says what is wrong with it.
            return derived(cell)

    def _derived(self, cell: Path, key: str) -> Row:
        row = derived(cell)
        # What is said of a cell names its folder, and would be wrong of a copy; and its files may have changed
        # meanwhile.
        if not row.said and _key(cell) == key:
            # A store that takes nothing, or a value that JSON does not give back: the row is derived again.
            with suppress(OSError, TypeError):
                text = _text(row)
                if _read(text) == row:
                    self._store.keep_row(key, text.encode())
        return row

    def _kept(self, key: str) -> Row | None:
        content = self._store.row(key)
        # Its digest was right, so that another shape is none of this program's.
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            return None if content is None else _read(content.decode())
        return None


def _key(cell: Path) -> str:
    """Hash of the files that a row may be derived from, and of the code."""
    files = CellFiles(cell)
    paths = [files.plan, files.status_file, *sorted(files.records.glob("*")), *sorted(files.captures.glob("*"))]
    found = [(path.relative_to(cell).as_posix(), sha256_of(path)) for path in paths if path.is_file()]
    return hashlib.sha256(json.dumps([_code(tuple(Registry.folders)), found]).encode()).hexdigest()


@cache
def _code(others: tuple[Path, ...]) -> str:
    """Hash of this program and of what calculates for it."""
    modules = [(file, file.relative_to(PACKAGE).as_posix()) for file in sorted(PACKAGE.rglob("*.py"))]
    modules += [(file, str(file)) for folder in others for file in sorted(folder.rglob("*.py"))]
    return digest_of(modules, f"{sys.version}\n{np.__version__}\n".encode())


def _text(row: Row) -> str:
    columns = [[(name, *column) for name, column in family] for family in row.columns]
    return json.dumps({"axes": row.axes, "values": row.values, "columns": columns})


def _read(text: str) -> Row:
    fields = json.loads(text)
    columns: Columns = tuple(
        tuple((sys.intern(name), MetricColumn(sys.intern(own), decimals)) for name, own, decimals in family)
        for family in fields["columns"]
    )
    values = {sys.intern(name): value for name, value in fields["values"].items()}
    return Row(fields["axes"], values, columns)
