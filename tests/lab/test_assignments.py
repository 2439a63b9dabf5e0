"""An assignment from its start to the file that is handed in, as instructor and student type it."""

import csv
import io
import os
import re
import shutil
from functools import partial

import pytest

from scpslab.running import RunOptions
from scpslab_course.course import variant as variants
from scpslab_course.course.assignment import FOLDER, INSTRUCTOR
from scpslab_course.course.folder import load_course
from scpslab_course.grading import submission
from scpslab_course.grading.compare import runs_of
from tests.lab import command, parts
from tests.lab.made_up_class import assignments
from tools import instructors


@pytest.fixture
def scpslab(tmp_path):
    """Types a command in the test's folder; what it prints, or its messages if it ends with another code than 0."""
    return partial(command.scpslab, folder=tmp_path)


@pytest.fixture
def typed(scpslab):
    """Types the words of a command on an assignment."""
    return lambda words, code=0: scpslab("assignment", *words.split(), code=code)


@pytest.mark.parametrize("name", assignments("SCPSLAB_CLASS" in os.environ))
def test_practice_answers_are_current(name, tmp_path):
    """What BBR draws follows from the guest's bytes: other packages give it other numbers."""
    ended = command.ended("course", "practice", name, "--check", folder=tmp_path)
    if ended.returncode and (differs := parts.not_published()):
        pytest.skip(f"found other answers, in a lab of other parts: {differs}")
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("name", assignments("SCPSLAB_CLASS" in os.environ))
def test_a_handout_shows_lines_that_its_practice_run_prints(name, tmp_path, scpslab):
    text = (FOLDER / name / "handout.md").read_text()
    shown = re.search(r"practice variant\. Your.+?┃ (.+) ┃ n ┃\n +(│ .+ │)\n", text, re.DOTALL)
    if shown is None or parts.not_published():
        pytest.skip("found no lines, or a lab of other parts")
    scpslab("assignment", "start", name, "--out", "mine")
    scpslab("assignment", "run", "--unpredicted", "--in", "mine")
    printed = []
    for run in (tmp_path / "mine" / "runs").iterdir():
        columns = scpslab("results", run, "--format", "csv").splitlines()[0].split(",")
        metrics = [head for head in re.split(r"[ ┃]+", shown[1]) if head not in columns]
        ended = command.ended("results", run, "--metric", ",".join(metrics), folder=tmp_path)
        printed += ended.stdout.splitlines()
    assert shown[2] in printed


def test_a_student_gets_a_variant_works_and_hands_in(tmp_path, scpslab, typed):
    (tmp_path / "roster.csv").write_text('student,name\nanna,"Müller, Anna"\nbo,Bo\n')
    scpslab("course", "new", "satnet", "--assignment", "first-steps")
    issued = command.ended("course", "issue", "--course", "satnet", "--roster", "roster.csv", folder=tmp_path)
    key = issued.stderr.split("key ")[1].strip()
    variant = "satnet/issued/term-1/anna/first-steps.variant.json"
    scpslab("assignment", "start", "first-steps", "--variant", variant, "--key", key, "--out", "mine")
    predict = ("assignment", "predict")
    assert "before the run" in scpslab(*predict, "small_s", "10..20 s")
    assert "expected one of small_s" in scpslab(*predict, "small", "10..20 s", code=2)
    assert "no complete run" in typed("submit", code=2)
    assert "found no prediction of speedup, large_goodput" in typed("run", code=2)
    # No prediction has to come before this one.
    assert "rtt_mean_ms" in typed("run round-trip")
    assert "goodput_bps" in typed("run --unpredicted")
    late = command.ended(*predict, "speedup", "3..4", folder=tmp_path)
    assert ", late: " in late.stdout
    assert late.stderr.endswith('next: "scpslab assignment check"\n')
    (tmp_path / "mine" / "answers.yaml").write_text("rtt: 500 MS\nbdp: 120\nlimit: Window\nlarge_limit: Slow start.\n")
    checked = command.ended("assignment", "check", folder=tmp_path)
    assert checked.returncode == 1
    assert "2 words of at most 180" in checked.stdout
    assert "0 words besides the headings; expected at least 50" in checked.stdout
    assert "large_goodput" not in "".join(line for line in checked.stdout.splitlines() if "missing" in line)
    assert "whether it is right, the grader says" in checked.stdout
    assert "right " not in checked.stdout.replace("right, the", "")
    handed_in = tmp_path / typed("submit").strip()
    before = handed_in.read_bytes()
    typed("submit")
    assert handed_in.read_bytes() == before

    course, found = load_course(tmp_path / "satnet"), submission.read(handed_in)
    verified = variants.verify(found.variant, course.file.public_key)
    assert verified.members == ("anna",)
    given = runs_of(course.assignment("first-steps"), verified, RunOptions())
    assert {name: run.plans for name, run in found.runs().items()} == {name: run.plans for name, run in given.items()}
    assert course.secret().content.hex().encode() not in before


