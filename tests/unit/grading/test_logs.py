"""An interrupted run is told from a replayed log; before bytes are said to be edited, the machine gives them twice."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from scpslab.core.errors import LabError
from scpslab.runs.run import Manifest
from scpslab_course.grading.compare import Rerun, against_runs, rerun_alike
from scpslab_course.grading.grade import REMARKS, Code
from tests.unit.course.test_workspaces import logged

MINE, OTHER = "a" * 64, "b" * 64
RUNS = {"transfer": SimpleNamespace(digest=SimpleNamespace(files={"results.csv": MINE}))}


def said(*events):
    return [finding.code for finding in against_runs(logged(*events), RUNS, {})]


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
    # The one is remarked upon, the other holds the grade.
    assert REMARKS & {Code.INTERRUPTED_RUN, Code.REPLAYED_LOG} == {Code.INTERRUPTED_RUN}


ONE = Rerun(
    {"cells/r1/status.json": "a" * 64, "results.csv": "b" * 64}, (), (), ("r1",), is_whole=True, manifest=Manifest()
)


@pytest.mark.parametrize("digests", [{}, {"cells/r1/status.json": "c" * 64, "results.csv": "b" * 64}])
def test_two_runs_that_differ_are_this_machine_s_fault(digests):
    rerun_alike({"large": ONE}, {"large": replace(ONE, manifest=Manifest(seed=1))})
    with pytest.raises(LabError, match="not at fault"):
        rerun_alike({"large": ONE}, {"large": replace(ONE, digests=digests)})
