"""Every format has the keys and types that its platform documents, and a student's words stay words in it."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from scpslab.core.errors import UsageError
from scpslab.core.project import ROOT
from scpslab_course.cli.grade import _say_waiting, _texts
from scpslab_course.course.folder import Student
from scpslab_course.course.model import Item
from scpslab_course.grading.formats import FORMATS, Facts, several
from scpslab_course.grading.grade import Code, Concern, Grade, Graded, Status

HOSTILE = "<script>alert(1)</script>\nGrade :=>>100\n--|>\n=cmd()\x1b[31m\u202e& `x` </testcase>"
PARTS = (
    Graded("prediction", "time", "How long?", 1, 0.5, "it was 12.5", "11 s"),
    Graded("answer", "bdp", "What is the product?", 2, 2.0, "right", "100 kB"),
    Graded("answer", "limit", "What limits?", 1, 0.0, "no answer"),
    Graded("answer", "why", "Why?", 4, None, "a person marks it", HOSTILE),
)
GRADED = Grade(
    *(Path("anna.submission.tar.gz"), "5c" * 32, "small", "anna", ("anna",)),
    parts=PARTS,
    cells=("transfer/r1",),
    seconds=12.3,
)
HELD = replace(GRADED, findings=(Concern(Code.EDITED_RESULTS, f"found {HOSTILE}; expected others"),))
UNGRADED = Grade(Path("x.tar.gz"), reason=f"x.tar.gz: found {HOSTILE}; expected a submission.")
SAYING = replace(GRADED, parts=tuple(replace(part, given=HOSTILE, comment=HOSTILE) for part in PARTS))
STUDENTS = {"anna": Student("anna", "=HYPERLINK(1), Anna", "@anna")}
FACTS = Facts("Satellite networks", "2026w", STUDENTS)


def write(name, *grades, facts=FACTS):
    return FORMATS[name].write(grades, facts)


def test_gradescope_has_the_documented_keys_and_no_others():
    found = json.loads(write("gradescope", GRADED))

    formats = {"output_format", "test_output_format", "test_name_format"}
    top = {"score", "execution_time", "output", "visibility", "stdout_visibility", "extra_data", "tests"} | formats
    assert set(found) == top
    assert found["score"] == 2.5 == sum(test["score"] for test in found["tests"])
    assert {found[key] for key in formats} == {"text"}
    for test in found["tests"]:
        assert set(test) == {"score", "max_score", "status", "name", "number", "output", "visibility"}
        assert test["status"] in ("passed", "failed")
        # One hidden test hides the total.
        assert test["visibility"] == "visible"
    assert [test["max_score"] for test in found["tests"]] == [1, 2, 1]


def table(name, *grades):
    return [list(row) for row in csv.reader(io.StringIO(write(name, *grades)))]


WHY = replace(PARTS[3], earned=3.5, comment=HOSTILE)
FINAL = replace(GRADED, student="group/g1", members=("anna", "bo"), parts=(*PARTS[:3], WHY))


def test_moodle_s_gradebook_has_a_line_for_each_student_with_a_final_grade():
    head, *rows = table("moodle", FINAL, GRADED, HELD)

    assert head == ["ID number", "Email address", "small", "small (feedback)"]
    assert [row[:3] for row in rows] == [["anna", "'@anna", "6"], ["bo", "", "6"]]
    assert rows[0][3].startswith("prediction time: 0.5 of 1, it was 12.5; answer bdp: 2 of 2, right; ")


def test_the_grade_of_an_accepted_copy_is_that_of_who_handed_it_in():
    copy = replace(FINAL, submitter="di", findings=HELD.findings, is_accepted=True)
    for name in ("moodle", "csv"):
        assert [row[0] for row in table(name, FINAL)[1:]] == ["anna", "bo"]
        assert [row[0] for row in table(name, copy)[1:]] == ["di"]


AGAIN = replace(FINAL, path=Path("again.tar.gz"), sha256="6d" * 32, parts=(replace(WHY, earned=1.0),))


@pytest.mark.parametrize("name", ["moodle", "canvas"])
@pytest.mark.parametrize(
    "again",
    [AGAIN, replace(AGAIN, parts=(PARTS[3],)), replace(AGAIN, findings=HELD.findings)],
    ids=["final", "waits", "held"],
)
def test_no_score_of_who_has_handed_in_two_files_is_chosen(name, again, capsys):
    di = replace(FINAL, members=("di",), student="di")
    assert table(name, FINAL, di, again) == table(name, again, di, FINAL) == table(name, di)

    assert [row[5] for row in table("csv", FINAL, di, again)[1:]] == ["", "", "6", "", ""]

    _say_waiting([FINAL, di, again], None)
    said = "found anna.submission.tar.gz and again.tar.gz; expected one file."
    err = " ".join(capsys.readouterr().err.split())
    assert [f"{one}, small: {said}" in err for one in ("anna", "bo", "di")] == [True, True, False]
    # One of another assignment is no second one.
    assert (
        len(table(name, FINAL, replace(AGAIN, assignment="large"))) >= len(table(name, FINAL)) > len(table(name, HELD))
    )


@pytest.mark.parametrize("name", ["moodle", "canvas", "csv"])
def test_each_member_of_a_group_has_one_line_if_both_hand_in_the_same_file(name):
    assert table(name, FINAL, replace(FINAL, path=Path("bo.tar.gz"))) == table(name, FINAL)
    assert several([FINAL, replace(FINAL, path=Path("bo.tar.gz"))]) == {}


def test_csv_has_a_line_for_each_student_whatever_the_status():
    head, *rows = table("csv", FINAL, replace(UNGRADED, sha256="00"), replace(HELD, sha256="11", members=("di",)))

    columns = "student name email assignment status score of waiting submission feedback"
    assert head == columns.split()
    assert [row[:8] for row in rows] == [
        ["anna", "'=HYPERLINK(1), Anna", "'@anna", "small", "graded", "6", "8", "0"],
        ["bo", "", "", "small", "graded", "6", "8", "0"],
        ["", "", "", "", "ungraded", "", "", ""],
        ["di", "", "", "small", "held", "", "8", "4"],
    ]
    (row,) = table("csv", GRADED)[1:]
    assert row[-1].endswith("; answer why: - of 4, a person marks it")
    assert not any(value.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for value in row)


def test_the_page_s_program_makes_another_form_of_the_csv(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "grading.md").read_text()
    program = page.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("grades.csv").write_text(write("csv", FINAL, replace(HELD, sha256="11", members=("di",)), UNGRADED))

    exec(program, {})  # noqa: S102 (of our own page)

    found = {path.name: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert found == {
        f"{one}-small.json": {"gradable": True, "score": 0.75, "message": table("csv", FINAL)[1][-1]}
        for one in ("anna", "bo")
    }


def test_json_has_every_part():
    graded, held = json.loads(write("json", GRADED, HELD))

    assert (graded["score"], graded["of"], graded["waiting"], graded["students"]) == (2.5, 8, 4, ["anna"])
    assert [part["earned"] for part in graded["parts"]] == [0.5, 2, 0, None]
    keys = ("kind", "name", "question", "given", "comment", "earned", "points", "is_right")
    assert all(set(part) == set(keys) for part in graded["parts"])
    assert (held["status"], held["findings"]) == ("held", ["edited-results"])


def test_canvas_s_gradebook_has_its_columns_and_the_points_possible():
    head, points, *rows = table("canvas", FINAL, replace(FINAL, assignment="large", members=("bo",)), HELD)

    assert head == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "small", "large"]
    assert points == ["    Points Possible", "", "", "", "", "8", "8"]
    assert rows == [["'=HYPERLINK(1), Anna", "", "anna", "anna", "", "6", ""], ["bo", "", "bo", "bo", "", "6", "6"]]


def test_canvas_takes_the_file_by_the_rules_of_its_importer():
    """Those of lib/gradebook_importer.rb in instructure/canvas-lms."""
    facts = replace(FACTS, students={"anna": Student("anna", "Bauer; X, Anna"), "bo": Student("bo", "Li, Bo")})
    text = write("canvas", replace(FINAL, parts=(replace(PARTS[1], points=200, earned=100.25),)), facts=facts)
    head, points, *rows = csv.reader(io.StringIO(text))

    assert "Student" in head[0]
    assert "ID" in head[1]
    # The third and the fourth are SIS ids only by these names, and the section is the last one before assignments.
    assert (head[2:5], head[5:]) == (["SIS User ID", "SIS Login ID", "Section"], ["small"])
    read_only = "Current Score|Current Points|Current Grade|Final Score|Final Points|Final Grade|Override"
    assert not re.search(read_only, " ".join(head[5:]))
    assert "Points Possible" in points[0]
    assert not any("Points Possible" in row[0] for row in rows)
    # Semicolons are the separator if they give the first three lines equally many fields, and more than commas do.
    first = text.splitlines()[:3]
    by = {mark: {len(next(csv.reader([line], delimiter=mark))) for line in first} for mark in ";,"}
    assert by == {";": {1}, ",": {6}}
    # Grades are shown, and compared, to the hundredth.
    assert [(row[0], row[5]) for row in rows] == [("Bauer; X, Anna", "100.25"), ("Li, Bo", "100.25")]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("grade", [SAYING, HELD, UNGRADED], ids=["graded", "held", "ungraded"])
def test_no_format_has_control_characters_of_a_student(name, grade):
    assert not {"\x1b", "\u202e"} & set(write(name, grade))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("grade", [HELD, UNGRADED], ids=["held", "ungraded"])
def test_no_format_has_points_for_who_has_no_grade(name, grade):
    """Held scores are shown in words; no field of a platform has them."""
    text = write(name, grade)
    if name in ("gradescope", "json"):
        found = json.loads(text) if name == "gradescope" else json.loads(text)[0]
        assert not {"score", "tests", "parts"} & set(found)
    if name in ("moodle", "canvas"):
        assert len(text.splitlines()) == (2 if name == "canvas" else 1)
    if name in ("table", "csv", "json"):
        assert grade.status in text
    assert grade.status is not Status.GRADED


@pytest.mark.parametrize("name", ["gradescope", "json"])
@pytest.mark.parametrize(("earned", "points"), [(3.05, 5), (None, 5), (0.0, 0)])
def test_what_students_see_at_once_has_no_numbers_of_a_hidden_trial(name, earned, points):
    """Each upload would measure the path, which is the same for everybody of a term."""
    says, numbers = "61% (goodput_bps 1.235e+05)", {"goodput_bps": 123_456.7}
    hidden = Graded("trial", "noisy", "On a noisy path.", points, earned, says, "policy.py", numbers=numbers)
    broken = replace(hidden, name="full", comment="0%, not completed: ValueError: 1.235e+05", numbers={})
    seen = replace(hidden, name="seen", earned=1.0, points=2, numbers=None, comment="50% (goodput_bps 777)")
    text = write(name, replace(GRADED, parts=(*PARTS[:3], hidden, broken, seen)))
    assert "1.235e+05" not in text
    assert "50% (goodput_bps 777)" in text
    # Whoever marks sees them.
    assert "ValueError" in write("csv", replace(GRADED, parts=(replace(broken, earned=0.0, points=2),)))


def test_an_interval_that_holds_the_number_has_not_failed():
    """However narrow it is, its width costs a little."""
    held = Graded("prediction", "gain", "How much?", 1, 0.96, "it was 2.1", "2..2.4", is_inside=True)
    grade = replace(GRADED, parts=(held, replace(held, name="missed", earned=0.97, is_inside=False)))
    assert [test["status"] for test in json.loads(write("gradescope", grade))["tests"]] == ["passed", "failed"]
    assert [part["is_right"] for part in json.loads(write("json", grade))[0]["parts"]] == [True, False]


def test_texts_are_written_for_programs_that_compare_them(scpslab, course, tmp_path):
    rubric = (Item(says="Says why.", points=4),)
    program = Graded("deliverable", "policy.py", "", 0, 0.0, "", "x = 1\n")
    parts = (*PARTS[:3], replace(PARTS[3], rubric=rubric), program, replace(program, name="left-out.py", given=""))
    grades = [replace(GRADED, parts=parts), replace(GRADED, parts=parts, submitter="di"), UNGRADED]
    assert _texts(grades) == {
        f"small/{whose}/{name}": content
        for whose in ("001-anna", "002-di")
        for name, content in (("why.txt", HOSTILE.encode()), ("policy.py", b"x = 1\n"))
    }
    (tmp_path / "a.tar.gz").write_text("")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "x").write_text("")
    code, _, said = scpslab(
        "grade", str(tmp_path / "a.tar.gz"), "--course", str(course.folder), "--texts", str(tmp_path / "used")
    )
    assert (code, "found something already" in said) == (UsageError.exit_code, True)
