"""An assignment from its start to the file that is handed in, as instructor and student type it."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scpslab_course.course import variant as variants
from scpslab_course.course.assignment import find
from scpslab_course.course.folder import load_course
from scpslab_course.grading import submission
from scpslab_course.grading.compare import plans
from tests.lab import parts
from tests.lab.made_up_class import assignments

pytestmark = pytest.mark.lab
ROOT = Path(__file__).parents[2]


def run(folder, *words):
    return subprocess.run(
        [ROOT / "scpslab", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "200"},
    )


def scpslab(folder, *words, fails=0):
    ended = run(folder, *words)
    assert ended.returncode == fails, ended.stdout + ended.stderr
    return ended.stdout, ended.stderr


@pytest.mark.parametrize("name", assignments("SCPSLAB_CLASS" in os.environ))
def test_practice_answers_are_current(name, tmp_path):
    """What BBR draws follows from the guest's bytes: other packages give it other numbers."""
    ended = run(tmp_path, "course", "practice", name, "--check")
    if ended.returncode and (differs := parts.not_published()):
        pytest.skip(f"found other answers, in a lab of other parts: {differs}")
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("name", ["first-steps", "write-your-own"])
def test_check_says_of_the_practice_variant_that_the_solution_is_right(name, tmp_path):
    """The solutions of all assignments: test_class.py."""
    scpslab(tmp_path, "assignment", "start", name, "--into", "mine")
    scpslab(tmp_path, "assignment", "run", "--unpredicted")
    shutil.copytree(find(name) / "instructor" / "solution", tmp_path / "mine", dirs_exist_ok=True)
    said = scpslab(tmp_path, "assignment", "check")[0]
    unfinished = [
        line for line in said.splitlines() if line.split()[:1] in (["missing"], ["look"]) and "prediction" not in line
    ]
    assert unfinished == []


def test_a_student_gets_a_variant_works_and_hands_in(tmp_path):
    (tmp_path / "roster.csv").write_text('student,name\nanna,"Müller, Anna"\nbo,Bo\n')
    scpslab(tmp_path, "course", "new", "satnet", "--assignment", "first-steps")
    key = (
        scpslab(tmp_path, "course", "issue", "--course", "satnet", "--roster", "roster.csv")[1].split("key ")[1].strip()
    )
    file = "satnet/issued/term-1/anna/first-steps.variant.json"
    scpslab(tmp_path, "assignment", "start", "first-steps", "--variant", file, "--key", key, "--into", "mine")
    assert "before the run" in scpslab(tmp_path, "assignment", "predict", "small_s", "20 s")[0]
    assert "expected one of small_s" in scpslab(tmp_path, "assignment", "predict", "small", "20 s", fails=2)[1]
    assert "no complete run" in scpslab(tmp_path, "assignment", "submit", fails=2)[1]
    assert "found no prediction of speedup, large_goodput" in scpslab(tmp_path, "assignment", "run", fails=2)[1]
    # No prediction has to come before this one.
    assert "rtt_mean_ms" in scpslab(tmp_path, "assignment", "run", "round-trip")[0]
    assert "goodput_bps" in scpslab(tmp_path, "assignment", "run", "--unpredicted")[0]
    said, next_ = scpslab(tmp_path, "assignment", "predict", "speedup", "4")
    assert "as late" in said
    assert next_.endswith('next: "scpslab assignment check"\n')
    (tmp_path / "mine" / "answers.yaml").write_text("rtt: 500 MS\nbdp: 120\nlimit: Window\nlarge_limit: Slow start.\n")
    said = scpslab(tmp_path, "assignment", "check", fails=1)[0]
    assert "2 words of at most 180" in said
    assert "0 words besides the headings; expected at least 50" in said
    assert "large_goodput" not in "".join(line for line in said.splitlines() if "missing" in line)
    assert "whether it is right, the grader says" in said
    assert "right " not in said.replace("right, the", "")
    handed_in = scpslab(tmp_path, "assignment", "submit")[0].strip()
    before = (tmp_path / handed_in).read_bytes()
    scpslab(tmp_path, "assignment", "submit")
    assert (tmp_path / handed_in).read_bytes() == before

    course = load_course(tmp_path / "satnet")
    found = submission.read(tmp_path / handed_in)
    verified = variants.verify(found.variant, course.file.public_key)
    given = plans(course.assignment("first-steps"), verified)
    assert verified.members == ("anna",)
    assert {name: run.plans for name, run in found.runs().items()} == given
    assert course.secret().content.hex().encode() not in before


