"""Runs a variant's cells again: those that decide what is right, and some more that are chosen after the submission."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scpslab import analysis as results
from scpslab import scenario
from scpslab.core.errors import LabError
from scpslab.plan import Plan
from scpslab.running.events import Listener
from scpslab.running.runner import PlansRun, RunOptions
from scpslab.running.sample import shuffled
from scpslab.runs import RunFolder
from scpslab.runs.archive import digests_of
from scpslab_course.course.assignment import Assignment, Marking
from scpslab_course.course.numbers import OF_RESULTS, Row
from scpslab_course.course.runs import rows_of
from scpslab_course.course.secret import Secret
from scpslab_course.course.variant import Variant

# The parts of marking.yaml whose formulas decide what is right; those of `difficulty` only chose the variant.
MARKED = ("predictions", "answers")
Plans = Mapping[str, Mapping[str, Plan]]
Chosen = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Rerun:
    """What the grader's own run of a scenario gave: digests by path, rows of results.csv, the cells that were run, and whether these are all.

    `for_formulas`: the rows with the columns that only formulas have.
    """

    digests: Mapping[str, str]
    rows: Sequence[Row]
    for_formulas: Sequence[Row]
    cells: tuple[str, ...]
    is_whole: bool
    manifest: Mapping[str, Any]


def choose(plans: Plans, marking: Marking, secret: Secret | None, sha256: str, count: int) -> Chosen:
    """The cells to run again, by scenario: all of each scenario that a formula reads, and `count` of all cells.

    What is right never comes from the student's numbers, so what a formula reads is always run. The other cells depend on the submission's bytes and on
    something that the student does not know: the secret, or, without it, a random number of this moment.
    """
    formulas = [formula for at, formula in marking.formulas.items() if at[0] in MARKED]
    read = {str(arguments[0]) for formula in formulas for name, arguments in formula.calls if name in OF_RESULTS}
    every = [(name, cell) for name, cells in plans.items() for cell in cells]
    unknown = secret.choice_key if secret is not None else secrets.token_bytes(32)
    drawn = set(shuffled(every, unknown, sha256)[:count])
    chosen = {name: tuple(cell for cell in cells if name in read or (name, cell) in drawn) for name, cells in plans.items()}
    return {name: cells for name, cells in chosen.items() if cells}


def rerun(assignment: Assignment, variant: Variant, plans: Plans, chosen: Chosen, options: RunOptions, listeners: Sequence[Listener] = ()) -> dict[str, Rerun]:
    """Runs the chosen cells by the grader's own plans.

    Raises:
        LabError: a cell failed here; that is the grader's fault, not the student's.
        CapabilityError: this machine cannot run labs.
    """
    found = {}
    for name, cells in chosen.items():
        loaded = scenario.load(str(assignment.scenario(name)), assignment.settings(variant.parameters, name))
        wanted = {cell: plans[name][cell] for cell in cells}
        # Students of one class have runs of the same names: a folder for each digest of a variant.
        mine = replace(options, out=options.out / variant.digest[:16], overrides=[])
        run = PlansRun(loaded, scenario.resolved_yaml(loaded, {}), wanted, mine, listeners)
        if run.run().failed:
            raise LabError(f"{run.folder.path}: found cells that failed while grading; expected results. Grade again; the submission is not at fault.")
        found[name] = _of(run.folder.path, cells, run.manifest, is_whole=len(cells) == len(plans[name]))
    return found


def rerun_alike(first: Mapping[str, Rerun], second: Mapping[str, Rerun]) -> None:
    """Makes sure that this machine gives the same bytes twice, before it is said of a student that theirs are edited.

    Raises:
        LabError: it does not.
    """
    differing = [path for name in first for path, digest in first[name].digests.items() if second[name].digests.get(path) != digest]
    if differing:
        raise LabError(
            f"found other bytes in {len(differing)} files of this machine's own two runs, {differing[0]} first; expected the same. The submission is not "
            'at fault: grade on another machine, and look at "scpslab doctor" here.'
        )


def _of(folder: Path, cells: tuple[str, ...], manifest: Mapping[str, Any], *, is_whole: bool) -> Rerun:
    rows = results.table.read_results(folder).rows
    return Rerun(digests_of(RunFolder(folder).path), rows, rows_of({"": folder})[""], cells, is_whole, manifest)
