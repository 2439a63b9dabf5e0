"""The assignment read-a-trace, solved by its reference solution from what a student has: the marking, computed in
another way, gives it all points.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scpslab.analysis.loss_table import as_csv
from scpslab.analysis.lost_packets import find_losses
from scpslab.analysis.run import open_run
from scpslab.running import RunOptions
from scpslab_course.course.answers import expected, read_practice, score_answer
from scpslab_course.course.assignment import find, load_assignment, load_marking
from scpslab_course.course.runs import rows_of, run_variant

pytestmark = pytest.mark.lab
CAUSES = {"by_queue": "queue", "by_corrupt": "corrupt", "by_outage": "outage", "superfluous": "superfluous"}
PICKS = {"cause_1": "pick_1", "cause_2": "pick_2", "cause_3": "pick_3"}


def test_the_reference_solution_has_all_points(tmp_path: Path):
    assignment = load_assignment(find("read-a-trace"))
    variant = read_practice(assignment).variant
    folders = run_variant(assignment, variant.parameters, RunOptions(out=tmp_path / "runs", use_cache=False))
    right = expected(assignment, load_marking(assignment), variant.parameters, rows_of(folders))
    run = open_run(folders["trace"])
    (losses := tmp_path / "losses.csv").write_text(as_csv(find_losses(run.cells[0], run.id)))
    program = assignment.folder / "instructor" / "solution" / "solve.py"
    solved = subprocess.run(
        [sys.executable, program, run.cells[0].folder / "captures" / "ws1.pcap", losses],
        capture_output=True,
        text=True,
        check=True,
    )
    assert solved.stdout == program.with_name("causes.csv").read_text()
    causes = [line.split(",")[3] for line in solved.stdout.splitlines()[1:]]
    repair = re.search(r"first repair ([\d.]+) ms", solved.stderr)
    assert repair is not None
    given = {
        "resends": len(causes),
        **{name: causes.count(cause) for name, cause in CAUSES.items()},
        **{name: causes[int(variant.parameters[pick]) - 1] for name, pick in PICKS.items()},
        "first_repair": f"{repair[1]} ms",
    }

    assert set(given) == set(right.answers)
    for name, answer in right.answers.items():
        assert score_answer(assignment.file.answers[name], answer, given[name]).share == 1, (name, given[name], answer)
    assert right == read_practice(assignment).expected