def test_a_student_s_mistakes_are_named_and_can_be_undone(tmp_path, typed):
    mine = tmp_path / "mine"
    typed("start first-steps --out mine")
    typed("run --unpredicted")
    (mine / "answers.yaml").write_text("rtt: 254\nlimit: RATE\n")
    checked = command.ended("assignment", "check", folder=tmp_path)
    assert checked.returncode == 1
    assert "The echo has to come back, too." in checked.stdout
    assert "The link was idle most of the time" in checked.stdout
    handed_out = (mine / "small-window.yaml").read_bytes()
    (mine / "small-window.yaml").write_bytes(handed_out.replace(b"MB", b"kB"))
    (mine / "large-window.yaml").unlink()
    (mine / "handout.md").write_text("my notes")
    assert "found large-window.yaml, small-window.yaml missing or changed" in typed("check", code=2)
    assert "small-window.yaml: restored; what was there is" in typed("restore")
    assert (mine / "small-window.yaml").read_bytes() == handed_out
    assert (mine / "handout.md").read_text() == "my notes"
    (capture,) = mine.glob("runs/small-window-*/cells/r1/captures/h2.pcap")
    before = capture.read_bytes()
    capture.write_bytes(before + b"x")
    assert "run small-window: found what the grader would hold" in typed("submit", code=2)
    typed("restore")
    typed("run")
    assert capture.read_bytes() == before
    (table,) = mine.glob("runs/small-window-*/results.csv")
    table.write_bytes(table.read_bytes().replace(b"transfer", b"transFer"))
    assert "the log records no run with these results" in typed("submit", code=2)
    typed("submit --anyway")
    typed("run")
    typed("submit")


def test_points_of_a_person_lead_to_the_final_grade_in_a_grade_book(tmp_path, scpslab, typed):
    people = 'bo,"Li, Bo",bo@example.org,g1\ndi,Di,di@example.org,g1\n'
    (tmp_path / "roster.csv").write_text(f"student,name,email,group\n{people}")
    course = ("--course", "satnet", "--roster", "roster.csv")
    scpslab("course", "new", "satnet", "--assignment", "first-steps")
    scpslab("course", "issue", *course)
    issued = tmp_path / "satnet" / "issued" / "term-1"
    of_bo, of_di = (issued / student / "first-steps.variant.json" for student in ("bo", "di"))
    assert of_bo.read_bytes() == of_di.read_bytes()
    scpslab("assignment", "start", "first-steps", "--variant", of_bo, "--out", "mine")
    typed("run --unpredicted")
    (tmp_path / "mine" / "answers.yaml").write_text("limit: Window\nlarge_limit: It is slow start.\n")
    grade = ("grade", typed("submit").strip(), *course, "--student", "di", "--marks", "marks.csv")
    reviewed = command.ended(*grade, "--review", "review", folder=tmp_path)
    assert reviewed.stdout.splitlines()[1].split()[:4] == ["graded", "1", "17", "8"]
    assert "marks.csv: 2 to decide" in reviewed.stderr
    (page,) = (tmp_path / "review").glob("001-*.html")
    assert "Li, Bo (bo), Di (di)" in page.read_text()
    assert " kbit/s</p>" in page.read_text()
    # Beside what a person marks stand the packets of the cells that were run again.
    links = dict(map(reversed, re.findall(r'<a href="([^"]+)">([\w-]+)</a>', page.read_text())))
    assert links.keys() >= {"small-window", "large-window"}
    assert all('id="columns-0"' in (tmp_path / "review" / link).read_text() for link in links.values())
    # Nobody's grade is final as long as a person has to decide.
    assert scpslab(*grade, "--format", "moodle").splitlines() == ["ID number,Email address"]
    marks = tmp_path / "marks.csv"
    marks.write_text(
        marks.read_text()
        .replace("large_limit,4,,", "large_limit,4,2.5,Half of it.")
        .replace("write-up.md,4,", "write-up.md,4,5")
    )
    assert 'found "5" points' in scpslab(*grade, code=1)
    marks.write_text(marks.read_text().replace("write-up.md,4,5", "write-up.md,4,3"))
    _, *book = csv.reader(io.StringIO(scpslab(*grade, "--format", "moodle")))
    assert [row[:3] for row in book] == [["bo", "bo@example.org", "6.5"], ["di", "di@example.org", "6.5"]]
    assert "answer large_limit: 2.5 of 4, Half of it." in book[0][3]
    canvas = scpslab(*grade, "--format", "canvas").splitlines()
    assert canvas[1:3] == ["    Points Possible,,,,,17", '"Li, Bo",,bo,bo,,6.5']


def test_an_instructor_who_has_the_archive_goes_from_the_course_to_a_grade(tmp_path, scpslab, typed):
    """The assignment is as a wheel has it, without its instructor's part."""
    given = ("--instructors", instructors.write_archive(tmp_path))
    (tmp_path / "roster.csv").write_text("student\nbo\n")
    course = ("--course", "satnet", "--roster", "roster.csv")
    scpslab("course", "new", "satnet", "--assignment", "first-steps")
    own = tmp_path / "satnet" / "assignments" / "first-steps"
    shutil.copytree(FOLDER / "first-steps", own, ignore=shutil.ignore_patterns(INSTRUCTOR))
    assert "expected the instructor's part" in scpslab("course", "issue", *course, code=2)
    scpslab("course", "issue", *course, *given)
    scpslab("course", "publish", "public", "--course", "satnet")
    variant = "satnet/issued/term-1/bo/first-steps.variant.json"
    scpslab("assignment", "start", "public/assignments/first-steps", "--variant", variant, "--out", "mine")
    typed("run --unpredicted")
    (tmp_path / "mine" / "answers.yaml").write_text("limit: Window\n")
    grade = ("grade", typed("submit").strip(), "--course", "satnet", "--student", "bo")
    assert "expected the instructor's part" in command.ended(*grade, folder=tmp_path).stdout
    assert scpslab(*grade, *given).splitlines()[1].split()[:3] == ["graded", "1", "17"]
