"""The runs of a variant: its scenarios with the variant's settings, and the rows of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scpslab import analysis as results
from scpslab.analysis.resends import resend_columns
from scpslab.analysis.run import open_run
from scpslab.core.errors import ResultError
from scpslab.core.scratch import scratch
from scpslab.documents.quantities import AxisValue
from scpslab.running import RunOptions, run_scenario
from scpslab.running.events import Listener
from scpslab.running.runner import ScenarioRun
from scpslab.runs import RunFolder
from scpslab.runs.archive import digests_of
from scpslab.runs.run import CELLS
from scpslab.runs.store import DamagedEntryError, stores
from scpslab_course.course.assignment import Assignment
from scpslab_course.course.formulas import Rows


@dataclass(frozen=True)
class VariantRun:
    """The run of one scenario: its folder, whether it exists or not, and the cells that its plan has."""

    scenario: str
    folder: RunFolder
    cells: tuple[str, ...]

    @property
    def finished(self) -> tuple[str, ...]:
        """The cells that have a result."""
        return tuple(cell for cell in self.cells if self.folder.cell(cell).has_ended)

    @property
    def is_complete(self) -> bool:
        """Whether the run ended, with all its cells."""
        try:
            return self.folder.manifest().get("status") == "completed" and len(self.finished) == len(self.cells)
        except ResultError:
            return False

    def changed(self) -> list[str]:
        """The files of its cells, by their paths in the run's folder, that are not what this machine keeps of the run. What it does not keep cannot be told."""
        known, found = self.folder.manifest()["cells"], []
        with scratch() as aside:
            for cell in self.finished:
                kept = RunFolder(aside).cell(cell).path
                kept.parent.mkdir(exist_ok=True)
                if _is_kept(known.get(cell, {}).get("key", ""), kept):
                    found.append(cell)
            expected = digests_of(aside)
        places = tuple(f"{CELLS}/{cell}/" for cell in found)
        mine = {path: digest for path, digest in digests_of(self.folder.path).items() if path.startswith(places)}
        return sorted(path for path in {**expected, **mine} if expected.get(path) != mine.get(path))


def _is_kept(key: str, folder: Path) -> bool:
    """Whether this machine keeps a result; it is unpacked to `folder` then."""
    try:
        return bool(key) and any(store.fetch(key, folder) for store in stores())
    except (DamagedEntryError, OSError):
        return False


def run_of(assignment: Assignment, parameters: Mapping[str, AxisValue], scenario: str, out: Path) -> VariantRun:
    """The run of a scenario with these parameters in `out`; nothing is run."""
    planned = ScenarioRun(str(assignment.scenario(scenario)), RunOptions(out=out, overrides=assignment.settings(parameters, scenario)))
    return VariantRun(scenario, planned.folder, planned.cells)


def run_variant(
    assignment: Assignment, parameters: Mapping[str, AxisValue], options: RunOptions, listeners: Sequence[Listener] = (), scenarios: Sequence[str] = ()
) -> dict[str, Path]:
    """Runs scenarios (default: all) with these parameters; returns their folders. The options say where and how, not what.

    Raises:
        ScenarioError: the parameters do not fit the scenario.
        CapabilityError: this machine cannot run labs.
    """
    folders = {}
    for name in scenarios or assignment.scenario_names:
        mine = replace(options, overrides=assignment.settings(parameters, name))
        folders[name] = run_scenario(str(assignment.scenario(name)), mine, listeners).folder
    return folders


def rows_of(folders: Mapping[str, Path]) -> Rows:
    """What formulas read of each scenario's run: the rows of results.csv, and of traced transfers why packets were sent again, which no file tells students."""
    found = {}
    for name, folder in folders.items():
        opened = open_run(folder)
        columns = {cell.id: resend_columns(cell, opened.id) for cell in opened.cells}
        every = dict.fromkeys(column for one in columns.values() for column in one)
        rows = results.table.read_results(folder).rows
        found[name] = [{**row, **dict.fromkeys(every, ""), **columns.get(row["cell"], {})} for row in rows]
    return found
