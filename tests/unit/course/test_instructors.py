"""The instructors' parts lie apart: what a student has shows no marking, solution or hidden trial, and an instructor
who has the archive has them all. Rosters: names of all kinds are read, and ids that are no folders' names are
refused.
"""

import gzip
import io
import os
import re
import shutil
import sys
import tarfile
import types
from pathlib import Path

import pytest

from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.installation import version
from scpslab.core.project import ROOT
from scpslab_course.course.answers import Expected, RightNumber, wrong_in
from scpslab_course.course.assignment import (
    FOLDER,
    INSTRUCTOR,
    SOLUTION,
    find,
    load_assignment,
    load_marking,
    names,
    opened,
)
from scpslab_course.course.folder import parties, read_roster, read_submitters
from scpslab_course.course.runs import planned_hidden
from tests import golden
from tests.cases import refusal
from tools import instructors

FIRST = "first-steps"


@pytest.fixture
def archive(tmp_path):
    """The archive of this clone."""
    return instructors.write_archive(tmp_path)


@pytest.fixture
def students(tmp_path):
    """An assignment as students have it, in a folder of their own."""
    shutil.copytree(FOLDER / FIRST, tmp_path / "got" / FIRST, ignore=shutil.ignore_patterns(INSTRUCTOR))
    return tmp_path / "got" / FIRST


def test_the_archive_has_every_part_and_nothing_of_students_and_no_second_form(archive, tmp_path):
    with tarfile.open(archive) as found:
        inside = {name.split("/", 1)[1] for name in found.getnames()}
    parts = ("marking.yaml", "instructor.md", "oral.md")
    assert {f"{name}/{INSTRUCTOR}/{part}" for name in names() for part in parts} < inside
    assert {name for name in inside if f"/{INSTRUCTOR}/" not in name} == {"VERSION"}
    (tmp_path / "again").mkdir()
    assert instructors.write_archive(tmp_path / "again").read_bytes() == archive.read_bytes()


def test_an_archive_marks_what_students_have_and_leaves_nothing_behind(archive, students):
    with opened(archive) as folder:
        marking = load_marking(load_assignment(students), folder)
        assert (marking.folder / SOLUTION / "answers.yaml").is_file()
    assert not folder.exists()
    assert marking.file == load_marking(load_assignment(find(FIRST))).file


def test_the_folder_of_an_unpacked_archive_does_as_well(archive, students, tmp_path):
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "out", filter="data")
    (folder,) = (tmp_path / "out").iterdir()
    with opened(folder) as found:
        assert load_marking(load_assignment(students), found).folder == folder / FIRST / INSTRUCTOR


def test_an_instructor_s_own_part_comes_before_one_of_the_same_name(archive, students):
    shutil.copytree(FOLDER / FIRST / INSTRUCTOR, students / INSTRUCTOR)
    with opened(archive) as folder:
        assert load_marking(load_assignment(students), folder).folder == students / INSTRUCTOR


def member(name: str, content: bytes = b"", **fields: object) -> bytes:
    """A gzipped tar of one member."""
    entry, out = tarfile.TarInfo(name), io.BytesIO()
    entry.size = len(content)
    for key, value in fields.items():
        setattr(entry, key, value)
    with gzip.open(out, "wb") as zipped, tarfile.open(fileobj=zipped, mode="w") as packed:
        packed.addfile(entry, io.BytesIO(content))
    return out.getvalue()


