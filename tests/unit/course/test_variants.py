"""Variants: the same for ever, different for everybody, signed, and the secret stays where it is."""

import base64
import csv
import dataclasses
import io
import json
import os
import re
from pathlib import Path

import pytest

from scpslab.core.errors import ScenarioError, UsageError
from scpslab_course.course import variant as variants
from scpslab_course.course.assignment import find, load_assignment, load_marking
from scpslab_course.course.folder import (
    Student,
    load_course,
    make_course,
    parties,
    plan_issue,
    practice_variant,
    write_issue,
)
from scpslab_course.course.model import Whose, drawn
from scpslab_course.course.variant import PRACTICE, Secret, VariantError, make_secret, read_secret
from scpslab_course.grading.formats import Facts
from scpslab_course.grading.grade import Grade
from scpslab_course.grading.review import write_review
from tests import golden
from tests.cases import changed, refusal

GOLDEN = {"rate": "1 Mbit/s", "delay": "290 ms", "seed": 154401405, "buffer": "72.5 kB"}
STUDENTS = (Student("anna"), Student("bo", email="bo@example.org", group="g1"), Student("di", group="g1"))


def spoil(path, old, new):
    """Writes other words into a file."""
    path.write_text(changed(path.read_text(), (old, new)))
    return path


@pytest.fixture
def course(tmp_path):
    return make_course(tmp_path / "satnet", "Satellite networks", "2026w", ["small"])


@pytest.fixture
def issued(course, assignment, marking, no_runs):
    return plan_issue(course, course.secret(), "2026w", parties(STUDENTS), [(assignment, marking)], no_runs)


def test_a_draw_depends_on_the_secret_and_every_name(assignment):
    def parameters(secret=b"s", term="t", name="small", student="anna", attempt=0):
        return drawn(secret, Whose(term, name, student), assignment.file.variant, attempt)

    others = ({"secret": b"x"}, {"term": "u"}, {"name": "a"}, {"student": "bo"}, {"attempt": 1})
    assert len({json.dumps(parameters(**one)) for one in ({}, *others)}) == 6
    # For ever: another value here makes every issued variant another one.
    assert parameters() == parameters() == GOLDEN


def test_values_are_those_of_the_ranges(assignment):
    found = [drawn(b"s", Whose("t", "small", str(number)), assignment.file.variant, 0) for number in range(300)]
    assert {one["rate"] for one in found} == {"1 Mbit/s", "2 Mbit/s", "4 Mbit/s"}
    delays = {int(one["delay"].removesuffix(" ms")) for one in found}
    assert {min(delays), max(delays)} == {10, 300}
    assert all(delay % 5 == 0 for delay in delays)
    assert len({one["seed"] for one in found}) == 300


def test_every_variant_is_inside_the_bands(issued):
    for one in issued:
        rate, delay = int(one.variant.parameters["rate"][0]), int(one.variant.parameters["delay"].removesuffix(" ms"))
        assert 20 <= rate * delay / 8 <= 100


def test_bands_that_nothing_fits_end_with_the_band_s_name(folder, assignment, secret, no_runs):
    spoil(folder / "instructor" / "marking.yaml", "at_least: 20, at_most: 100", "at_least: 2000")
    said = refusal(practice_variant, assignment, load_marking(assignment), no_runs)
    assert "found no variant for practice within 200 attempts (product refused 200)" in said


def test_a_draw_runs_only_the_scenarios_that_bands_read():
    """Of deep-space one of three: each draw costs time, also one that is thrown away."""
    assignment = load_assignment(find("deep-space"))
    asked = []

    def rows(assignment, parameters, scenarios):
        asked.append(scenarios)
        raise ScenarioError("found enough; expected no more")

    refusal(practice_variant, assignment, load_marking(assignment), rows)
    assert asked == [["scps"]]


@golden.each("formula of a variant")
def test_a_formula_without_a_value_ends_with_its_line(case, folder, no_runs):
    marking = load_marking(load_assignment(folder))
    path = spoil(folder / "assignment.yaml", "value: rate * 2 * delay / 8,", f"value: {json.dumps(case)},")
    said = refusal(practice_variant, load_assignment(folder), marking, no_runs)
    assert said.startswith(f"{path}:11: variant.buffer.value: found ")
    case.hold(said, folder)


@golden.each("variant that no scenario takes")
def test_nothing_is_issued_that_a_scenario_does_not_take(case, course, folder, marking, no_runs):
    path = spoil(folder / "assignment.yaml", "set: [links.hop.forward.rate]", f'set: ["{case}"]')
    assignment = load_assignment(folder)
    said = refusal(plan_issue, course, course.secret(), "2026w", parties(STUDENTS), [(assignment, marking)], no_runs)
    assert said.startswith(f"{path}:8: variant.rate.set: ")
    # The practice variant's rate is drawn.
    case.hold(re.sub(r"\d Mbit/s", "2 Mbit/s", said), folder)


