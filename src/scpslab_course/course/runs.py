"""The runs of a variant: its scenarios with its settings, the rows of their results, and trials of a student's program.

Such a program is a stranger's code: it is put into plans, and runs in the lab without rights.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean

from scpslab import analysis as results
from scpslab import scenario
from scpslab.analysis.lost_packets import resend_columns
from scpslab.analysis.run import open_run
from scpslab.analysis.statistics import ResultRow, finite
from scpslab.core.errors import ResultError, ScenarioError, UsageError
from scpslab.core.scratch import scratch
from scpslab.documents.quantities import AxisValue
from scpslab.running import RunOptions, RunPlan, execute, plan_run, run_scenario
from scpslab.running.events import Listener
from scpslab.runs import RunFolder
from scpslab.runs.archive import digests_of
from scpslab.runs.run import CELLS
from scpslab.runs.store import stores
from scpslab.scenario import planning
from scpslab.scenario.workloads import read_program
from scpslab_course.course.assignment import Assignment, Marking, settings
from scpslab_course.course.formulas import FormulaError, Row, Rows, parse
from scpslab_course.course.model import SCENARIO_SUFFIX, Trial

NOT_HANDED_IN = "not handed in"
# A lab that such a program keeps busy reaches the wall limit, and the engine names the program that did it
# (engine/uml.py).
RUNNER = "policy_runner.py"
ENDLESS = "the program did not answer any more; look for an endless loop"
SLOW = "a program that computes long for each packet ends so, too"
# Details of the engine that say nothing about the program.
DETAIL = re.compile(r"; virtual time .*", re.DOTALL)


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
            return self.folder.manifest().status == "completed" and len(self.finished) == len(self.cells)
        except ResultError:
            return False

    def changed(self) -> list[str]:
        """The files of its cells, by their paths in the run's folder, that are not what this machine keeps of the run.

        What it does not keep cannot be told.
        """
        known, kept = self.folder.manifest().cells, []
        with scratch() as aside:
            for cell in self.finished:
                place = RunFolder(aside).cell(cell).path
                place.parent.mkdir(exist_ok=True)
                if cell in known and _is_kept(known[cell]["key"], place):
                    kept.append(f"{CELLS}/{cell}/")
            expected = digests_of(aside)
        mine = {path: digest for path, digest in digests_of(self.folder.path).items() if path.startswith(tuple(kept))}
        return sorted(path for path in {**expected, **mine} if expected.get(path) != mine.get(path))


def _is_kept(key: str, folder: Path) -> bool:
    """Whether this machine keeps a result; it is unpacked to `folder` then."""
    try:
        return bool(key) and any(store.fetch(key, folder) for store in stores())
    except (ResultError, OSError):
        return False


def run_of(assignment: Assignment, parameters: Mapping[str, AxisValue], scenario: str, out: Path) -> VariantRun:
    """The run of a scenario with these parameters in `out`; nothing is run."""
    options = RunOptions(out=out, overrides=assignment.settings(parameters, scenario))
    run = plan_run(str(assignment.scenario(scenario)), options)
    return VariantRun(scenario, run.folder, tuple(run.plans))


def run_variant(
    assignment: Assignment,
    parameters: Mapping[str, AxisValue],
    options: RunOptions,
    listeners: Sequence[Listener] = (),
    scenarios: Sequence[str] = (),
) -> dict[str, Path]:
    """Runs scenarios (default: all) with these parameters; returns their folders.

    The options say where and how, not what.

    Raises:
        ScenarioError: the parameters do not fit the scenario.
        CapabilityError: this machine cannot run labs.
    """
    folders = {}
    for name in scenarios or assignment.file.scenarios:
        mine = replace(options, overrides=assignment.settings(parameters, name))
        folders[name] = run_scenario(str(assignment.scenario(name)), mine, listeners).folder
    return folders


def rows_of(folders: Mapping[str, Path]) -> Rows:
    """What formulas read of each scenario's run."""
    return {name: for_formulas(folder, results.table.read_results(folder).rows) for name, folder in folders.items()}


def for_formulas(folder: Path, rows: Sequence[Row]) -> list[Row]:
    """The rows of a run's results.csv, and of traced transfers why packets were sent again, which no file tells
    students.
    """
    opened = open_run(folder)
    columns = {cell.id: resend_columns(cell) for cell in opened.cells}
    every = dict.fromkeys(column for one in columns.values() for column in one)
    return [{**row, **dict.fromkeys(every, ""), **columns.get(row["cell"], {})} for row in rows]


