"""The autograder's archive and what its container runs: what travels, who handed in, which file; and a result without a
score whatever goes wrong.
"""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from scpslab.core.errors import ScpslabError, UsageError
from scpslab.core.installation import version
from scpslab_course.autograder import (
    COURSE,
    METADATA,
    PARTS,
    RESULTS,
    SOURCE,
    STUDENTS,
    Wheels,
    check_own,
    write_archive,
)
from scpslab_course.autograder import __main__ as container
from scpslab_course.autograder.__main__ import submission_of, users
from scpslab_course.course.assignment import INSTRUCTOR, find, load_assignment, load_marking
from scpslab_course.course.folder import FILE, Student, load_course, make_course
from scpslab_course.course.folder import OWN as OWN_FOLDER
from scpslab_course.course.model import MARKING
from scpslab_course.grading.grade import Code, Grade, Status
from tests import golden
from tests.cases import refusal

SMALL = Path(__file__).parents[2] / "data" / "small_assignment"
ROSTER = (Student("anna", email="Anna@example.org"), Student("bo", email="bo@example.org", group="g1"))


@pytest.fixture
def archive(tmp_path):
    course = make_course(tmp_path / "satnet", "Satellites", "2026w", ["first-steps", "read-a-trace"])
    wheel = tmp_path / "x-1-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    wheels = Wheels([wheel], ["x==1"], ["3.11", "3.13"])
    write_archive(tmp_path / "a.zip", course, "2027s", load_assignment(find("first-steps")), ROSTER, wheels)
    return tmp_path / "a.zip"


def test_the_archive_has_two_scripts_that_run_the_wheels_and_one_assignment(archive):
    with zipfile.ZipFile(archive) as found:
        names = set(found.namelist())
        programs = ("setup.sh", "run_autograder", "pythons")
        modes = {name: found.getinfo(name).external_attr >> 16 & 0o777 for name in programs}
        assert modes == {"setup.sh": 0o755, "run_autograder": 0o755, "pythons": 0o644}
        assert found.read("pythons") == b"3.11 3.13\n"
        assert found.read(STUDENTS).decode().split() == ["student,email", "anna,Anna@example.org", "bo,bo@example.org"]
    assert "wheels/x-1-py3-none-any.whl" in names
    private = [name for name in names if "/instructor/" in name]
    assert private == ["course/assignments/first-steps/instructor/marking.yaml"]


def test_the_course_in_it_grades_one_assignment_of_one_term_and_has_no_secret(archive, tmp_path):
    with zipfile.ZipFile(archive) as found:
        found.extractall(tmp_path / "out")
        content = b"".join(found.read(name) for name in found.namelist())
    course = load_course(tmp_path / "out" / COURSE)
    assert (course.file.assignments, course.file.term) == (("first-steps",), "2027s")
    assert course.assignment("first-steps").material == load_assignment(find("first-steps")).material
    secret = (tmp_path / "satnet" / "secret").read_bytes().split()[-1]
    assert secret not in content
    with pytest.raises(UsageError, match="secret"):
        course.secret()


def test_the_scenarios_of_trials_travel_and_solutions_do_not(tmp_path):
    course = make_course(tmp_path / "satnet", "Satellites", "2026w", ["write-your-own"])
    assignment, wheels = load_assignment(find("write-your-own")), Wheels([], [], ["3.11"])
    write_archive(tmp_path / "a.zip", course, "2026w", assignment, ROSTER, wheels)
    with zipfile.ZipFile(tmp_path / "a.zip") as found:
        private = {name.rpartition("/")[2] for name in found.namelist() if "/instructor/" in name}
        found.extractall(tmp_path / "out")
    trials = ("answers", "change", "noisy", "outage", "shallow", "short", "slow")
    assert private == {"marking.yaml", *(f"{name}.yaml" for name in trials)}
    travelled = load_marking(load_course(tmp_path / "out" / COURSE).assignment("write-your-own")).file
    own, key = load_marking(assignment).file, course.secret().draw_key
    assert {name: one.drawn(b"any", "any", "any", "any") for name, one in travelled.trials.items()} == {
        name: one.drawn(key, "2026w", "write-your-own", name) for name, one in own.trials.items()
    }
    assert not any(one.is_drawn for one in travelled.trials.values())
    assert travelled.model_copy(update={"trials": own.trials}) == own


def test_the_same_input_gives_the_same_archive(archive, tmp_path):
    course = load_course(tmp_path / "satnet")
    wheels = Wheels([tmp_path / "x-1-py3-none-any.whl"], ["x==1"], ["3.11", "3.13"])
    write_archive(tmp_path / "b.zip", course, "2027s", load_assignment(find("first-steps")), ROSTER, wheels)
    assert (tmp_path / "b.zip").read_bytes() == archive.read_bytes()


