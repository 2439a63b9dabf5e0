"""Compares the runs of a submission with the plans of the variant and with the grader's own run of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath

from scpslab.core.errors import ResultError
from scpslab.core.names import shown
from scpslab.running.command import DEFAULT_ENGINE, other_vectors
from scpslab.runs.archive import ArchivedRun
from scpslab.runs.archive_members import MemberError, read_members
from scpslab.runs.cell import CAPTURES, PLAN
from scpslab.runs.run import CELLS, RESULTS
from scpslab_course.grading.grade import Code, Finding
from scpslab_course.grading.rerun import Plans, Rerun
from scpslab_course.grading.submission import RUNS_LIMITS

MOST_SHOWN = 3
EDITED = frozenset({Code.EDITED_CAPTURES, Code.EDITED_RECORDS, Code.EDITED_RESULTS})
UPDATE = "Everybody of a course needs the same version of scpslab"


def against_plans(runs: Mapping[str, ArchivedRun], plans: Plans) -> Iterator[Finding]:
    """Runs that are not those of the variant: missing ones, and plans that differ from the grader's. Nothing is run for it."""
    for name, mine in plans.items():
        run = runs.get(name)
        if run is None:
            yield Finding(Code.MISSING_RUN, f"found no run of {name}; expected one of every scenario")
            continue
        if run.digest.engine != DEFAULT_ENGINE:
            yield Finding(Code.SWAPPED_PLAN, f"{name}: found a run of engine {shown(run.digest.engine)}; expected {DEFAULT_ENGINE}")
        wrong = [cell for cell, plan in run.plans.items() if mine.get(cell) != plan] + [cell for cell in mine if cell not in run.plans]
        if wrong:
            yield Finding(Code.SWAPPED_PLAN, f"{name}: found other plans than this variant's in {_some(wrong)}; expected the variant's scenario")


def against_rerun(runs: Mapping[str, ArchivedRun], submitted: Mapping[str, list[dict[str, str]]], reruns: Mapping[str, Rerun]) -> Iterator[Finding]:
    """Cells whose bytes are not those that the grader's run gave, and lines of results.csv that it did not give.

    A run of another version of the laboratory has other bytes without anybody's fault, so the finding is another one. What a manifest says is the student's own
    word; it never makes a difference go away.
    """
    for name, mine in reruns.items():
        run = runs.get(name)
        if run is None:
            continue
        differing = sorted(_differing(run, mine))
        rows = _differing_rows(submitted.get(name, []), mine)
        if (differing or rows) and (said := other_vectors(run.manifest, run.plans.values()) or _other_version(run, mine)):
            yield Finding(Code.OTHER_VERSION, f"{name}: {said}. {UPDATE}: run again with it")
            continue
        captures = [path for path in differing if CAPTURES in PurePosixPath(path).parts]
        if captures:
            yield Finding(Code.EDITED_CAPTURES, f"{name}: found other bytes than a run gives in {_some(captures)}; expected the capture of the run")
        if others := [path for path in differing if path not in captures]:
            yield Finding(Code.EDITED_RECORDS, f"{name}: found other bytes than a run gives in {_some(others)}; expected the records of the run")
        if rows:
            yield Finding(Code.EDITED_RESULTS, f"{name}: {RESULTS}: found {_some(rows)}; expected what the run gives")


def results_of(content: bytes, runs: Mapping[str, ArchivedRun]) -> dict[str, list[dict[str, str]]]:
    """The lines of results.csv in the archive of a submission, by scenario.

    Raises:
        ResultError: a table that cannot be read.
    """
    try:
        members = read_members(content, (RESULTS,), RUNS_LIMITS).contents
        texts = {name: members.get(f"{run.digest.run}/{RESULTS}", b"").decode("utf-8") for name, run in runs.items()}
        # A line more than there are cells is one too many; how many more there are does not matter.
        return {name: [_line(row) for row in islice(_rows(text), len(runs[name].plans) + 1)] for name, text in texts.items()}
    except (MemberError, UnicodeDecodeError, csv.Error) as error:
        said = str(error) if isinstance(error, MemberError) else f"found {error}"
        raise ResultError(f"{RESULTS}: {said}; expected the table of the run. Make the submission again.") from error


def _rows(text: str) -> csv.DictReader[str]:
    return csv.DictReader(io.StringIO(text, newline=""), strict=True)


def _line(row: Mapping[str | None, object]) -> dict[str, str]:
    return {str(column): str(value) for column, value in row.items() if column is not None and value is not None}


def _differing(run: ArchivedRun, mine: Rerun) -> Iterator[str]:
    places = tuple(f"{CELLS}/{cell}/" for cell in mine.cells)
    submitted = {path: digest for path, digest in run.digest.files.items() if path.startswith(places)}
    own = {path: digest for path, digest in mine.digests.items() if path.startswith(places)}
    # Plans were compared before, as values.
    yield from (path for path in {**submitted, **own} if submitted.get(path) != own.get(path) and PurePosixPath(path).name != PLAN)


def _differing_rows(submitted: list[dict[str, str]], mine: Rerun) -> list[str]:
    found = []
    by_cell = {row.get("cell", ""): row for row in submitted}
    for row in mine.rows:
        other = by_cell.get(row["cell"])
        if other is None:
            found.append(f"no line of cell {row['cell']}")
            continue
        # Without the other cells of the scenario, columns that only these fill are missing here.
        columns = [column for column in row if other.get(column) != row[column]]
        found += [f"{column} = {shown(other.get(column, ''))[1:-1]} in cell {row['cell']} (a run gives {row[column]})" for column in columns]
    if mine.is_whole and len(submitted) != len(mine.rows):
        found.append(f"{len(submitted)} lines for {len(mine.rows)} cells")
    return found


def _other_version(run: ArchivedRun, mine: Rerun) -> str:
    """What a run says of a laboratory other than the grader's; "" if it says that it was the same."""
    theirs, own = run.manifest.get("cells"), mine.manifest.get("cells")
    for cell in mine.cells:
        one, other = (cells.get(cell) if isinstance(cells, dict) else None for cells in (theirs, own))
        keys = [entry.get("key") if isinstance(entry, dict) else None for entry in (one, other)]
        if keys[0] != keys[1]:
            return "found a run that says it was made with another kernel, guest image or lab program; expected the grader's"
    return ""


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return f"{', '.join(name[:160] for name in names[:MOST_SHOWN])}{more}"
