"""Grades by running again: a variant's plans, the cells that are run, and what differs in a submission's runs and log.

What a log cannot prove: decision 0703.
"""

import csv
import io
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from scpslab import analysis as results
from scpslab import scenario
from scpslab.core.archive import read_members
from scpslab.core.errors import LabError, MemberError, ResultError, some_of
from scpslab.core.names import shown
from scpslab.engine import DEFAULT
from scpslab.plan import Plan
from scpslab.running import RunOptions, RunPlan, execute
from scpslab.running.events import Listener
from scpslab.running.verify import other_rules, shuffled
from scpslab.runs import RunFolder
from scpslab.runs.archive import ArchivedRun, digests_of
from scpslab.runs.run import CAPTURES, CELLS, PLAN, RESULTS, Manifest
from scpslab.scenario import planning
from scpslab_course.course.assignment import Assignment, Marking
from scpslab_course.course.formulas import Row
from scpslab_course.course.runs import for_formulas
from scpslab_course.course.variant import Secret, Variant
from scpslab_course.course.workspace import Line, LogError, read_log, recorded_results, was_interrupted
from scpslab_course.grading.grade import Code, Concern
from scpslab_course.grading.submission import RUNS_LIMITS

# The parts of marking.yaml whose formulas decide what is right; those of `difficulty` only chose the variant.
MARKED = ("predictions", "answers", "lines")
Plans = Mapping[str, Mapping[str, Plan]]
EDITED = frozenset({Code.EDITED_CAPTURES, Code.EDITED_RECORDS, Code.EDITED_RESULTS})
UPDATE = "Everybody of a course needs the same version of scpslab"


def runs_of(assignment: Assignment, variant: Variant, options: RunOptions) -> dict[str, RunPlan]:
    """The runs of a variant, by scenario, from the instructor's files alone. The variant has been verified, and is of
    this edition of the assignment (course.variant).

    Raises:
        ScenarioError: its parameters do not fit the scenarios.
    """
    # Students of one class have runs of the same names: a folder for each digest of a variant.
    mine = replace(options, out=options.out / variant.digest[:16], overrides=[])
    runs = {}
    for name in assignment.file.scenarios:
        loaded = assignment.loaded(variant.parameters, name)
        plans = planning.plans(scenario.cells(loaded))
        runs[name] = RunPlan(loaded.name, loaded.seed, scenario.resolved_yaml(loaded, {}), plans, mine)
    return runs


@dataclass(frozen=True)
class Rerun:
    """What the grader's own run of a scenario gave: digests by path, rows of results.csv, and the cells that were run.

    `for_formulas`: the rows with the columns that only formulas have.
    """

    digests: Mapping[str, str]
    rows: Sequence[Row]
    for_formulas: Sequence[Row]
    cells: tuple[str, ...]
    manifest: Manifest
    folder: Path = Path()


def choose(
    runs: Mapping[str, RunPlan], marking: Marking, secret: Secret | None, sha256: str, count: int
) -> dict[str, RunPlan]:
    """The runs with the cells that are run again alone: all that a formula reads, and `count` of the others.

    What is right never comes from the student's numbers, so what a formula reads is always run. The other cells depend
    on the submission's bytes and on something that the student does not know: the secret, or, without it, a random
    number of this moment.
    """
    formulas = [formula for at, formula in marking.formulas.items() if at[0] in MARKED]
    every = [(name, cell, plan.cell.axes) for name, run in runs.items() for cell, plan in run.plans.items()]
    read = {(name, cell) for name, cell, axes in every if any(formula.reads(name, axes) for formula in formulas)}
    others = [(name, cell) for name, cell, _ in every if (name, cell) not in read]
    unknown = secret.choice_key if secret is not None else secrets.token_bytes(32)
    wanted = read.union(shuffled(others, unknown, sha256)[:count])
    chosen = {
        name: {cell: plan for cell, plan in run.plans.items() if (name, cell) in wanted} for name, run in runs.items()
    }
    return {name: replace(runs[name], plans=plans) for name, plans in chosen.items() if plans}