def test_a_student_s_mistakes_are_named_and_can_be_undone(tmp_path):
    mine = tmp_path / "mine"
    scpslab(tmp_path, "assignment", "start", "first-steps", "--into", "mine")
    scpslab(tmp_path, "assignment", "run", "--unpredicted")
    (mine / "answers.yaml").write_text("rtt: 254\nlimit: RATE\n")
    said = scpslab(tmp_path, "assignment", "check", fails=1)[0]
    assert "The echo has to come back, too." in said
    assert "The link was idle most of the time" in said
    handed_out = (mine / "small-window.yaml").read_bytes()
    (mine / "small-window.yaml").write_bytes(handed_out.replace(b"MB", b"kB"))
    (mine / "large-window.yaml").unlink()
    (mine / "handout.md").write_text("my notes")
    assert (
        "found large-window.yaml, small-window.yaml missing or changed"
        in scpslab(tmp_path, "assignment", "check", fails=2)[1]
    )
    assert "small-window.yaml: restored; what was there is" in scpslab(tmp_path, "assignment", "restore")[0]
    assert (mine / "small-window.yaml").read_bytes() == handed_out
    assert (mine / "handout.md").read_text() == "my notes"
    (capture,) = mine.glob("runs/small-window-*/cells/r1/captures/h2.pcap")
    before = capture.read_bytes()
    capture.write_bytes(before + b"x")
    assert "run small-window: found what the grader would hold" in scpslab(tmp_path, "assignment", "submit", fails=2)[1]
    scpslab(tmp_path, "assignment", "restore")
    scpslab(tmp_path, "assignment", "run")
    assert capture.read_bytes() == before
    (table,) = mine.glob("runs/small-window-*/results.csv")
    table.write_bytes(table.read_bytes().replace(b"transfer", b"transFer"))
    assert "the log records no run with these results" in scpslab(tmp_path, "assignment", "submit", fails=2)[1]
    scpslab(tmp_path, "assignment", "submit", "--anyway")
    scpslab(tmp_path, "assignment", "run")
    scpslab(tmp_path, "assignment", "submit")


def test_points_of_a_person_lead_to_the_final_grade_in_a_grade_book(tmp_path):
    (tmp_path / "roster.csv").write_text(
        'student,name,email,group\nbo,"Li, Bo",bo@example.org,g1\ndi,Di,di@example.org,g1\n'
    )
    scpslab(tmp_path, "course", "new", "satnet", "--assignment", "first-steps")
    scpslab(tmp_path, "course", "issue", "--course", "satnet", "--roster", "roster.csv")
    variants_ = [
        tmp_path / "satnet" / "issued" / "term-1" / student / "first-steps.variant.json" for student in ("bo", "di")
    ]
    assert variants_[0].read_bytes() == variants_[1].read_bytes()
    scpslab(tmp_path, "assignment", "start", "first-steps", "--variant", str(variants_[0]), "--into", "mine")
    scpslab(tmp_path, "assignment", "run", "--unpredicted")
    (tmp_path / "mine" / "answers.yaml").write_text("limit: Window\nlarge_limit: It is slow start.\n")
    handed_in = scpslab(tmp_path, "assignment", "submit")[0].strip()
    grade = (
        "grade",
        handed_in,
        "--course",
        "satnet",
        "--roster",
        "roster.csv",
        "--student",
        "di",
        "--marks",
        "marks.csv",
    )
    table, said = scpslab(tmp_path, *grade, "--review", "review")
    assert table.splitlines()[1].split()[:4] == ["graded", "1", "17", "8"]
    assert "marks.csv: 2 to decide" in said
    (page,) = (tmp_path / "review").glob("001-*.html")
    assert "Li, Bo (bo), Di (di)" in page.read_text()
    assert " kbit/s</p>" in page.read_text()
    # Nobody's grade is final as long as a person has to decide.
    assert scpslab(tmp_path, *grade, "--format", "moodle")[0].splitlines() == ["ID number,Email address"]
    text = (tmp_path / "marks.csv").read_text()
    (tmp_path / "marks.csv").write_text(
        text.replace("large_limit,4,,", "large_limit,4,2.5,Half of it.").replace("write-up.md,4,", "write-up.md,4,5")
    )
    assert 'found "5" points' in scpslab(tmp_path, *grade, fails=1)[1]
    (tmp_path / "marks.csv").write_text(
        (tmp_path / "marks.csv").read_text().replace("write-up.md,4,5", "write-up.md,4,3")
    )
    book = list(csv.reader(io.StringIO(scpslab(tmp_path, *grade, "--format", "moodle")[0])))
    assert [row[:3] for row in book[1:]] == [["bo", "bo@example.org", "6.5"], ["di", "di@example.org", "6.5"]]
    assert "answer large_limit: 2.5 of 4, Half of it." in book[1][3]
    canvas = scpslab(tmp_path, *grade, "--format", "canvas")[0].splitlines()
    assert canvas[1:3] == ["    Points Possible,,,,,17", '"Li, Bo",,bo,bo,,6.5']
