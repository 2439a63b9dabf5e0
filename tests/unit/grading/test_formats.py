"""Every format has the keys and types that its platform documents, and a student's words stay words in it."""

import base64
import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from scpslab_course.cli.grade import _say_waiting, _Target
from scpslab_course.course.folder import Student
from scpslab_course.grading.formats import FORMATS, Facts, line, several
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
VARIABLES = {"OWNER": "anna-b", "CLASSROOM": "sat", "SUBMISSION_TAG": "submit/2026-1"}
FACTS = Facts("Satellite networks", "2026w", "2026-11-22T20:00:00Z", STUDENTS, VARIABLES)


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


def test_github_classroom_has_version_1_and_whole_scores_or_says_error():
    found = json.loads(base64.b64decode(write("github-classroom", GRADED), validate=False))

    assert (found["version"], found["status"], found["max_score"]) == (1, "fail", 800)
    assert sum(test["score"] for test in found["tests"]) == 250
    for test in found["tests"]:
        assert set(test) == {"name", "status", "score", "message", "test_code", "filename", "line_no", "duration"}
        assert test["status"] in ("pass", "fail", "error")
    for grade in (HELD, UNGRADED):
        refused = json.loads(base64.b64decode(write("github-classroom", grade)))
        assert refused["status"] == "error"
        assert [(set(test), test["status"]) for test in refused["tests"]] == [({"name", "status", "message"}, "error")]
        # GitHub's reporter adds up the scores unless max_score is 0 (autograding-grading-reporter, notify-classroom.js).
        assert refused["max_score"] == 0


REPORT = 'title=Autograding report{}{{"totalPoints":800,"maxPoints":800}}'


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "words", [f"::notice {REPORT.format('::')}", f"x ##[notice {REPORT.format(']')}"], ids=["v2", "v1"]
)
def test_a_student_s_words_are_no_commands_of_github_s_runner(name, words):
    """A line that begins with "::", or has "##[" anywhere, is one (actions/runner, ActionCommand.cs)."""
    grade = Grade(Path(f"{words}.tar.gz"), reason=f"{words}.tar.gz: found nothing; expected a submission.")
    text = write(name, grade)
    if name == "github-classroom":
        text = json.loads(base64.b64decode(text))["tests"][0]["message"]
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]


def test_classroom50_has_the_keys_of_its_schema():
    found = json.loads(write("classroom50", GRADED))

    named = "schema classroom assignment assignment_type owner submission commit release review datetime graded_at"
    assert {*named.split(), "score", "max-score", "tests"} <= set(found)
    said = [found[key] for key in ("schema", "owner", "classroom", "submission")]
    assert said == ["classroom50/result/v1", "anna-b", "sat", "submit/2026-1"]
    assert (found["score"], found["max-score"]) == (250, 800)
    for test in found["tests"]:
        assert {"test-name", "passed", "score", "max-score"} <= set(test)
        assert isinstance(test["score"], int)
        assert isinstance(test["passed"], bool)


OF_GITHUB = {"GITHUB_REPOSITORY": "cs/sat-small-anna-b", "GITHUB_SHA": "5c5c"}
LINKS = {"COMMIT_URL": "https://x/commit", "RELEASE_URL": "https://x/release", "REVIEW_URL": "https://x/compare"}


def refused_by_classroom50(found):
    """Why its runner and its collector do not take a result (foundation50/classroom50, validate_result)."""
    if not str(found["submission"]).startswith("submit/"):
        return "submission"
    empty = [key for key in ("commit", "release", "review", "datetime") if not found[key]]
    whole = all(type(found[key]) is int and found[key] >= 0 for key in ("score", "max-score"))
    return ", ".join(empty) or ("" if whole and found["score"] <= found["max-score"] else "score")


@pytest.mark.parametrize(
    ("more", "links"),
    [
        (
            OF_GITHUB,
            [
                *["https://github.com/cs/sat-small-anna-b/commit/5c5c"] * 2,
                "https://github.com/cs/sat-small-anna-b/releases/tag/submit%2F2026-1",
            ],
        ),
        ({**OF_GITHUB, **LINKS}, ["https://x/commit", "https://x/compare", "https://x/release"]),
    ],
    ids=["made", "set by the runner"],
)
def test_classroom50_takes_the_result(more, links):
    found = json.loads(write("classroom50", GRADED, facts=replace(FACTS, environment={**VARIABLES, **more})))

    assert refused_by_classroom50(found) == ""
    assert [found[key] for key in ("commit", "review", "release")] == links


def test_prairielearn_has_a_share_and_is_not_gradable_without_a_grade():
    found = json.loads(write("prairielearn", GRADED))

    assert (found["gradable"], found["score"]) == (True, 2.5 / 8)
    keys = {"name", "description", "points", "max_points", "message", "output"}
    assert all(set(test) == keys for test in found["tests"])
    for grade in (HELD, UNGRADED):
        refused = json.loads(write("prairielearn", grade))
        assert refused["gradable"] is False
        assert "score" not in refused
        assert len(refused["format_errors"]) == 1
    # And it stays below a megabyte.
    parts = tuple(replace(PARTS[1], name=f"n{number}", given="x" * 100_000) for number in range(1000))
    assert len(write("prairielearn", replace(SAYING, parts=parts)).encode()) < 1 << 20