def rerun(runs: Mapping[str, RunPlan], listeners: Sequence[Listener] = ()) -> dict[str, Rerun]:
    """Carries out the grader's own runs.

    Raises:
        LabError: a cell failed here; that is the grader's fault, not the student's.
        CapabilityError: this machine cannot run labs.
    """
    reruns = {}
    for name, plan in runs.items():
        run = execute(plan, listeners)
        if run.failed:
            advice = "Grade again; the submission is not at fault."
            raise LabError(f"{run.folder}: found cells that failed while grading; expected results. {advice}")
        table = results.table.read_results(run.folder)
        # As the file has them: formulas may name columns in more ways than one.
        rows = [{name: row[name] for name in table.columns} for row in table.rows]
        for_marking = for_formulas(run.folder, table.rows)
        manifest = RunFolder(run.folder).manifest()
        reruns[name] = Rerun(digests_of(run.folder), rows, for_marking, tuple(plan.plans), manifest, run.folder)
    return reruns


def rerun_alike(first: Mapping[str, Rerun], second: Mapping[str, Rerun]) -> None:
    """Makes sure that this machine gives the same bytes twice, before it is said of a student that theirs are edited.

    Raises:
        LabError: it does not.
    """
    digests = [(name, path, digest) for name in first for path, digest in first[name].digests.items()]
    differing = [path for name, path, digest in digests if second[name].digests.get(path) != digest]
    if differing:
        found = f"found other bytes in {len(differing)} files of this machine's own two runs, {differing[0]} first"
        advice = 'The submission is not at fault: grade on another machine, and look at "scpslab doctor" here.'
        raise LabError(f"{found}; expected the same. {advice}")


def against_plans(runs: Mapping[str, ArchivedRun], plans: Plans) -> Iterator[Concern]:
    """Runs that are not those of the variant: missing ones, others, and plans that differ from the grader's.

    Nothing is run for it.
    """
    for name in sorted(runs.keys() - plans.keys()):
        yield Concern(Code.SWAPPED_PLAN, f"found a run of {shown(name)}; expected the assignment's scenarios alone")
    for name, mine in plans.items():
        run = runs.get(name)
        if run is None:
            yield Concern(Code.MISSING_RUN, f"found no run of {name}; expected one of every scenario")
            continue
        if run.digest.engine != DEFAULT:
            said = f"{name}: found a run of engine {shown(run.digest.engine)}; expected {DEFAULT}"
            yield Concern(Code.SWAPPED_PLAN, said)
        wrong = [cell for cell, plan in run.plans.items() if mine.get(cell) != plan]
        if wrong := [*wrong, *(cell for cell in mine if cell not in run.plans)]:
            said = f"found other plans than this variant's in {_some(wrong)}; expected the variant's scenario"
            yield Concern(Code.SWAPPED_PLAN, f"{name}: {said}")


def against_rerun(
    runs: Mapping[str, ArchivedRun], submitted: Mapping[str, list[dict[str, str]]], reruns: Mapping[str, Rerun]
) -> Iterator[Concern]:
    """Cells whose bytes are not those that the grader's run gave, and lines of results.csv that it did not give.

    A run of another version of the laboratory has other bytes without anybody's fault, so the finding is another one.
    What a manifest says is the student's own word; it never makes a difference go away.
    """
    for name, mine in reruns.items():
        run = runs.get(name)
        if run is None:
            continue
        differing = sorted(_differing(run, mine))
        rows = _differing_rows(submitted.get(name, []), mine, run.plans)
        if (differing or rows) and (said := other_rules(run.manifest.program) or _other_version(run, mine)):
            yield Concern(Code.OTHER_VERSION, f"{name}: {said}. {UPDATE}: run again with it")
            continue
        captures = [path for path in differing if CAPTURES in PurePosixPath(path).parts]
        records = [path for path in differing if path not in captures]
        edited = ((Code.EDITED_CAPTURES, "capture", captures), (Code.EDITED_RECORDS, "records", records))
        for code, what, paths in edited:
            if paths:
                said = f"found other bytes than a run gives in {_some(paths)}; expected the {what} of the run"
                yield Concern(code, f"{name}: {said}")
        if rows:
            yield Concern(Code.EDITED_RESULTS, f"{name}: {RESULTS}: found {_some(rows)}; expected what the run gives")


