"""The laboratory for Python programs: plan, run, rows, packets (docs/python.md). These names, and what they take and
give, stay as they are; other modules of the package may change.
"""

from pathlib import Path
from typing import Any

from scpslab import plan as plans
from scpslab.analysis.run import open_run
from scpslab.analysis.table import read_results
from scpslab.core import own_kinds
from scpslab.core.errors import ScpslabError, UsageError
from scpslab.measure import shown
from scpslab.measure.packets import read
from scpslab.running import RunOptions, run_scenario
from scpslab.runs.run import RUNS, find_run
from scpslab.scenario import cells, load, planning

__all__ = ["ScpslabError", "packets", "plan", "rows", "run"]
WORDS = {"": None, "true": True, "false": False}
TEXTS = ("scenario", "topology", "cell", "seed", "status", "reason", "unmeasured")

own_kinds.add_known()


def plan(scenario: str | Path, *settings: str) -> dict[str, dict[str, Any]]:
    """The plan of every cell of a scenario by the cell's id, as docs/plan-format.md describes it; nothing runs.

    `settings`: KEY=VALUE, as after --set. Raises ScpslabError for what is wrong with the scenario.
    """
    return {name: plans.write(one) for name, one in planning.plans(cells(load(str(scenario), settings))).items()}


def run(scenario: str | Path, *settings: str, out: str | Path = RUNS, jobs: int | None = None) -> Path:
    """Runs the cells of a scenario that have no result yet, as `scpslab run` does; the folder of the run.

    `jobs`: cells at the same time; default: one a core. Raises ScpslabError.
    """
    return run_scenario(str(scenario), RunOptions(out=Path(out), jobs=jobs, overrides=[*settings])).folder


def rows(folder: str | Path) -> list[dict[str, Any]]:
    """The rows of a run's results.csv (docs/columns.md): numbers as numbers, None where a cell has nothing."""
    found = read_results(find_run(str(folder)))
    known = ({**row, **row.numbers, **{name: row[name] for name in TEXTS}} for row in found.rows)
    return [{name: WORDS.get(str(row[name]), row[name]) for name in found.columns} for row in known]


def packets(folder: str | Path, cell: str) -> list[dict[str, Any]]:
    """Every packet of a cell at every link, as `scpslab packets` lists it; times in seconds since the epoch."""
    opened = open_run(find_run(str(folder)))
    chosen = {one.id: one for one in opened.cells}
    if cell not in chosen:
        raise UsageError(f'{opened.folder}: found no cell "{cell}"; expected one such as {opened.cells[0].id}.')
    found = shown.rows(read(chosen[cell].packets_file))
    return [
        {
            key: float(one) if isinstance(one, str) and key.endswith("_s") else one
            for key, one in zip(shown.COLUMNS, line, strict=True)
        }
        for line in found
    ]
