"""The leaderboard: who has most points in hidden trials, and nothing that says who it is."""

from dataclasses import replace
from pathlib import Path

import pytest

from scpslab.core.errors import UsageError
from scpslab_course.course.folder import Student
from scpslab_course.course.variant import PRACTICE, Secret
from scpslab_course.grading.formats import FORMATS, Facts
from scpslab_course.grading.grade import Code, Concern, Grade, Graded
from scpslab_course.grading.review import boards, write_leaderboard
from tests.unit.grading.test_review import HOSTILE, Tags

SECRET = Secret(b"1" * 32)
FACTS = Facts(f"Course {HOSTILE}", "2026w", {"anna": Student("anna", "Bauer, Anna", "a@x.edu", "g1")})


def tried(name, earned, comment="90% (utilization 0.8)", utilization=0.8125):
    return Graded(
        "trial", name, f"A {name} path.", 2, earned, comment, "policy.py", numbers={"utilization": utilization}
    )


def made(student, *points, findings=(), **fields):
    hidden = (tried(name, earned) for name, earned in zip(("short", "slow"), points, strict=True))
    own = Graded("trial", "own_hop", "Your own hop.", 2, 2.0, f"99% {HOSTILE}")
    why = Graded("answer", "why", "Why?", 4, 4.0, HOSTILE, f"{student} wrote {HOSTILE}")
    path, name = Path(f"{student}.tar.gz"), SECRET.pseudonym("2026w", student)
    given = {"student": student, "members": (student,), "pseudonym": name, "findings": findings, **fields}
    return Grade(path, "5c" * 32, "write-your-own", parts=(own, *hidden, why), **given)


CLASS = [made("anna", 1.5, 2.0), made("bo", 2.0, 2.0), made("di", 2.0, 1.5), made("ed", 0.0, 0.0)]


def page(grades, folder):
    return write_leaderboard(grades, FACTS, folder / "board.html").read_text()


def test_ranks_are_by_points_and_equal_points_have_the_same_rank():
    (board,) = boards(CLASS)

    names = {SECRET.pseudonym("2026w", one.student): one.student for one in CLASS}
    assert [(names[one.pseudonym], one.rank, one.points) for one in board.places if one.rank in (1, 4)] == [
        ("bo", 1, 4.0),
        ("ed", 4, 0.0),
    ]
    assert [one.rank for one in board.places] == [1, 2, 2, 4]
    # One's own path differs from everybody's: it is not compared.
    assert [trial.name for trial in board.trials] == ["short", "slow"]
    assert board.most == 4


def test_the_order_of_files_says_nothing(tmp_path):
    assert page(CLASS, tmp_path) == page(CLASS[::-1], tmp_path)


def test_nothing_on_the_page_says_who_it_is(tmp_path):
    text = page(CLASS, tmp_path)

    assert not [
        word for word in ("anna", "Bauer", "a@x.edu", "g1", "tar.gz", "5c5c", "own_hop", "wrote") if word in text
    ]
    found = Tags(text)
    assert not {"script", "img", "iframe", "object", "form", "base", "a"} & set(found.tags)
    assert not any(attribute.startswith("on") for _, attribute, _ in found.attributes)
    assert text.count('<br><span class="soft">0.812</span>') == 8


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_class_in_which_one_would_know_the_others_has_no_rows(tmp_path, count):
    text = page(CLASS[:count], tmp_path)

    assert not [one.pseudonym for one in CLASS if one.pseudonym in text]
    assert ("nobody is listed" in text) == bool(count)


def test_who_is_held_has_no_grade_or_no_trial_is_not_listed(tmp_path):
    held = made("fi", 2.0, 2.0, findings=(Concern(Code.EDITED_RESULTS, "found others"),))
    ungraded = made("gus", 2.0, 2.0, reason="found nothing")
    other = replace(made("hal", 2.0, 2.0), parts=(), pseudonym="")
    (board,) = boards([*CLASS, held, ungraded, other])

    assert len(board.places) == len(CLASS)
    accepted = replace(held, is_accepted=True)
    assert len(next(boards([*CLASS, accepted])).places) == len(CLASS) + 1


def test_who_hands_in_twice_has_one_row_and_equal_pseudonyms_have_two():
    again = made("bo", 1.0, 1.0)
    (board,) = boards([again, *CLASS])
    assert [one.points for one in board.places].count(4.0) == 1
    assert len(board.places) == len(CLASS)

    alike = [replace(one, pseudonym="aaaaa-bbbbb") for one in CLASS]
    (board,) = boards(alike)
    assert [one.points for one in board.places] == [4.0, 3.5, 3.5, 0.0]


def test_a_trial_that_a_person_decides_has_no_number(tmp_path):
    waits = replace(CLASS[0], parts=(tried("short", None, utilization=0.123), replace(tried("slow", 1.0), numbers={})))

    text = page([waits, *CLASS[1:]], tmp_path)

    assert "0.123" not in text
    assert next(one.points for one in next(boards([waits, *CLASS[1:]])).places if one.pseudonym == waits.pseudonym) == 1


def test_a_pseudonym_needs_the_secret_and_is_another_one_each_term():
    mine = SECRET.pseudonym("2026w", "anna")

    assert mine == Secret(b"1" * 32).pseudonym("2026w", "anna")
    others = {SECRET.pseudonym("2027s", "anna"), SECRET.pseudonym("2026w", "bo"), PRACTICE.pseudonym("2026w", "anna")}
    # No two names give the same message, wherever the border is.
    others.add(SECRET.pseudonym("2026", "wanna"))
    assert len({mine, *others}) == 5
    assert len({SECRET.pseudonym("2026w", f"s{number}") for number in range(5000)}) == 5000


def test_a_group_has_one_row_under_the_group_s_pseudonym():
    group = made("group/g1", 1.0, 1.0, members=("anna", "bo"))
    copied = replace(group, submitter="zoe")

    assert (group.whose, copied.whose) == ("group/g1", "zoe")
    assert replace(group, submitter="bo").whose == "group/g1"


@pytest.mark.parametrize("name", ["gradescope", "moodle", "csv"])
def test_students_find_their_pseudonym_in_the_feedback(name):
    text = FORMATS[name].write([CLASS[0]], FACTS)

    assert f"On the leaderboard: {CLASS[0].pseudonym}" in text
    # Long comments do not push it out, and stand there whole.
    wordy = replace(CLASS[0], parts=tuple(replace(part, comment=f"{'because ' * 200}so") for part in CLASS[0].parts))
    text = FORMATS[name].write([wordy], FACTS)
    assert f"On the leaderboard: {CLASS[0].pseudonym}" in text
    assert name == "gradescope" or text.count("because so") == len(CLASS[0].parts) > 0
    held = replace(CLASS[0], findings=(Concern(Code.EDITED_RESULTS, "found others"),))
    assert "leaderboard" not in FORMATS[name].write([held], FACTS)


def test_without_the_secret_there_is_no_leaderboard(scpslab, course, tmp_path):
    (course.folder / "secret").unlink()
    (tmp_path / "a.tar.gz").write_text("")
    words = ("grade", str(tmp_path / "a.tar.gz"), "--course", str(course.folder), "--leaderboard")

    code, _, said = scpslab(*words, str(tmp_path / "board.html"))
    assert (code, (tmp_path / "board.html").exists()) == (UsageError.exit_code, False)
    assert "found none; expected the course's secret, from which pseudonyms are made" in " ".join(said.split())
    code, _, said = scpslab(*words, str(tmp_path))
    assert "--leaderboard" in said
    assert "found a folder; expected the file to write" in " ".join(said.split())
