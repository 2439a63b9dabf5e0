"""Runs whose bit errors were drawn by the rules of 0.3.0 are called that, and never edited."""

from dataclasses import replace
from pathlib import Path

import pytest

from scpslab.cli import verify as command
from scpslab.running.run_plan import program
from scpslab.running.verify import Comparison, other_vectors
from scpslab.runs.archive import read_archive, write_archive
from scpslab.scenario.errors import VECTOR_RULES
from scpslab_course.grading.compare import Rerun, against_rerun
from scpslab_course.grading.grade import Code

from scpslab.kinds.errors.independent.plan import Independent

# A run of one cell, as an older version made it.
OLD_RUN = Path(__file__).parents[2] / "data" / "formats" / "run-1"


@pytest.fixture
def old(tmp_path):
    run = read_archive(write_archive([OLD_RUN], tmp_path / "old.tar.gz"))[0]
    return replace(
        run,
        plans={name: with_errors(plan) for name, plan in run.plans.items()},
        manifest=run.manifest | {"program": {"version": "0.3.0"}},
    )


def with_errors(plan):
    """The plan with independent errors on its link."""
    impairments = (
        replace(one, errors=replace(one.errors, model="independent", settings=Independent(ber=1e-6)))
        for one in plan.cell.impairments
    )
    return replace(plan, cell=replace(plan.cell, impairments=tuple(impairments)))


def test_a_run_of_today_has_the_rules_of_today(old):
    assert other_vectors({"program": program()}, old.plans.values()) == ""
    assert program()["vectors"] == VECTOR_RULES


def test_a_run_of_0_3_0_with_bit_errors_is_named(old):
    assert (
        other_vectors(old.manifest, old.plans.values())
        == "made with 0.3.0, whose error vectors began elsewhere: run again"
    )
    assert other_vectors({}, old.plans.values()) != ""


def test_a_run_without_bit_errors_is_not(old, tmp_path):
    run = read_archive(write_archive([OLD_RUN], tmp_path / "clean.tar.gz"))[0]

    assert other_vectors(run.manifest, run.plans.values()) == ""


def test_a_grader_calls_it_another_version(old):
    cell = next(iter(old.plans))
    files, manifest = dict.fromkeys(old.digest.files, "0" * 64), {"cells": old.manifest["cells"]}
    mine = Rerun(files, (), (), (cell,), is_whole=True, manifest=manifest)

    (finding,) = against_rerun({"small": old}, {}, {"small": mine})

    assert finding.code == Code.OTHER_VERSION
    assert "made with 0.3.0, whose error vectors began elsewhere: run again" in str(finding)


def test_verify_says_so(old, capsys):
    because = other_vectors(old.manifest, old.plans.values())
    comparison = Comparison("run", (), ("a.pcap",), (), (), False, (), cells=("r1",), of=1, because=because)

    command._say(comparison)

    assert "run: made with 0.3.0, whose error vectors began elsewhere: run again" in capsys.readouterr().out
