"""The pages for who marks: what a student wrote is text in them, whatever it is."""

import base64
import hashlib
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from scpslab_course.cli import grade as command
from scpslab_course.cli.grade import packed
from scpslab_course.course.folder import Student, moment_of, named_submitters
from scpslab_course.course.model import Item
from scpslab_course.course.workspace import Line
from scpslab_course.grading import grader
from scpslab_course.grading.formats import Facts, not_handed_in, table
from scpslab_course.grading.grade import Code, Concern, Grade, Graded, Marks
from scpslab_course.grading.review import overview, pages, write_feedback, write_review

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\"'{{ 7*7 }}"
FACTS = Facts(f"Course {HOSTILE}", "2026w")
RUBRIC = (Item(says="Says why & how", points=4),)
WORDS = {"event": "run", "name": HOSTILE, "value": HOSTILE, "runs": (), "before": "0" * 64}
LINES = tuple(Line(number=number, at=f"2026-11-22T0{number}:00:00Z", **WORDS) for number in (1, 3))


def made(student, earned, *findings):
    parts = (
        Graded("prediction", "rates", "How fast?", 1, 1.0, "it was 5", "4..6", is_inside=earned > 1),
        Graded("answer", "bdp", "What is it?", 2, earned, HOSTILE, HOSTILE),
        Graded("answer", "why", "Why?", 4, None, "a person marks it", HOSTILE, RUBRIC, ("Guesses.",)),
    )
    path = Path(f"{student}.tar.gz")
    return Grade(path, "5c" * 32, "small", student, (student,), parts=parts, findings=findings, lines=LINES, seconds=6)


CLASS = [
    made("anna", 2.0),
    made("bo", 0.5),
    made("di", 2.0, Concern(Code.EQUAL_TEXTS, f"why: found the text of {HOSTILE}; expected one's own")),
    made("ed", 2.0, Concern(Code.EDITED_RESULTS, "found others; expected these")),
    Grade(Path(f"{HOSTILE}.tar.gz"), reason=f"{HOSTILE}: found no submission; expected one."),
]


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *one) for one in attrs]


def test_a_student_s_words_become_no_markup_on_any_page():
    for name, text in pages(CLASS, FACTS).items():
        found = Tags(text)
        assert not {"script", "img", "iframe", "object", "form", "base"} & set(found.tags), name
        assert not any(attribute.startswith("on") for _, attribute, _ in found.attributes)
        assert "{{" not in text or "7*7" in text
        # Links lead to other pages of the folder alone.
        links = [value for tag, attribute, value in found.attributes if attribute in ("href", "src")]
        assert all(value in pages(CLASS, FACTS) for value in links if value != "data:,"), (
            "but for the icon, which is none"
        )
        assert "default-src 'none'" in text


def test_names_of_files_cannot_leave_the_folder(tmp_path):
    bad = [replace(CLASS[0], student=name) for name in ("../../evil", "..", "a/b", "x\0y", "é" * 300, "", "CON")]

    index = write_review(bad, FACTS, tmp_path / "review")

    assert index.is_file()
    assert len(list((tmp_path / "review").iterdir())) == len(bad) + 1
    assert [path.name for path in tmp_path.iterdir()] == ["review"]


def test_a_page_has_the_texts_beside_their_rubric_and_that_of_the_class_who_is_to_be_looked_at():
    found = pages(CLASS, FACTS)
    assert found == pages(CLASS, FACTS)
    page, index = next(text for name, text in found.items() if "anna" in name), found["index.html"]
    assert [text for text in ("Says why &amp; how", "Guesses.", "up to 4") if text not in page] == []
    said = index[index.index("To look at") : index.index("Questions")]
    assert [name in said for name in ("anna", ">bo<", ">di<", ">ed<")] == [False, False, True, True]
    assert "edited-results" in said
    assert "no submission" in said


def test_pages_show_right_values_and_the_names_of_the_roster():
    """Who hands in somebody else's variant is named, not its owner."""
    part = replace(CLASS[0].parts[1], right="129 ± 2.58 kB")
    findings = (Concern(Code.OTHER_VARIANT, "handed in by bo"),)
    copied = replace(CLASS[0], parts=(part,), submitter="bo", findings=findings)
    facts = replace(FACTS, students={one.id: one for one in (Student("anna", "Bauer, Anna"), Student("bo", "Li, Bo"))})
    found = pages([CLASS[2], CLASS[0], copied], facts)

    index = found.pop("index.html")
    assert "Bauer, Anna (anna)" in index[index.index("Submissions</h2>") :]
    said = index[index.index("To look at") : index.index("Questions")]
    assert said.index("Li, Bo (bo)") < said.index("equal-texts")
    assert "Bauer" not in said
    (page,) = (text for name, text in found.items() if name.startswith("003-bo"))
    assert "Right: 129 ± 2.58 kB" in page
    assert "with the variant of anna" in page


def test_the_overview_counts_only_what_is_graded():
    found = overview(CLASS)

    assert found.counts == {"graded": 3, "held": 1, "ungraded": 1}
    assert sum(found.bins) == 3
    assert found.bins[-1] == 2
    assert (found.inside, found.intervals) == (2, 3)
    bdp = next(one for one in found.questions if one.name == "bdp")
    assert (bdp.marked, bdp.right, bdp.waiting) == (3, 2, 0)


def test_what_has_no_points_waits_for_nobody():
    none = Graded("deliverable", "causes.csv", "The causes.", 0, 0.0, "12 bytes")
    found = overview([replace(CLASS[0], parts=(none,))])

    assert [(one.marked, one.waiting) for one in found.questions] == [(0, 0)]