def test_vpl_grades_within_moodles_bounds():
    assert write("vpl", GRADED).splitlines()[-1] == "Grade :=>>2.50"
    bounds = replace(FACTS, environment={"VPL_GRADEMIN": "0", "VPL_GRADEMAX": "100"})
    assert write("vpl", GRADED, facts=bounds).splitlines()[-1] == "Grade :=>>31.25"


@pytest.mark.parametrize("grade", [SAYING, HELD, UNGRADED], ids=["graded", "held", "ungraded"])
def test_a_student_s_words_are_no_marks_of_vpl(grade):
    lines = write("vpl", grade).splitlines()

    end = lines.index("--|>")
    assert lines[0] == "<|--"
    assert all(text.startswith(" ") and ":=>>" not in text and "--|>" not in text for text in lines[1:end])
    assert lines[end + 1 :] == (["Grade :=>>2.50"] if grade is SAYING else [])


def test_nbgrader_has_its_columns_leaves_out_who_has_no_grade_and_no_cell_is_a_formula():
    (row,) = csv.DictReader(io.StringIO(write("nbgrader", GRADED, HELD, UNGRADED)))

    columns = "assignment duedate timestamp student_id last_name first_name email raw_score late_submission_penalty"
    assert list(row) == [*columns.split(), "score", "max_score"]
    assert (row["student_id"], row["score"], row["max_score"]) == ("anna", "2.5", "8")
    assert (row["last_name"], row["email"]) == ("'=HYPERLINK(1)", "'@anna")
    assert not any(value.startswith(("=", "+", "-", "@", "\t", "\r")) for value in row.values())


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
    assert [row[3] for row in table("nbgrader", FINAL)[1:]] == ["anna", "bo"]
    assert [row[0] for row in table("moodle", copy)[1:]] == ["di"]
    assert [row[3] for row in table("nbgrader", copy)[1:]] == ["di"]


AGAIN = replace(FINAL, path=Path("again.tar.gz"), sha256="6d" * 32, parts=(replace(WHY, earned=1.0),))


@pytest.mark.parametrize("name", ["moodle", "canvas", "mail-merge", "nbgrader"])
@pytest.mark.parametrize(
    "again",
    [AGAIN, replace(AGAIN, parts=(PARTS[3],)), replace(AGAIN, findings=HELD.findings)],
    ids=["final", "waits", "held"],
)
def test_no_score_of_who_has_handed_in_two_files_is_chosen(name, again, capsys):
    di = replace(FINAL, members=("di",), student="di")
    assert table(name, FINAL, di, again) == table(name, again, di, FINAL) == table(name, di)

    _say_waiting([FINAL, di, again], None)
    said = "found anna.submission.tar.gz and again.tar.gz; expected one file."
    err = " ".join(capsys.readouterr().err.split())
    assert [f"{one}, small: {said}" in err for one in ("anna", "bo", "di")] == [True, True, False]
    # One of another assignment is no second one.
    assert (
        len(table(name, FINAL, replace(AGAIN, assignment="large"))) >= len(table(name, FINAL)) > len(table(name, HELD))
    )


@pytest.mark.parametrize("name", ["moodle", "canvas", "mail-merge", "nbgrader"])
def test_each_member_of_a_group_has_one_line_if_both_hand_in_the_same_file(name):
    assert table(name, FINAL, replace(FINAL, path=Path("bo.tar.gz"))) == table(name, FINAL)
    assert several([FINAL, replace(FINAL, path=Path("bo.tar.gz"))]) == {}


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


def test_a_mail_merge_has_an_address_the_points_and_the_comments():
    head, *rows = table("mail-merge", FINAL, GRADED)

    assert head == ["email", "name", "student", "assignment", "score", "of", "feedback"]
    assert [row[:6] for row in rows] == [
        ["'@anna", "'=HYPERLINK(1), Anna", "anna", "small", "6", "8"],
        ["", "", "bo", "small", "6", "8"],
    ]


def test_junit_is_xml_with_a_case_for_each_part():
    root = ET.fromstring(write("junit", SAYING, HELD, UNGRADED))  # noqa: S314 (our own output)

    counts = [
        [one.get(name) for name in ("tests", "failures", "skipped", "errors")] for one in root.findall("testsuite")
    ]
    assert counts == [["4", "2", "1", "0"], ["1", "0", "0", "1"], ["1", "0", "0", "1"]]
    assert not list(root.iter("script"))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("grade", [SAYING, HELD, UNGRADED], ids=["graded", "held", "ungraded"])