def results_of(content: bytes, runs: Mapping[str, ArchivedRun]) -> dict[str, list[dict[str, str]]]:
    """The lines of results.csv in the archive of a submission, by scenario.

    Raises:
        ResultError: a table that cannot be read.
    """
    try:
        members = read_members(content, (RESULTS,), RUNS_LIMITS).contents
        texts = {name: members.get(f"{run.digest.run}/{RESULTS}", b"").decode("utf-8") for name, run in runs.items()}
        # A line more than there are cells is one too many; how many more there are does not matter.
        return {name: _lines(text, len(runs[name].plans) + 1) for name, text in texts.items()}
    except (MemberError, UnicodeDecodeError, csv.Error) as error:
        said = str(error) if isinstance(error, MemberError) else f"found {error}"
        raise ResultError(f"{RESULTS}: {said}; expected the table of the run. Make the submission again.") from error


def _lines(text: str, most: int) -> list[dict[str, str]]:
    """The first lines of a table. One that is too short lacks values; one that is too long has some of no column."""
    rows: Iterator[Mapping[Any, Any]] = islice(csv.DictReader(io.StringIO(text, newline=""), strict=True), most)
    return [{key: str(value) for key, value in row.items() if key is not None and value is not None} for row in rows]


def _differing(run: ArchivedRun, mine: Rerun) -> Iterator[str]:
    places = tuple(f"{CELLS}/{cell}/" for cell in mine.cells)
    # Plans were compared before, as values.
    paths = {path for path in (*run.digest.files, *mine.digests) if path.startswith(places)}
    differing = (path for path in paths if run.digest.files.get(path) != mine.digests.get(path))
    yield from (path for path in differing if PurePosixPath(path).name != PLAN)


def _differing_rows(submitted: list[dict[str, str]], mine: Rerun, cells: Mapping[str, Plan]) -> list[str]:
    differences = []
    by_cell = {row.get("cell", ""): row for row in submitted}
    for row in mine.rows:
        other = by_cell.get(row["cell"])
        if other is None:
            differences.append(f"no line of cell {row['cell']}")
            continue
        # Without the other cells of the scenario, columns that only these fill are missing here; there they are empty.
        for column in (column for column in {**row, **other} if other.get(column) != row.get(column, "")):
            said = f"{shown(column)[1:-1]} = {shown(other.get(column, ''))[1:-1]} in cell {row['cell']}"
            differences.append(f"{said} (a run gives {row.get(column, 'no such column')})")
    if len(submitted) != (known := len(by_cell.keys() & cells.keys())):
        differences.append(f"{len(submitted)} lines for {known} cells")
    return differences


def _other_version(run: ArchivedRun, mine: Rerun) -> str:
    """What a run says of a laboratory other than the grader's; "" if it says that it was the same."""
    theirs, own = ({name: entry["key"] for name, entry in of.manifest.cells.items()} for of in (run, mine))
    for cell in mine.cells:
        if theirs.get(cell) != own.get(cell):
            said = "found a run that says it was made with another kernel, guest image or lab program"
            return f"{said}; expected the grader's"
    return ""


def _some(names: list[str]) -> str:
    return some_of([name[:160] for name in names])


def lines_of(content: bytes, variant: Variant) -> tuple[list[Line], list[Concern]]:
    """The lines of a log, and what is wrong with the chain.

    A chain that does not begin with this variant is the log of something else.
    """
    try:
        return read_log(content, variant.digest), []
    except LogError as error:
        is_chain = error.line == 1 and content.startswith(b"{")
        return [], [Concern(Code.REPLAYED_LOG if is_chain else Code.BROKEN_LOG, f"{error}")]


def against_runs(
    lines: Sequence[Line], runs: Mapping[str, ArchivedRun], reruns: Mapping[str, Rerun]
) -> Iterator[Concern]:
    """Runs that the log records with other results.

    The grader's own results count, where it has them all: edited results are another finding.
    """
    for name, run in runs.items():
        recorded = recorded_results(lines, name)
        mine = reruns.get(name)
        is_whole = mine is not None and len(mine.cells) == len(run.plans)
        expected = mine.digests.get(RESULTS) if mine is not None and is_whole else None
        known = {run.digest.files.get(RESULTS), expected}
        if recorded is not None and recorded in known:
            continue
        code, said = Code.REPLAYED_LOG, "found no run in the log; expected the one that gave the submitted results"
        if was_interrupted(lines, name):
            code = Code.INTERRUPTED_RUN
            said = "the log has the beginning of the run and not its end; expected both."
            said += " The results are compared all the same"
        elif recorded is not None:
            wanted = " or ".join(sorted(digest[:12] for digest in known if digest))
            said = f"the log records results {recorded[:12] or 'none'}; expected those of this variant, {wanted}"
        yield Concern(code, f"{name}: {said}")
