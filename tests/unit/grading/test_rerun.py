"""Before it is said of a student that bytes are edited, the grader's own machine has to give the same bytes twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scpslab.core.errors import LabError
from scpslab_course.grading.compare import Rerun, rerun_alike

ONE = Rerun({"cells/r1/status.json": "a" * 64, "results.csv": "b" * 64}, (), (), ("r1",), is_whole=True, manifest={})


def test_two_runs_that_agree_are_no_news():
    rerun_alike({"large": ONE}, {"large": replace(ONE, manifest={"other": 1})})


@pytest.mark.parametrize("digests", [{}, {"cells/r1/status.json": "c" * 64, "results.csv": "b" * 64}])
def test_two_runs_that_differ_are_this_machine_s_fault(digests):
    with pytest.raises(LabError, match="not at fault"):
        rerun_alike({"large": ONE}, {"large": replace(ONE, digests=digests)})