def test_no_format_has_control_characters_of_a_student(name, grade):
    assert not {"\x1b", "\u202e"} & set(write(name, grade))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("grade", [HELD, UNGRADED], ids=["held", "ungraded"])
def test_no_format_has_points_for_who_has_no_grade(name, grade):
    """Held scores are shown in words; no field of a platform has them."""
    text = write(name, grade)
    if name == "github-classroom":
        text = base64.b64decode(text).decode()
    if text.startswith("{"):
        found = json.loads(text)
        assert "score" not in found
        assert not any("score" in test for test in found.get("tests", []))
    if name in ("nbgrader", "moodle", "mail-merge", "canvas"):
        assert len(text.splitlines()) == (2 if name == "canvas" else 1)
    if name in ("table", "junit"):
        assert grade.status in text
    assert grade.status is not Status.GRADED


@pytest.mark.parametrize("name", [name for name, kind in FORMATS.items() if kind.of_one])
@pytest.mark.parametrize(("earned", "points"), [(3.05, 5), (None, 5), (0.0, 0)])
def test_what_students_see_at_once_has_no_numbers_of_a_hidden_trial(name, earned, points):
    """Each upload would measure the path, which is the same for everybody of a term."""
    says, numbers = "61% (goodput_bps 1.235e+05)", {"goodput_bps": 123_456.7}
    hidden = Graded("trial", "noisy", "On a noisy path.", points, earned, says, "policy.py", numbers=numbers)
    broken = replace(hidden, name="full", comment="0%, not completed: ValueError: 1.235e+05", numbers={})
    seen = replace(hidden, name="seen", earned=1.0, points=2, numbers=None, comment="50% (goodput_bps 777)")
    text = write(name, replace(GRADED, parts=(*PARTS[:3], hidden, broken, seen)))
    text = base64.b64decode(text).decode() if name == "github-classroom" else text
    assert "1.235e+05" not in text
    assert "50% (goodput_bps 777)" in text
    # A report of tests may be shown to students, too.
    assert "1.235e+05" not in write("junit", replace(GRADED, parts=(hidden, broken)))
    # Whoever marks sees them.
    assert "ValueError" in write("mail-merge", replace(GRADED, parts=(replace(broken, earned=0.0, points=2),)))


def test_an_interval_that_holds_the_number_has_not_failed():
    """However narrow it is, its width costs a little."""
    held = Graded("prediction", "gain", "How much?", 1, 0.96, "it was 2.1", "2..2.4", is_inside=True)
    grade = replace(GRADED, parts=(held, replace(held, name="missed", earned=0.97, is_inside=False)))
    found = {
        "gradescope": [test["status"] for test in json.loads(write("gradescope", grade))["tests"]],
        "classroom50": [test["passed"] for test in json.loads(write("classroom50", grade))["tests"]],
        "github-classroom": [
            test["status"] for test in json.loads(base64.b64decode(write("github-classroom", grade)))["tests"]
        ],
        "junit": [case.find("failure") is None for case in ET.fromstring(write("junit", grade)).iter("testcase")],  # noqa: S314
    }
    assert found == {
        "gradescope": ["passed", "failed"],
        "classroom50": [True, False],
        "github-classroom": ["pass", "fail"],
        "junit": [True, False],
    }


@pytest.mark.parametrize("words", [":::error::x", "::::", ":" * 99, "#" * 9 + "[group]"])
def test_marks_of_platforms_are_taken_apart_however_they_overlap(words):
    assert not any(mark in line(words) for mark in ("::", "##["))


def test_a_folder_has_no_grade_of_an_earlier_grading(tmp_path):
    kind, folder = FORMATS["gradescope"], tmp_path / "grades"
    bo = replace(GRADED, student="bo", members=("bo",))
    _Target(folder, is_folder=True).write([GRADED, bo], kind, FACTS, is_whole=True)
    others = ["notes.json", "02-bo.json", "002-bo.txt", "2026-bo.json"]
    for name in others:
        (folder / name).touch()

    again = _Target(folder, is_folder=True)
    again.write([bo], kind, FACTS)
    # As long as a class is graded, nothing is removed.
    assert {path.name for path in folder.iterdir()} == {"001-anna.json", "001-bo.json", "002-bo.json", *others}
    again.write([bo], kind, FACTS, is_whole=True)
    assert {path.name for path in folder.iterdir()} == {"001-bo.json", *others}


def test_a_folder_has_no_grade_of_an_earlier_grading_of_more_than_a_thousand(tmp_path):
    kind, folder = FORMATS["gradescope"], tmp_path / "grades"
    target = _Target(folder, is_folder=True)
    for name in ("999-bo.json", "1000-bo.json", "1001-di.json", "1000-bo.txt"):
        (folder / name).touch()
    target.write([GRADED], kind, FACTS, is_whole=True)
    assert {path.name for path in folder.iterdir()} == {"001-anna.json", "1000-bo.txt"}