def test_nothing_is_issued_that_nobody_can_open(course, assignment, marking, no_runs):
    group = parties([Student(f"s{number}", group="g") for number in range(101)])
    said = r"^small of group/g: members: found a list of 101; expected a list of 1 to 100\. Correct the roster"
    with pytest.raises(ScenarioError, match=said):
        plan_issue(course, course.secret(), "2026w", group, [(assignment, marking)], no_runs)


def test_a_group_shares_a_variant(issued):
    group = ("group/g1", ("bo", "di"))
    assert [(one.variant.student, one.variant.members) for one in issued] == [("anna", ("anna",)), group, group]
    assert [one.path.parent.name for one in issued] == ["anna", "bo", "di"]


def test_an_issued_variant_verifies_with_the_course_s_key_alone(course, issued, assignment, marking, no_runs):
    content = variants.write(issued[0].variant)
    assert variants.verify(content, course.file.public_key) == issued[0].variant
    said = refusal(variants.verify, content, Secret(bytes(32)).key, error=VariantError)
    assert "found a variant signed with the key" in said
    practice = variants.write(practice_variant(assignment, marking, no_runs))
    said = refusal(variants.verify, practice, course.file.public_key, error=VariantError)
    assert "found the practice variant" in said


def test_any_changed_field_is_found(issued):
    fields = json.loads(variants.write(issued[0].variant))
    changes = dict.fromkeys(("course", "term", "assignment", "student"), "x") | {"members": ["bo"], "attempt": 7}
    changes |= {"material": "0" * 64, "key": PRACTICE.key, "signature": "0" * 128}
    changes |= {"parameters": fields["parameters"] | {"rate": "1 Gbit/s"}}
    assert changes.keys() == fields.keys() - {"format"}
    for key, value in changes.items():
        with pytest.raises(VariantError, match="found a variant that was changed after it was signed"):
            variants.read(json.dumps(fields | {key: value}).encode())


NO_VARIANTS = {b"[]": "list", b"null": "NoneType", b"7": "int"}


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\xff", b"[" * 100_000, b'{"format": 2}', b" " * 100_000, *NO_VARIANTS]
)
def test_what_is_no_variant_is_refused_in_one_line_and_not_called_a_plan(content):
    said = refusal(variants.read, content, error=VariantError)
    assert re.search(f"^found .*{NO_VARIANTS.get(content, '')}|^format: ", said)
    assert "\n" not in said


@pytest.mark.parametrize("title", ["a\nb", "", "x" * 201, "a\x1b[31m"])
def test_a_course_has_a_title_that_variants_can_have(course, tmp_path, title):
    form = r"title: found .+; expected one line of 1 to 200 characters\."
    assert re.search(rf"^--title: {form} ", refusal(make_course, tmp_path / "other", title, "2026w", ["small"]))
    assert not (tmp_path / "other").exists()
    spoil(course.folder / "course.yaml", "title: Satellite networks", f"title: {json.dumps(title)}")
    assert re.search(rf"course\.yaml:4: {form}", refusal(load_course, course.folder))


def test_a_course_has_each_assignment_once(course):
    spoil(course.folder / "course.yaml", "- small", "- small\n- small")
    twice = 'course.yaml:7: assignments: found "small"; expected names of assignments, each once, and no paths.'
    assert twice in refusal(load_course, course.folder)


def test_a_course_has_assignments_by_name_and_no_paths(tmp_path):
    said = refusal(make_course, tmp_path / "other", "Satellite networks", "2026w", ["./small"])
    assert 'found "./small"; expected names of assignments, each once, and no paths.' in said
    assert not (tmp_path / "other").exists()


def test_a_variant_belongs_to_its_edition_of_the_scenarios(folder, assignment, issued):
    assert variants.unfit(issued[0].variant, assignment) == ""
    path = folder / "transfer.yaml"
    path.write_text("# a comment\n" + path.read_text())
    assert variants.unfit(issued[0].variant, load_assignment(folder)) == ""
    spoil(path, "100 kB", "200 kB")
    assert "found a variant for other scenarios" in variants.unfit(issued[0].variant, load_assignment(folder))
    assert "found a variant of" in variants.unfit(dataclasses.replace(issued[0].variant, assignment="x"), assignment)


def test_the_secret_is_in_no_file_that_is_issued(course, issued):
    write_issue(course, "2026w", issued)
    content = read_secret(course.folder / "secret").content
    keys = (content, course.secret().draw_key)
    texts = [(key.hex().encode(), base64.b64encode(key), base64.urlsafe_b64encode(key)) for key in keys]
    forms = [*keys, *(form for text in texts for form in (*text, text[0].upper()))]
    files = [path for path in course.folder.rglob("*") if path.is_file() and path.name != "secret"]
    assert len(files) == 6
    for path in files:
        assert not any(form in path.read_bytes() for form in forms), path
    assert content.hex() not in repr(course.secret())


