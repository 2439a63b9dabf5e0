"""An interrupted run is told from a replayed log; before bytes are said to be edited, the machine gives them twice;
what no run gives is named, and accuses nobody else.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from scpslab.core.errors import LabError
from scpslab.runs.run import Manifest
from scpslab_course.course.answers import Expected
from scpslab_course.grading import compare, grader, submission
from scpslab_course.grading.compare import Rerun, against_plans, against_rerun, against_runs, rerun_alike
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


ONE = Rerun({"cells/r1/status.json": "a" * 64, "results.csv": "b" * 64}, (), (), ("r1",), manifest=Manifest())


@pytest.mark.parametrize("digests", [{}, {"cells/r1/status.json": "c" * 64, "results.csv": "b" * 64}])
def test_two_runs_that_differ_are_this_machine_s_fault(digests):
    rerun_alike({"large": ONE}, {"large": replace(ONE, manifest=Manifest(seed=1))})
    with pytest.raises(LabError, match="not at fault"):
        rerun_alike({"large": ONE}, {"large": replace(ONE, digests=digests)})


ROW = {"cell": "r1", "goodput_bps": "5000", "note": ""}
OF_ANOTHER_CELL = {"cell": "r2", "goodput_bps": "", "note": "", "rtt_ms": "7"}


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([ROW | {"rtt_ms": ""}, OF_ANOTHER_CELL], None),
        ([OF_ANOTHER_CELL, ROW], None),
        ([ROW], None),
        ([ROW | {"mine": "81.37"}], "mine = 81.37 in cell r1 (a run gives no such column)"),
        ([ROW | {"goodput_bps": "4"}], "goodput_bps = 4 in cell r1 (a run gives 5000)"),
        ([{"cell": "r1", "goodput_bps": "5000"}], "note =  in cell r1 (a run gives )"),
        ([OF_ANOTHER_CELL], "no line of cell r1"),
        ([{"cell": "r1", "goodput_bps": "81"}, ROW], "2 lines for 1 cells"),
        ([ROW, {"cell": "mine", "goodput_bps": "81"}], "2 lines for 1 cells"),
    ],
)
def test_what_no_run_gives_is_named_in_a_table(monkeypatch, rows, says):
    """The grader has run one of two cells."""
    monkeypatch.setattr(compare, "other_rules", lambda *_: "")
    mine = Rerun({}, [ROW], [], ("r1",), Manifest())
    run = SimpleNamespace(digest=SimpleNamespace(files={}), plans={"r1": 1, "r2": 2}, manifest=Manifest())
    found = list(against_rerun({"transfer": run}, {"transfer": rows}, {"transfer": mine}))
    assert [(one.code, says in one.says) for one in found] == ([(Code.EDITED_RESULTS, True)] if says else [])


def test_a_run_of_a_scenario_that_the_assignment_does_not_have_is_named():
    (found,) = against_plans({"answer bdp": None}, {})
    assert (found.code, found.holds) == (Code.SWAPPED_PLAN, True)
    assert 'found a run of "answer bdp"' in found.says


def test_what_a_student_writes_into_a_table_accuses_nobody(settings, members, hand_in, monkeypatch):
    path = hand_in(members | {"write-up.md": b"It was 62.504 kB.\n"})
    handed_in = submission.read(path)
    right = Expected(predictions={"time": 7.8125, "rates": 501.73}, answers={})
    monkeypatch.setattr(grader.written, "expected", lambda *_: right)
    table = {"answer bdp": [{"cell": "r1", "goodput_bps": "62.504"}]}
    opened = grader._Opened(handed_in, settings.bind(path, handed_in.variant), {}, table, {}, [])

    found = grader._graded(opened, {}, [])

    assert found.numbers == {"prediction time": 7.8125, "prediction rates": 501.73}
    # It is the student's own number all the same.
    assert found.foreign == ()
