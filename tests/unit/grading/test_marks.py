"""marks.csv: what a person gives becomes the final grade, and nothing that a person wrote is lost."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from scpslab_course.grading.grade import Code, Concern, Grade, Graded, Marks, Status
from tests import golden
from tests.cases import refusal

PARTS = (
    Graded("answer", "bdp", "What?", 2, 1.0, "nearly", "100 kB"),
    Graded("answer", "why", "Why?", 4, None, "a person marks it", "So."),
    Graded("write-up", "write-up.md", "The write-up.", 3, None, "a person marks it", "# Mine"),
)
ANNA = Grade(Path("anna.tar.gz"), "5c" * 32, "small", "anna", ("anna",), parts=PARTS)
HELD = replace(
    ANNA, sha256="7e" * 32, student="bo", members=("bo",), findings=(Concern(Code.EDITED_RESULTS, "found others"),)
)


def rows(path):
    return list(csv.DictReader(path.open(newline="")))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "marks.csv"


def fill(path, points, *grades, delimiter=","):
    """Writes the points, and a comment each, as a spreadsheet saves them; first a line for what waits of the grades."""
    Marks(path).write(grades)
    found = rows(path)
    for row in found:
        row["points"] = points.get((row["student"], row["part"]), "")
        row["comment"] = f"of {row['part']}, indeed" if row["points"] else ""
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, found[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(found)


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_points_of_a_person_make_a_final_grade(path, delimiter):
    assert Marks(path).write([ANNA, HELD]) == 5
    assert [(row["student"], row["part"], row["of"]) for row in rows(path)] == [
        ("anna", "answer why", "4"),
        ("anna", "write-up write-up.md", "3"),
        ("bo", "held", "edited-results"),
        ("bo", "answer why", "4"),
        ("bo", "write-up write-up.md", "3"),
    ]
    given = {("anna", "answer why"): "2,5", ("anna", "write-up write-up.md"): "3", ("bo", "held"): "Accept"}
    fill(path, given, delimiter=delimiter)
    before = path.read_bytes()

    marks = Marks(path)
    anna, bo = marks.applied(ANNA), marks.applied(HELD)
    assert (anna.score, anna.most, anna.waiting, anna.is_final) == (6.5, 9, 0, True)
    assert [part.comment for part in anna.parts][1:] == ["of answer why, indeed", "of write-up write-up.md, indeed"]
    assert anna.parts[0].comment == "nearly"
    assert (bo.status, bo.waiting, bo.is_final) == (Status.GRADED, 7, False)
    assert (marks.problems, marks.write([anna, bo])) == ({}, 2)
    # Nothing has to be added, so the file is left as who marks has saved it.
    assert path.read_bytes() == before


def test_who_hands_in_again_is_marked_again_and_old_points_stay(path):
    fill(path, {("anna", "answer why"): "4"}, ANNA)
    again = replace(ANNA, sha256="00" * 32)

    marks = Marks(path)
    assert marks.applied(again).waiting == 7
    assert marks.write([again]) == 2
    assert [row["points"] for row in rows(path)] == ["4", "", "", ""]


def test_the_same_bytes_of_two_students_have_one_line_and_the_file_is_read_again(path):
    alike = replace(ANNA, path=Path("copy"), submitter="di")
    fill(path, {("anna", "answer why"): "4"}, ANNA, alike)

    assert [row["part"] for row in rows(path)] == ["answer why", "write-up write-up.md"]
    assert [Marks(path).applied(grade).waiting for grade in (ANNA, alike)] == [3, 3]


def test_who_is_accepted_with_the_bytes_of_another_is_accepted_alone(path):
    """Of three who hand in the same file, one has issued it."""
    says = (Concern(Code.OTHER_VARIANT, "handed in by another"),)
    eve, mallory = (replace(ANNA, path=Path(name), submitter=name, findings=says) for name in ("eve", "mallory"))
    fill(
        path, {("eve", "held"): "accept", ("anna", "answer why"): "4", ("anna", "write-up write-up.md"): "3"}, ANNA, eve
    )

    marks = Marks(path)
    anna, eve, mallory = map(marks.applied, (ANNA, eve, mallory))
    assert [one.status for one in (anna, eve, mallory)] == [Status.GRADED, Status.GRADED, Status.HELD]
    assert [one.waiting for one in (anna, eve, mallory)] == [0, 0, 0]
    assert marks.write([anna, eve, mallory]) == 1
    assert [row["student"] for row in rows(path) if row["part"] == "held"] == ["eve", "mallory"]
    # What is held of who has issued it is accepted for nobody else, either.
    own = replace(ANNA, findings=(Concern(Code.EDITED_RESULTS, "found others"),))
    Marks(other := path.with_name("other.csv")).write([own])
    fill(other, {("anna", "held"): "accept"})
    assert [Marks(other).applied(one).status for one in (own, replace(own, submitter="eve"))] == ["graded", "held"]


@pytest.mark.parametrize("points", ["0.125", "3.001", "3.01", "-0.01", "nan", "inf", "many"])
def test_points_are_hundredths_within_their_bounds(path, points):
    fill(path, {("anna", "write-up write-up.md"): points, ("anna", "answer why"): "3.99"}, ANNA)

    marks = Marks(path)
    assert marks.applied(ANNA).waiting == 3
    said = f'found "{points}" points for write-up write-up.md; expected 0 to 3, with at most two decimals'
    assert marks.problems == {3: said}


def test_points_that_are_written_while_a_class_is_graded_stay(path):
    Marks(path).write([ANNA])
    marks, of_another_grading = Marks(path), Marks(path)
    fill(path, {("anna", "answer why"): "4"})
    assert of_another_grading.write([HELD]) == 3
    assert marks.write([replace(ANNA, sha256="00" * 32)]) == 2
    assert [row["points"] for row in rows(path)] == ["4", *[""] * 6]
    assert [row["student"] for row in rows(path)] == [*["anna"] * 2, *["bo"] * 3, *["anna"] * 2]


def test_who_finds_two_files_with_the_same_first_digits_is_marked_for_each(path):
    marked, other = (replace(ANNA, sha256=f"{'5c' * 6}{digit * 52}") for digit in "12")
    fill(path, {("anna", "answer why"): "4"}, marked)

    marks = Marks(path)
    assert (marks.applied(marked).waiting, marks.applied(other).waiting) == (3, 7)


def held_line(path):
    return next((row["of"], row["points"]) for row in rows(path) if row["part"] == "held")


def test_who_was_accepted_is_held_again_for_what_is_found_later(path):
    fill(path, {("bo", "held"): "accept", ("bo", "answer why"): "4"}, HELD)
    more = replace(HELD, findings=(*HELD.findings, Concern(Code.OTHER_VARIANT, "found the same variant in x")))

    marks = Marks(path)
    assert marks.applied(HELD).status is Status.GRADED
    again = marks.applied(more)
    assert (again.status, again.waiting) == (Status.HELD, 3)
    assert marks.problems[2].startswith('found "accept", and other-variant since then; expected "accept"')
    marks.write([again])
    assert [row["points"] for row in rows(path) if row["part"] == "answer why"] == ["4"]
    assert held_line(path) == ("edited-results other-variant", "")

    fill(path, {("bo", "held"): "accept"})
    for grade in (more, HELD):
        assert Marks(path).applied(grade).status is Status.GRADED
    # Remarks hold nobody, and were never accepted.
    remarked = replace(HELD, findings=(*HELD.findings, Concern(Code.EQUAL_TEXTS, "found mostly the text of anna")))
    assert Marks(path).applied(remarked).status is Status.GRADED


def test_a_line_of_a_part_that_is_marked_without_a_person_counts_and_an_unknown_one_is_told(path):
    Marks(path).write([ANNA])
    text = path.read_text().replace("answer why,4,", "answer bdp,2,2")
    path.write_text(text.replace("write-up write-up.md,3,", "answer wyh,4,4"))

    marks = Marks(path)
    assert [part.earned for part in marks.applied(ANNA).parts] == [2, None, None]
    assert "Did you mean answer why?" in marks.problems[3]


@golden.each("marks.csv", "case text")
def test_a_file_that_is_none_is_refused(tmp_path, case, text):
    (tmp_path / "marks.csv").write_text(text.replace("HEAD", "submission,student,assignment,part,of,points,comment"))
    case.hold(refusal(Marks, tmp_path / "marks.csv"), tmp_path)