def test_issuing_again_changes_nothing_and_replaces_nothing(course, issued, assignment, marking, no_runs):
    ledger = write_issue(course, "2026w", issued)
    before = ledger.read_bytes(), issued[0].path.read_bytes()
    rows = list(csv.DictReader(io.StringIO(before[0].decode())))
    assert [row["file"] for row in rows] == [f"{name}/small.variant.json" for name in ("anna", "bo", "di")]
    assert [(row["student"], row["email"]) for row in rows] == [("anna", ""), ("bo", "bo@example.org"), ("di", "")]
    assert [Path(row["attachment"]).read_bytes() for row in rows] == [variants.write(one.variant) for one in issued]
    write_issue(course, "2026w", issued)
    assert (ledger.read_bytes(), issued[0].path.read_bytes()) == before
    issued[0].path.write_text("{}")
    with pytest.raises(UsageError, match="found another variant than the one of today"):
        write_issue(course, "2026w", issued)
    write_issue(course, "2026w", issued, replace=True)
    assert issued[0].path.read_bytes() == before[1]


def test_a_group_has_the_same_variant_however_its_lines_stand(course, issued, assignment, marking, no_runs):
    write_issue(course, "2026w", issued)
    moved = parties(reversed(STUDENTS))
    again = plan_issue(course, course.secret(), "2026w", moved, [(assignment, marking)], no_runs)
    assert {one.path: one.variant for one in again} == {one.path: one.variant for one in issued}
    write_issue(course, "2026w", again)


def test_a_group_with_other_members_is_told_that_begun_work_stays_valid(course, issued, assignment, marking, no_runs):
    def planned(*students):
        return plan_issue(course, course.secret(), "2026w", parties(students), [(assignment, marking)], no_runs)

    write_issue(course, "2026w", issued)
    for students in ((*STUDENTS, Student("eva", group="g1")), STUDENTS[:2]):
        again = planned(*students)
        said = refusal(write_issue, course, "2026w", again, error=UsageError)
        assert said.startswith(f"{issued[1].path}: found another variant")
        assert said.endswith("Only its members or the course's title differ: begun work stays valid. Add --replace.")
        assert again[1].variant.parameters == issued[1].variant.parameters
    # What was begun is still one of this course.
    assert variants.verify(variants.write(issued[1].variant), course.file.public_key) == issued[1].variant
    # Other numbers are no matter of names.
    other = [dataclasses.replace(issued[1], variant=dataclasses.replace(issued[1].variant, attempt=9))]
    assert "begun work" not in refusal(write_issue, course, "2026w", other, error=UsageError)


def test_issuing_a_part_of_a_class_keeps_the_lines_of_the_others(course, issued):
    ledger = write_issue(course, "2026w", issued)
    before = ledger.read_bytes()
    write_issue(course, "2026w", issued[1:2])
    assert ledger.read_bytes() == before
    # Who removes a student's file removes the line.
    issued[0].path.unlink()
    write_issue(course, "2026w", issued[2:])
    rows = csv.DictReader(io.StringIO(ledger.read_text()))
    assert [(row["student"], row["assignment"]) for row in rows] == [("bo", "small"), ("di", "small")]


def test_files_of_a_class_are_for_their_owner_alone(tmp_path, assignment, marking, no_runs):
    before = os.umask(0o022)
    try:
        course = make_course(tmp_path / "new" / "satnet", "Satellite networks", "2026w", ["small"])
        made = plan_issue(course, course.secret(), "2026w", parties(STUDENTS), [(assignment, marking)], no_runs)
        write_issue(course, "2026w", made)
        facts = Facts("Satellite networks", "2026w")
        write_review([Grade(tmp_path / "a.tar.gz", student="anna")], facts, tmp_path / "review")
    finally:
        os.umask(before)
    for top in (course.folder, tmp_path / "review"):
        found = {path: path.stat().st_mode & 0o777 for path in (top, *top.rglob("*")) if path.name != ".gitignore"}
        assert found == {path: 0o700 if path.is_dir() else 0o600 for path in found}
        assert len(found) > 2


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610])
def test_a_secret_that_others_can_reach_is_refused(tmp_path, mode):
    made = make_secret(tmp_path / "secret")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    assert read_secret(tmp_path / "secret") == made
    (tmp_path / "secret").chmod(mode)
    with pytest.raises(UsageError, match="expected 600"):
        read_secret(tmp_path / "secret")


def test_what_is_no_secret_is_refused_and_not_shown(tmp_path):
    path = tmp_path / "secret"
    make_secret(path)
    assert "a new secret makes all issued variants invalid" in refusal(make_secret, path, error=UsageError)
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(mode=0o700)
    for name, says in (("link", "symbolic link"), ("pipe", "no ordinary file"), ("folder", "no ordinary file")):
        assert says in refusal(read_secret, tmp_path / name, error=UsageError)
    path.write_bytes(path.read_bytes()[:-5])
    said = refusal(read_secret, path, error=UsageError)
    assert "found something else" in said
    assert path.read_text().split()[-1][:8] not in said


def test_a_course_with_another_secret_is_refused(course, tmp_path):
    (course.folder / "secret").unlink()
    make_secret(course.folder / "secret")
    with pytest.raises(UsageError, match="found the secret of key"):
        load_course(course.folder).secret()