@golden.each("addresses of students", "case first second")
def test_a_roster_that_does_not_tell_students_apart_is_refused(archive, tmp_path, case, first, second):
    course, assignment = load_course(tmp_path / "satnet"), load_assignment(find("first-steps"))
    students = (Student("a", email=first.replace("NONE", "")), Student("b", email=second))
    case.hold(refusal(write_archive, tmp_path / "c.zip", course, "t", assignment, students, Wheels([], [], [])))
    assert not (tmp_path / "c.zip").exists()


def test_a_marking_that_cannot_be_read_is_told_before_wheels_are_downloaded(scpslab, tmp_path, monkeypatch):
    monkeypatch.setattr("scpslab_course.autograder.collect", lambda *_: pytest.fail("downloads wheels"))
    folder = make_course(tmp_path / "satnet", "Satellites", "2026w", ["first-steps"]).folder
    shutil.copytree(SMALL, folder / OWN_FOLDER / "small")
    (folder / FILE).write_text((folder / FILE).read_text().replace("first-steps", "small"))
    (folder / OWN_FOLDER / "small" / INSTRUCTOR / MARKING).write_text("answers: [\n")
    (tmp_path / "r.csv").write_text("student,email\nanna,anna@example.org\n")

    words = ("--course", folder, "--roster", tmp_path / "r.csv", "--wheel", "a.whl", "--out", tmp_path / "a.zip")
    code, _, err = scpslab("course", "gradescope", "small", *words)
    assert (code, "marking.yaml:" in err) == (2, True), err


def metadata(folder: Path, *emails: str) -> Path:
    path = folder / METADATA
    path.write_text(json.dumps({"id": 1, "users": [{"email": email, "id": 2, "name": "N"} for email in emails]}))
    return path


def test_students_are_known_by_their_addresses_whatever_the_case(tmp_path):
    assert users(metadata(tmp_path, "ANNA@example.ORG", "bo@example.org"), ROSTER) == ("anna", "bo")


@pytest.mark.parametrize(
    "text", ["", "[]", '{"users": []}', '{"users": [{"id": 1}]}', '{"users": [{"email": "eve@example.org"}]}']
)
def test_who_is_not_known_has_no_grade_and_the_reason_is_said(tmp_path, text):
    (tmp_path / METADATA).write_text(text)
    with pytest.raises(UsageError, match="Nothing was decided"):
        users(tmp_path / METADATA, ROSTER)


def test_the_one_file_is_found_and_links_are_not_followed(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.submission.tar.gz").write_bytes(b"")
    (tmp_path / "notes.pdf").write_bytes(b"")
    (tmp_path / "._x.submission.tar.gz").write_bytes(b"as a Mac's archives have it")
    (tmp_path / "y.submission.tar.gz").symlink_to("/etc/passwd")
    assert submission_of(tmp_path).name == "x.submission.tar.gz"
    (tmp_path / "z.submission.tar.gz").write_bytes(b"")
    with pytest.raises(ScpslabError, match="x.submission.tar.gz.*z.submission.tar.gz"):
        submission_of(tmp_path)


def test_whatever_goes_wrong_there_is_a_result_without_a_score(tmp_path):
    assert container.main(["grade"], tmp_path) == 0
    found = json.loads((tmp_path / RESULTS).read_text())
    assert "score" not in found
    assert "no course.yaml" in found["output"]


def test_a_broken_grader_is_no_students_fault(archive, tmp_path, monkeypatch):
    with zipfile.ZipFile(archive) as found:
        found.extractall(tmp_path / SOURCE)
    metadata(tmp_path, "bo@example.org")
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "x").write_bytes(b"")
    monkeypatch.setattr(container.grader, "grade", lambda *_: 1 // 0)
    assert container.grade(tmp_path).status is Status.UNGRADED
    assert "ZeroDivisionError" in container.grade(tmp_path).reason


def test_all_of_a_group_must_be_members_of_the_variant():
    one = Grade(Path("x"), members=("anna", "bo"))
    assert container._of_all(one, ["bo"]).findings == ()
    assert [finding.code for finding in container._of_all(one, ["bo", "eve"]).findings] == [Code.OTHER_VARIANT]


@golden.each("wheel of an autograder", "case name parts")
def test_another_wheel_than_this_program_s_is_refused(tmp_path, monkeypatch, case, name, parts):
    name = name.replace("VERSION", version())
    with zipfile.ZipFile(tmp_path / name, "w") as wheel:
        if parts:
            wheel.writestr(PARTS, json.dumps({"parts": [{"name": "kernel", "sha256": "0" * 64}]}))
    monkeypatch.setattr("scpslab_course.autograder.parts_facts", lambda _: {"kernel": {"sha256": "1" * 64}})
    case.hold(refusal(check_own, tmp_path / name, error=UsageError).replace(version(), "VERSION"), tmp_path)