OTHERS = {
    "no archive": b"no archive",
    "a place outside": member("../marking.yaml"),
    "a link": member("x/VERSION", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "no version": member("x/marking.yaml"),
    "another version": member("x/VERSION", b"9.9.9"),
}


@golden.each("archive of instructors")
def test_an_archive_of_something_else_is_refused_with_its_reason(tmp_path, case):
    (tmp_path / "some.tar.gz").write_bytes(OTHERS[case])
    with pytest.raises(UsageError) as refused, opened(tmp_path / "some.tar.gz"):
        pytest.fail("it was opened")
    case.hold(str(refused.value).replace(version(), "VERSION"), tmp_path)


def test_no_archive_is_an_error_with_its_path(tmp_path):
    with pytest.raises(UsageError, match="none.tar.gz: found No such file"), opened(tmp_path / "none.tar.gz"):
        pytest.fail("it was opened")


def test_a_student_who_copies_an_assignment_with_ranges_of_one_value_gets_no_answers(scpslab, students, tmp_path):
    file = students / "assignment.yaml"
    ranges = "values: [1.5 Mbit/s, 2 Mbit/s, 2.5 Mbit/s, 3 Mbit/s, 3.5 Mbit/s]"
    text = file.read_text()
    assert ranges in text
    file.write_text(text.replace(ranges, "values: [2.5 Mbit/s]"))
    before = (students / "practice.json").read_bytes()
    (tmp_path / "roster.csv").write_text("student\neve\n")
    scpslab("course", "new", tmp_path / "mine", "--assignment", FIRST)
    own = tmp_path / "mine" / "assignments" / FIRST
    shutil.copytree(students, own)
    course = ("--course", tmp_path / "mine", "--roster", tmp_path / "roster.csv")
    for words in (("course", "practice", students), ("course", "practice", own), ("course", "issue", *course)):
        code, out, err = scpslab(*words)
        assert (code, out) == (2, ""), words
        assert "found no file; expected the instructor's part, which no student gets" in err
    assert (students / "practice.json").read_bytes() == before


def included(monkeypatch, root: Path) -> dict[str, str]:
    """What the hook of the wheel adds, without hatchling, which only makes wheels."""
    plugin = types.ModuleType("hatchling.builders.hooks.plugin.interface")
    plugin.BuildHookInterface = object
    for name in ("hatchling", "hatchling.builders", "hatchling.builders.hooks", "hatchling.builders.hooks.plugin"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, plugin.__name__, plugin)
    monkeypatch.delitem(sys.modules, "tools.wheel_parts", raising=False)
    monkeypatch.delenv("SCPSLAB_PARTS", raising=False)
    from tools.wheel_parts import PartsHook

    hook, data = PartsHook(), {"force_include": {}}
    hook.root = str(root)
    hook.initialize("standard", data)
    return data["force_include"]


def test_a_wheel_has_every_file_of_students_and_none_of_instructors(monkeypatch):
    found = set(included(monkeypatch, ROOT).values())
    there = [path.relative_to(ROOT) for path in FOLDER.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    wanted = {f"scpslab/project_files/{path.as_posix()}" for path in there if INSTRUCTOR not in path.parts}
    assert found == wanted
    assert len(there) > len(found)


def test_no_page_leads_to_an_instructor_s_part():
    """What a page of docs/ links to is on the site, and what that links to, too."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *FOLDER.glob("*.md"), *FOLDER.glob("*/*.md")]
    assert len(pages) > 100
    assert [page for page in pages if re.search(rf"\]\([^)]*\b{INSTRUCTOR}/", page.read_text())] == []


def test_students_get_a_folder_without_the_instructor_s_part_and_can_start_with_it(scpslab, tmp_path):
    scpslab("course", "new", tmp_path / "satnet", "--title", "Satellites", "--assignment", FIRST)
    shutil.copytree(FOLDER / "write-your-own", tmp_path / "satnet" / "assignments" / "ours")
    file = tmp_path / "satnet" / "course.yaml"
    file.write_text(file.read_text().replace(f"- {FIRST}", f"- {FIRST}\n- ours"))
    code, out, _ = scpslab("course", "publish", tmp_path / "public", "--course", tmp_path / "satnet")
    assert (code, out.strip()) == (0, str(tmp_path / "public"))
    got = {path.relative_to(tmp_path / "public").as_posix() for path in (tmp_path / "public").rglob("*")}
    assert {"README.md", f"assignments/{FIRST}/handout.md", "assignments/ours/starter/policy.py"} < got
    assert [name for name in got if INSTRUCTOR in name or "secret" in name or "marking" in name] == []
    start = ("assignment", "start", tmp_path / "public" / "assignments" / FIRST, "--out", tmp_path / "work")
    assert scpslab(*start)[0] == 0
    assert scpslab("course", "publish", tmp_path / "public", "--course", tmp_path / "satnet")[0] == 2


def test_hidden_trials_are_the_course_s_own_and_the_same_for_everybody(tmp_path):
    trials = load_marking(load_assignment(find("write-your-own"))).file.trials
    drawn = {
        (key, term): {name: one.drawn(key, term, "write-your-own", name) for name, one in trials.items()}
        for key in (bytes(32), b"other")
        for term in ("1", "2")
    }
    assert all(one.is_drawn for one in trials.values())
    for name in trials:
        assert len({str(values[name]) for values in drawn.values()}) == len(drawn), name
    fixed = trials["short"].fixed(drawn[b"other", "1"]["short"])
    assert not fixed.is_drawn
    assert fixed.drawn(b"", "2", "x", "y") == drawn[b"other", "1"]["short"]


def test_a_solution_that_marking_calls_wrong_is_named(folder, assignment, marking):
    right = RightNumber(kind="number", value=12.5, distance=0.1, partial=(), wrong=())
    expected = Expected(predictions={}, answers={"bdp": right})
    file = folder / INSTRUCTOR / SOLUTION / "answers.yaml"
    file.write_text("bdp: 1\nwhy: Because.\n")
    (said,) = wrong_in(assignment, marking, expected)
    assert said == f'{file}:1: bdp: found "1" (not right); expected 12.5, as marking.yaml has it'
    file.write_text("bdp: 12.55 kB\nwhy: Because.\n")
    assert list(wrong_in(assignment, marking, expected)) == []


def test_without_its_secret_a_course_does_not_guess_what_it_has_drawn(tmp_path):
    assignment = load_assignment(find("write-your-own"))
    with pytest.raises(UsageError, match="found no secret"):
        list(planned_hidden(assignment, {}, load_marking(assignment), None, "1"))


def test_a_marking_that_is_nowhere_says_where_it_comes_from(students):
    with pytest.raises(ScenarioError, match="Instructors name it with --instructors"):
        load_marking(load_assignment(students))


def complaints(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [line.removeprefix(f"{path}:") for line in refusal(read_roster, path).splitlines()]


def test_names_with_commas_umlauts_and_blanks_are_names(tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes('\ufeffStudent,Name\r\na1,"Müller, Zoë"\r\n\r\nb2, Bo  Li \r\n'.encode())
    assert [(one.id, one.name) for one in read_roster(path)] == [("a1", "Müller, Zoë"), ("b2", "Bo  Li")]
    path.write_text("student;name;group\na1;Müller, Zoë;g\nb2;Bo;g\n")
    assert [(party.name, len(party.members)) for party in parties(read_roster(path))] == [("group/g", 2)]


@golden.each("roster", "case content")
def test_what_is_no_roster_is_told_with_its_line(tmp_path, case, content):
    for word, character in (("NOTHING", ""), ("NUL", "\0"), ("ESC", "\x1b"), ("LONG", "a" * 101)):
        content = content.replace(word, character)
    said = complaints(tmp_path / "r.csv", f"{content}\n" if content else "")
    case.hold("\n".join(said), tmp_path)
    assert "".join(said).isprintable()


def test_a_roster_of_other_bytes_is_told_what_to_save(tmp_path):
    (said,) = complaints(tmp_path / "r.csv", b"student,name\na,M\xfcller\n")
    golden.Case("rosters of bytes", "latin-1").hold(said)


def test_a_missing_or_endless_file_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match="no such file"):
        read_roster(tmp_path / "none.csv")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        with pytest.raises(ScenarioError, match="found no ordinary file; expected a roster, a CSV file"):
            read_roster(tmp_path / name)
    assert "more than 1048576 bytes" in complaints(tmp_path / "r.csv", "student\n" + "a" * (2 << 20))[0]


def test_who_handed_in_is_known_by_a_mac_s_name_of_the_file(tmp_path):
    """It has accents apart from their letters; a CSV file mostly has not."""
    path, archive = tmp_path / "who.csv", tmp_path / "Jose\u0301.tar.gz"
    for written in ("Jos\u00e9.tar.gz", "Jose\u0301.tar.gz", str(archive)):
        path.write_text(f"file,student\n{written},jose\n", encoding="utf-8")
        assert read_submitters(path, [archive]) == {archive: ("jose", None)}
