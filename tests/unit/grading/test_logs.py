"""What the grader says of a log and the runs beside it: an interrupted run is told from a replayed log."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from scpslab_course.course import workspace as log
from scpslab_course.course.workspace import RunState
from scpslab_course.grading.compare import against_runs
from scpslab_course.grading.grade import REMARKS, Code

AT = "2026-11-22T21:00:00Z"
MINE, OTHER = "a" * 64, "b" * 64
RUNS = {"transfer": SimpleNamespace(digest=SimpleNamespace(files={"results.csv": MINE}))}


def said(*events):
    content = b""
    for event, results in events:
        content = log.appended(
            content, "v", AT, event, "transfer", "", [RunState(scenario="transfer", finished=2, results=results)]
        )
    return [finding.code for finding in against_runs(log.read_log(content, "v"), RUNS, {})]


@pytest.mark.parametrize(
    ("events", "codes"),
    [
        ([("begin", ""), ("run", MINE)], []),
        ([("run", MINE)], []),
        # Begun once more when all cells were there, and ended by the student.
        ([("begin", ""), ("run", MINE), ("begin", MINE)], []),
        ([("begin", "")], [Code.INTERRUPTED_RUN]),
        ([("begin", ""), ("run", OTHER), ("begin", OTHER)], [Code.INTERRUPTED_RUN]),
        ([("start", "")], [Code.REPLAYED_LOG]),
        ([("begin", ""), ("run", OTHER)], [Code.REPLAYED_LOG]),
    ],
)
def test_only_a_run_without_its_end_was_interrupted(events, codes):
    assert said(*events) == codes


def test_an_interrupted_run_is_remarked_upon_and_a_replayed_log_holds_the_grade():
    assert Code.INTERRUPTED_RUN in REMARKS
    assert Code.REPLAYED_LOG not in REMARKS