def test_questions_of_two_assignments_are_apart():
    other = replace(CLASS[1], assignment="large")
    found = overview([CLASS[0], other])

    assert [(one.assignment, one.name, one.marked) for one in found.questions if one.name == "bdp"] == [
        ("small", "bdp", 1),
        ("large", "bdp", 1),
    ]


def test_a_page_by_question_has_fields_for_the_lines_of_marks_and_its_one_script_is_known_by_digest(tmp_path):
    marks = Marks(tmp_path / "marks.csv")
    marks.write(CLASS)
    text = pages(CLASS, FACTS, marks.rows())["questions.html"]

    found = Tags(text)
    assert [value for tag, name, value in found.attributes if (tag, name) == ("div", "data-row")] == [
        json.dumps(list(row[:5])) for row in marks.rows()
    ]
    assert (found.tags.count("script"), found.tags.count("input")) == (1, 2 * len(marks.rows()))
    script = text[text.index("<script>") + len("<script>") : text.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}';" in text


def test_who_has_not_handed_in_is_named_and_a_graded_student_has_a_page(tmp_path):
    facts = replace(FACTS, issued=tuple((name, of) for name in ("anna", "emil", "ed") for of in ("small", "large")))
    assert not_handed_in(CLASS, facts) == {"small": ["emil"]}
    assert "emil" in pages(CLASS, facts)["index.html"]
    assert table(CLASS, facts).endswith("not handed in, small: emil\n")

    folder = "Anna B_1_assignsubmission_file_"
    moodle = replace(CLASS[0], path=Path(folder) / "a.tar.gz")
    write_feedback([moodle, *CLASS[1:]], facts, tmp_path / "back")
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == [folder, "bo", "di"]
    text = (tmp_path / "back" / folder / "small.html").read_text()
    assert "a person decides" in text
    assert "Says why" not in text, "the rubric is for who marks"


@pytest.mark.parametrize(
    ("platform", "file", "student"),
    [
        ("moodle", "Anna Bauer_17_assignsubmission_file_/x.tar.gz", "anna"),
        ("moodle", "Zoë Ångström_18_assignsubmission_file_x.tar.gz", "zoe"),
        ("canvas", "baueranna_LATE_3_4_x.tar.gz", "anna"),
        ("canvas", "ngstrmzo_3_5_x.tar.gz", "zoe"),
        ("canvas", "libo_3_6_x.tar.gz", None),  # two have this name
    ],
)
def test_the_names_of_a_platform_s_download_are_those_of_the_roster(platform, file, student):
    named = {"anna": "Bauer, Anna", "zoe": "Zoë Ångström", "li": "Bo Li", "bo": "Li, Bo"}
    path = Path("download") / file
    found, wrong = named_submitters(platform, [path], [Student(*one) for one in named.items()])
    assert (found.get(path), len(wrong)) == (student, int(student is None))


def test_late_days_are_counted_from_the_due_time(course, settings):
    due = replace(course, file=course.file.model_copy(update={"due": {"small": moment_of("2026-12-01T12:00+01:00")}}))
    at = moment_of("2026-12-02T11:01Z")
    late = replace(settings, course=due, times={CLASS[0].path: at})
    (said,) = late.late(CLASS[0])
    assert (said.code, said.holds) == (Code.LATE_SUBMISSION, False)
    assert said.says == "handed in at 2026-12-02 12:01+01:00, 2 late days; it was due at 2026-12-01 12:00+01:00"
    assert [*settings.late(CLASS[0]), *late.late(CLASS[1])] == []


def test_an_empty_class_has_a_page():
    assert "Nothing was found" in pages([], FACTS)["index.html"]


@pytest.fixture
def graded(monkeypatch):
    """The calls of the grader, which gives a class."""
    calls = []
    monkeypatch.setattr(grader, "grade", lambda *words: calls.append(words) or CLASS[:1])
    return calls


def test_a_place_that_cannot_have_pages_is_refused_before_a_class_is_graded(course, graded, scpslab, tmp_path):
    file = tmp_path / "review"
    file.touch()
    places = (("--review", file), ("--review", file / "below"), ("--leaderboard", tmp_path))
    for option, place in places:
        code, _, said = scpslab("grade", "anna.tar.gz", "--course", course.folder, option, place)
        assert (code, f"{option} {place}: found " in said) == (2, True)
    assert graded == []


def test_pages_that_cannot_be_written_cost_no_grade(course, graded, scpslab, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command, "write_review", full)
    out, marks = tmp_path / "grades.csv", tmp_path / "marks.csv"
    words = ("grade", "anna.tar.gz", "--course", course.folder, "--review", tmp_path / "review", "--out", out)
    code, _, said = scpslab(*words, "--marks", marks)
    assert (code != 0, "No space left" in said) == (True, True)
    assert "anna.tar.gz" in out.read_text()
    assert "answer why" in marks.read_text()


def test_files_that_a_platform_has_renamed_are_submissions_and_others_are_named(tmp_path, capsys):
    names = [
        "a_1_x.submission.tar-1.gz",
        "b_2_x.submission.tar.gz",
        "b_2_answers.yaml",
        "c_onlinetext.html",
        ".DS_Store",
    ]
    for name in names:
        (tmp_path / name).write_text("")
    assert [path.name for path in packed(tmp_path)] == names[:2]
    assert "found 1 files that are not packed" in " ".join(capsys.readouterr().err.split())
    assert packed(tmp_path / names[2]) == [tmp_path / names[2]]