@dataclass(frozen=True)
class Planned:
    """A trial with its name, the file of its scenario, and the parameters that formulas read and that set values."""

    name: str
    trial: Trial
    scenario: Path
    parameters: Mapping[str, AxisValue]
    settings: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What became of a trial: the share of the points, what the student reads, the folder of the run, if one was run,
    and the numbers of the columns that it shows, if every cell was completed.

    `share` is the mean of the cells' shares, 0 without a cell. It is None where the lab failed and the file did not:
    then a person decides.
    """

    share: float | None
    says: str
    folder: Path | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)


def planned(assignment: Assignment, parameters: Mapping[str, AxisValue]) -> Iterator[Planned]:
    """The trials that students see."""
    for name, trial in assignment.file.trials.items():
        given = tuple(assignment.settings(parameters, trial.scenario))
        yield Planned(name, trial, assignment.scenario(trial.scenario), parameters, given)


def planned_hidden(
    assignment: Assignment, parameters: Mapping[str, AxisValue], marking: Marking, key: bytes | None, term: str
) -> Iterator[Planned]:
    """The trials that students do not see, drawn with a key for a term: the same for everybody.

    Raises:
        UsageError: a trial is to be drawn, and there is no key.
    """
    for name, trial in marking.file.trials.items():
        if trial.is_drawn and key is None:
            said = f"trial {name}: found no secret; expected that of the course, with which its parameters are drawn"
            raise UsageError(f"{assignment.name}: {said}. Grade where the secret is.")
        values = trial.drawn(key or b"", term, assignment.name, name)
        given = tuple(settings(trial.variant, values, trial.scenario))
        place = marking.folder / f"{trial.scenario}{SCENARIO_SUFFIX}"
        yield Planned(name, trial, place, {**parameters, **values}, given)


def carry_out(one: Planned, content: bytes | None, options: RunOptions, listeners: Sequence[Listener] = ()) -> Outcome:
    """Runs a student's file in a trial.

    `content`: None if there is no file. Whatever the file does, it costs this trial alone.

    Raises:
        ScenarioError: the trial's scenario or formula is not valid; the student is not at fault.
        CapabilityError: this machine cannot run labs.
    """
    if content is None:
        return Outcome(0.0, NOT_HANDED_IN)
    trial = one.trial
    with scratch() as folder:
        shutil.copyfile(one.scenario, folder / one.scenario.name)
        (folder / trial.file).write_bytes(content)
        try:
            read_program(folder / trial.file)
        except ScenarioError as error:
            return Outcome(0.0, str(error))
        loaded = scenario.load(str(folder / one.scenario.name), list(one.settings))
        plans = planning.plans(scenario.cells(loaded))
        run = RunPlan(loaded.name, loaded.seed, scenario.resolved_yaml(loaded, {}), plans, options)
        ran = execute(run, listeners).folder
    ended = {cell.id: cell for cell in open_run(ran).cells}
    rows = {row["cell"]: row for row in results.table.read_results(ran).rows}
    tried = {cell: _tried(one, ended[cell].reason, rows[cell]) for cell in plans}
    shares = [share for share, _ in tried.values() if share is not None]
    says = "; ".join(f"{cell}: {said}" if len(tried) > 1 else said for cell, (_, said) in tried.items())
    share = mean(shares) if len(shares) == len(tried) else None
    return Outcome(share, says, ran, dict(_numbers([rows[cell] for cell in plans], trial.shows)))


def _tried(one: Planned, reason: str, row: Row) -> tuple[float | None, str]:
    """The share of the points that a cell gives, and what the student reads; None where the lab failed."""
    if row["status"] == "completed":
        share = min(1.0, max(0.0, _share(one, row)))
        shown = ", ".join(f"{column} {_short(row.get(column, ''))}" for column in one.trial.shows)
        return share, f"{100 * share:.3g}%" + (f" ({shown})" if shown else "")
    if row["status"] == "incomplete":
        return 0.0, f"0%, not completed: {reason}"
    if RUNNER in reason:
        return 0.0, f"0%, not completed: {DETAIL.sub('', reason)}; {ENDLESS}"
    return None, f"the lab failed: {reason}; a person decides" + (f", for {SLOW}" if "wall limit" in reason else "")


def _numbers(rows: Sequence[ResultRow], columns: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The means of columns over completed cells; a column of words has none."""
    for column in columns if all(row.has_completed for row in rows) else ():
        if all(column in row.numbers for row in rows):
            yield column, mean(row.numbers[column] for row in rows)


def _share(one: Planned, row: Row) -> float:
    place, advice = f"trials.{one.name}.share", "Correct the formula."
    try:
        share = parse(one.trial.share, one.parameters).value(one.parameters, {one.trial.scenario: [row]})
    except FormulaError as error:
        raise ScenarioError(f"{place}: {error.at((), advice)}") from error
    if isinstance(share, str):
        raise ScenarioError(f'{place}: found the text "{share}"; expected a number. {advice}')
    return share


def _short(text: str) -> str:
    return text or "-" if (number := finite(text)) is None else f"{number:.4g}"
